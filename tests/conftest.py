# SPDX-License-Identifier: Apache-2.0
"""What all tests share: a home of their own, reproducible random tests, and the models as fixtures."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import hypothesis
import pytest

from tests import fetch

# Started in the background, tests and their children may have been told to ignore Ctrl-C; some are about it.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent

# The same examples on every machine and in every run; time limits would only measure the neighbours.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty SMEPILOT_HOME for this run, inherited by child processes: no test touches the user's models."""
    path = tmp_path_factory.mktemp("home")
    os.environ["SMEPILOT_HOME"] = str(path)
    for name in ("SMEPILOT_ISA", "SMEPILOT_THREADS"):
        os.environ.pop(name, None)
    return path


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Return SmolLM2-135M-Instruct in Q4_1."""
    return fetch.smollm2()


@pytest.fixture(scope="session")
def tiny_llama3() -> Path:
    """Return the tiny Llama 3 in float32, as GGUF."""
    return fetch.tiny_llama3_gguf()
