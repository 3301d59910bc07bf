# SPDX-License-Identifier: Apache-2.0
"""Engines behind pipes: answers, errors, noise on standard output, death."""

from __future__ import annotations

from pathlib import Path

import pytest

from smepilot.bench.cases import Case
from smepilot.bench.suite import prepare, sample
from smepilot.bench.worker import Worker
from smepilot.errors import RuntimeFault

SUBJECT = """
import os
import sys

class Subject:
    def about(self):
        print("noise on standard output")
        os.write(1, b"and below Python\\n")
        return {"engine": "test", "path": sys.path[0], "modules": "smepilot" in sys.modules}

    def open(self, model):
        if model == "bad":
            raise ValueError("not a model")
        if model == "worse":
            print("the last words", file=sys.stderr)
            os._exit(3)
        return {"opened": model}

    def prepare(self, phase, tokens, depth, sequences, seed, setting):
        self.case = (phase, tokens, depth, sequences, setting)

    def measure(self, limit=1e9):
        return {"tokens": self.case[1], "seconds": 2.0}

    def peak_memory(self):
        return 7 << 20
"""


@pytest.fixture
def subject(tmp_path: Path) -> Path:
    path = tmp_path / "subject.py"
    path.write_text(SUBJECT)
    return path


def test_calls_are_answered_whatever_the_engine_prints(subject: Path) -> None:
    with Worker(subject) as worker:
        about = worker.about()
        assert about["engine"] == "test"
        assert not about["modules"]
        assert "bench" not in Path(about["path"]).parts
        assert worker.open(model="größe.gguf") == {"opened": "größe.gguf"}
        prepare(worker, Case("pp", 512), {"threads": 2})
        assert sample(worker) == 256.0
        assert worker.peak_memory() == 7 << 20


def test_an_error_is_an_answer_and_the_worker_lives_on(subject: Path) -> None:
    with Worker(subject) as worker:
        with pytest.raises(RuntimeFault, match=r"subject\.py failed in open: ValueError: not a model"):
            worker.open(model="bad")
        assert worker.open(model="good") == {"opened": "good"}


def test_a_death_is_reported_with_its_last_words(subject: Path) -> None:
    with (
        Worker(subject) as worker,
        pytest.raises(RuntimeFault, match=r"died during open: exit status 3, the last words"),
    ):
        worker.open(model="worse")


def test_an_interpreter_that_is_not_there(subject: Path) -> None:
    with pytest.raises(RuntimeFault, match="cannot be started"):
        Worker(subject, python="/nonexistent/python")


def test_closing_twice_is_allowed(subject: Path) -> None:
    worker = Worker(subject)
    worker.close()
    worker.close()
