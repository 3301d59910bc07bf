# SPDX-License-Identifier: Apache-2.0
"""The tiny model, opened once for all tests that do not need an engine of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import smepilot as sp


@pytest.fixture(scope="session")
def engine(tiny_llama3: Path) -> Iterator[sp.Engine]:
    """The tiny Llama 3 on two threads, with a context of 1024."""
    with sp.Engine.open(tiny_llama3, threads=2, ctx=1024) as engine:
        yield engine
