# SPDX-License-Identifier: Apache-2.0
"""Calibration among faults: damaged files, full disks, ends in the middle, several at once. They cost time, no more."""

from __future__ import annotations

import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smepilot.runtime.packed import open_packed, write_packed
from smepilot.runtime.runner import Runner
from tests import fetch

KEPT = "rowwise.safetensors"

OPEN = """
import sys
from pathlib import Path
from smepilot.runtime.runner import Runner
def progress(done):
    print(done, flush=True)
    if done > float(sys.argv[3]):
        sys.stdin.read()  # until the parent ends this process
runner = Runner.open(Path(sys.argv[1]), threads=1, cache_dir=Path(sys.argv[2]), on_progress=progress)
print(runner.prompt_class, runner._model.prompts.key, flush=True)
"""


@pytest.fixture
def model() -> Path:
    return fetch.tiny_llama3_gguf("Q4_0")


def key(model: Path, cache: Path, **options: Any) -> str:
    """Opens the model and tells what was found."""
    runner = Runner.open(model, threads=1, cache_dir=cache, **options)
    assert runner._model is not None
    assert runner._model.prompts is not None
    found = runner._model.prompts.key
    runner.close()
    return found


def left(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if not path.name.endswith(".lock"))


def truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 64)


def scribbled(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(400)
        file.write(b"?")


def rewritten(path: Path, change: Callable[[dict[str, bytes], dict[str, str]], Any]) -> None:
    """Changes what the file holds and signs it again, as somebody with bad intentions would."""
    raw = path.read_bytes()
    stored = raw[raw.index(b'"packed.key":"') + 14 :].split(b'"')[0].decode()
    file = open_packed(path, stored)
    assert file is not None
    tensors, about = {name: bytes(file[name]) for name in file}, dict(file.metadata)
    file.close()
    change(tensors, about)
    path.unlink()

    def fill(data: bytes) -> Callable[[memoryview], None]:
        def into(out: memoryview) -> None:
            out[:] = data

        return into

    write_packed(path, stored, about, [(name, len(data), fill(data)) for name, data in tensors.items()]).close()


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "foreign": lambda path: path.write_bytes(b"x" * 999),
    "truncated": truncated,
    "scribbled": scribbled,
    "a column that is not there": lambda path: rewritten(
        path, lambda tensors, _: tensors.update({"layers.0.o.outliers": (1 << 20).to_bytes(4, "little")})
    ),
    "a tensor of another size": lambda path: rewritten(
        path, lambda tensors, _: tensors.update({"layers.0.o": tensors["layers.0.o"][:8]})
    ),
    "a tensor less": lambda path: rewritten(path, lambda tensors, _: tensors.pop("blk.0.ffn_up.weight")),
    "no number": lambda path: rewritten(path, lambda _, about: about.update(grouped="one")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file(damage: str, model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = key(model, tmp_path)
    whole = (tmp_path / KEPT).read_bytes()
    DAMAGES[damage](tmp_path / KEPT)
    assert key(model, tmp_path) == found
    assert any(record.levelno == logging.WARNING and KEPT in record.message for record in caplog.records)
    assert (tmp_path / KEPT).read_bytes() == whole
    caplog.clear()
    steps: list[float] = []
    assert key(model, tmp_path, on_progress=steps.append) == found
    assert not caplog.records
    assert not steps


def test_file_of_another_model(model: Path, tmp_path: Path) -> None:
    other = fetch.tiny_llama3_gguf("Q8_0")
    found = key(other, tmp_path / "other")
    key(model, tmp_path / "one")
    (tmp_path / "other" / KEPT).write_bytes((tmp_path / "one" / KEPT).read_bytes())
    assert key(other, tmp_path / "other") == found


def test_no_room(model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The model works, from memory; the file is made once there is room."""
    found = key(model, tmp_path / "elsewhere")
    Runner.open(model, threads=1, cache_dir=tmp_path, prompt_class="grouped").close()  # packs
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        assert key(model, tmp_path) == found
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "every start will calibrate again" in caplog.text
    assert KEPT not in left(tmp_path)
    assert key(model, tmp_path) == found
    assert KEPT in left(tmp_path)


def test_no_folder(model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    assert key(model, tmp_path / "file" / "cache") == key(model, tmp_path / "elsewhere")
    assert "every start will calibrate again" in caplog.text


@pytest.mark.parametrize("when", [0.25, 0.9])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_ended_in_the_middle(how: signal.Signals, when: float, model: Path, tmp_path: Path) -> None:
    child = launch(model, tmp_path, when)
    assert child.stdout is not None
    while float(child.stdout.readline()) <= when:
        pass
    child.send_signal(how)
    child.communicate()
    assert child.returncode != 0
    assert KEPT not in left(tmp_path)
    assert key(model, tmp_path) == key(model, tmp_path / "elsewhere")
    assert not any(name.endswith(".partial") for name in left(tmp_path))


def test_two_processes_at_once(model: Path, tmp_path: Path) -> None:
    children = [launch(model, tmp_path, 2.0) for _ in range(2)]
    outputs = [child.communicate()[0].splitlines() for child in children]
    assert {output[-1].split()[1] for output in outputs} == {key(model, tmp_path)}
    # 0.2 is packed and 1 is the end, which who packed tells as well: what is between is calibration.
    assert sum(any(0.21 < float(done) < 1 for done in output[:-1]) for output in outputs) == 1


def test_interrupted_by_its_caller(model: Path, tmp_path: Path) -> None:
    def give_up(done: float) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Runner.open(model, threads=1, cache_dir=tmp_path, on_progress=give_up)
    assert KEPT not in left(tmp_path)
    steps: list[float] = []
    key(model, tmp_path, on_progress=steps.append)
    assert steps == sorted(steps)
    assert steps[-1] == 1.0


def launch(model: Path, cache: Path, stop: float) -> subprocess.Popen[str]:
    """Opens the model in a process of its own, which stops and waits once it is done to `stop`."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-c", OPEN, str(model), str(cache), str(stop)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
