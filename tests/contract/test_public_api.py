# SPDX-License-Identifier: Apache-2.0
"""The public surface: small, listed, documented, typed, strict about keywords, and cheap to import."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import smepilot
from smepilot import errors

PUBLIC = sorted(smepilot.__all__)
EXCEPTIONS = {name for name, cls in vars(errors).items() if inspect.isclass(cls) and cls.__module__ == errors.__name__}


def functions() -> list[tuple[str, Any]]:
    """Return the public functions and methods of the surface as (name, function)."""
    found: list[tuple[str, Any]] = []
    for name in PUBLIC:
        value = getattr(smepilot, name)
        if inspect.isclass(value) and name not in EXCEPTIONS:
            members = inspect.getmembers(value, lambda m: inspect.isfunction(m) or inspect.ismethod(m))
            found += [(f"{name}.{member}", f) for member, f in members if not member.startswith("_")]
        elif inspect.isfunction(value):
            found.append((name, value))
    return found


def test_one_sorted_list() -> None:
    assert sorted(smepilot.__all__) == list(smepilot.__all__)
    assert len(set(smepilot.__all__)) == len(smepilot.__all__)


def test_every_exception_is_public() -> None:
    assert set(PUBLIC) >= EXCEPTIONS


def test_type_checkers_see_the_same_names() -> None:
    """Names load on first use; the imports that only a type checker follows must be the same ones."""
    assert smepilot.__file__ is not None
    tree = ast.parse(Path(smepilot.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    seen = {each.name for node in imports if (node.module or "").startswith("smepilot.") for each in node.names}
    assert seen | {"__version__"} == set(PUBLIC)


def test_version_is_the_package_s() -> None:
    assert smepilot.__version__ == importlib.metadata.version("smepilot")


@pytest.mark.parametrize("name", PUBLIC)
def test_documented(name: str) -> None:
    value = getattr(smepilot, name)
    assert name.startswith("__") or value.__doc__


@pytest.mark.parametrize(("name", "function"), functions(), ids=lambda value: value if isinstance(value, str) else "")
def test_documented_and_typed(name: str, function: Any) -> None:
    assert function.__doc__
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.name == "self" or parameter.annotation is not inspect.Parameter.empty, parameter.name


def test_typed_package() -> None:
    assert smepilot.__file__ is not None
    assert (Path(smepilot.__file__).parent / "py.typed").is_file()


def test_unknown_keywords_raise(tiny_llama3: Path) -> None:
    with pytest.raises(TypeError, match="thread"):
        smepilot.Engine.open(tiny_llama3, thread=1)  # type: ignore[call-arg]
    with smepilot.Engine.open(tiny_llama3, threads=1) as engine:
        asks: list[Any] = [engine.complete, engine.stream, engine.session]
        for ask in asks:
            with pytest.raises(TypeError, match="temprature"):
                ask("x", temprature=0.5)


def test_import_is_cheap_and_quiet() -> None:
    """Importing pulls in neither tokenizers nor templates nor terminal drawing, prints nothing, opens no socket."""
    program = """
import sys
def forbid(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError(event)
sys.addaudithook(forbid)
import json, smepilot
json.dump(sorted({name.split(".")[0] for name in sys.modules}), sys.stdout)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    loaded = set(json.loads(run.stdout))
    assert not loaded & {"tokenizers", "sentencepiece", "jinja2", "rich", "prompt_toolkit", "asyncio", "urllib", "pip"}
