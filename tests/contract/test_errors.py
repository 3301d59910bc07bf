# SPDX-License-Identifier: Apache-2.0
"""The tree of exceptions as drawn is the tree as defined, and every C status becomes one of them."""

from __future__ import annotations

import inspect
import re

from smepilot import errors
from tests.conftest import ROOT


def drawn() -> dict[str, str]:
    """Return class -> base as the docstring of errors.py draws it: four columns a level."""
    assert errors.__doc__ is not None
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in errors.__doc__.splitlines():
        match = re.fullmatch(r" {4}([ │├└─]*)(\w+)( {2,}.*)?", line)
        if match:
            level = len(match[1]) // 4
            path[level:] = [match[2]]
            parents[match[2]] = path[level - 1] if level else "Exception"
    return parents


def test_the_drawing_is_the_tree() -> None:
    defined = {
        name: cls.__mro__[1].__name__
        for name, cls in inspect.getmembers(errors, inspect.isclass)
        if cls.__module__ == errors.__name__
    }
    assert drawn() == defined


def test_every_error_says_what_it_is() -> None:
    for name in drawn():
        assert getattr(errors, name).__doc__, name


def test_every_status_becomes_an_exception() -> None:
    header = (ROOT / "native" / "base" / "status.h").read_text()
    statuses = re.findall(r"^ +(SP_ERR_\w+)", header, re.MULTILINE)
    table = (ROOT / "sdk" / "smepilot" / "_native" / "errors.pxi").read_text()
    rows = dict(re.findall(r"^ +(SP_ERR_\w+): _errors\.(\w+),", table, re.MULTILINE))
    assert sorted(rows) == sorted(statuses)
    assert set(rows.values()) <= drawn().keys()


def test_every_status_has_a_text() -> None:
    header = (ROOT / "native" / "base" / "status.h").read_text()
    texts = (ROOT / "native" / "base" / "status.c").read_text()
    for status in re.findall(r"^ +(SP_(?:OK|ERR_\w+))", header, re.MULTILINE):
        assert f"[{status}] = " in texts, status
