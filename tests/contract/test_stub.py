# SPDX-License-Identifier: Apache-2.0
"""What type checkers are told about the extension (``_core.pyi``) is what the extension has."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from smepilot._native import _core
from tests.conftest import ROOT

STUB = ast.parse((ROOT / "sdk" / "smepilot" / "_native" / "_core.pyi").read_text())


def declared(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Return the public functions, classes and variables of a stub's module or class."""
    names: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
    return {name: node for name, node in names.items() if not name.startswith("_")}


def has(value: Any) -> set[str]:
    """Return the public names of the extension or of one of its classes, without what it imported."""
    names = {name for name in vars(value) if not name.startswith("_")}
    return {name for name in names if getattr(getattr(value, name), "__module__", _core.__name__) == _core.__name__}


def parameters(node: ast.FunctionDef) -> list[str]:
    """Return the parameter names of a stub's function."""
    every = node.args
    return [each.arg for each in (*every.posonlyargs, *every.args, *every.kwonlyargs)]


def test_names() -> None:
    assert declared(STUB.body).keys() == has(_core)


@pytest.mark.parametrize("name", [name for name, node in declared(STUB.body).items() if isinstance(node, ast.ClassDef)])
def test_members(name: str) -> None:
    node = declared(STUB.body)[name]
    assert isinstance(node, ast.ClassDef)
    assert declared(node.body).keys() == has(getattr(_core, name))


@pytest.mark.parametrize("name", [n for n, node in declared(STUB.body).items() if isinstance(node, ast.FunctionDef)])
def test_parameters(name: str) -> None:
    node = declared(STUB.body)[name]
    assert isinstance(node, ast.FunctionDef)
    assert parameters(node) == list(inspect.signature(getattr(_core, name)).parameters)
