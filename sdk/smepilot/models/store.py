# SPDX-License-Identifier: Apache-2.0
"""The models on this machine: found by name, fetched when asked, removed without a trace.

    SMEPILOT_HOME/
      models/smollm2/135m/    the model file and its revision.json
      partial/                what is being fetched; nobody looks here for models
      locks/                  one lock file per model
      cache/                  derived files, one folder per source file; may be deleted at any time

A model is assembled in `partial` and checked there, then its folder is renamed into `models`: whoever lists or opens
models sees all of it or nothing. What is here is used without touching the network, and without write access.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from smepilot import paths
from smepilot.errors import DiskFullError, NotFoundError, VerifyError
from smepilot.models.catalog import CatalogEntry, catalog, find
from smepilot.models.entry import Entry, catalog_entry, stored_entry
from smepilot.models.events import OnEvent, Progress, PullEvent
from smepilot.models.lock import Revision, read_revision, write_revision
from smepilot.models.verify import check_file
from smepilot.types import PromptClassChoice


class Store:
    """The models below one folder; cheap to make, holds nothing open, safe for threads and processes.

    Args:
        home: the folder; `paths.home()` unless given.
        entries: what can be pulled; the built-in catalog unless given.
    """

    def __init__(self, home: Path | None = None, entries: Sequence[CatalogEntry] | None = None) -> None:
        self.home = Path(os.path.abspath(home)) if home is not None else paths.home()
        self._given = entries

    def resolve(self, name_or_path: str | os.PathLike[str]) -> Path:
        """The file of a model: a path as it is, a catalog name as the file that was pulled for it.

        Raises:
            NotFoundError: no such file; or a known model that is not here; or a name nobody knows.
            VerifyError: the stored file has changed its length.
        """
        text = os.fspath(name_or_path)
        name = None if _is_path(text) else self._canonical(text)
        revision = read_revision(self._folder(name)) if name else None
        if name is None or (revision is None and self._find(name) is None):
            return self._existing_path(text)
        if revision is None:
            raise NotFoundError(f"model {name!r} is not on this machine; run `smepilot pull {name}`")
        path = self._folder(name) / revision.file
        if not path.is_file() or path.stat().st_size != revision.size:
            raise VerifyError(f"{path}: missing or not {revision.size} bytes long; run `smepilot pull {name}`")
        return path

    def prompt_class(self, name_or_path: str, choice: PromptClassChoice) -> PromptClassChoice:
        """`choice`, but for "auto" what the catalog had measured of this model when it was pulled, if anything."""
        name = None if choice != "auto" or _is_path(name_or_path) else self._canonical(name_or_path)
        revision = read_revision(self._folder(name)) if name else None
        if revision is None or revision.prompt_class not in ("grouped", "rowwise"):
            return choice
        return "rowwise" if revision.prompt_class == "rowwise" else "grouped"

    def pull(self, name: str, on_event: OnEvent | None = None) -> Path:
        """Makes a catalog model present and returns its file; touches no network when it is here already.

        Args:
            name: of the catalog.
            on_event: hears of the progress; what it raises cancels the pull and leaves nothing behind.

        Raises:
            NotFoundError, DownloadError, VerifyError, DiskFullError, LockTimeoutError, StoreError.
        """
        entry = self._known(name)
        path = self._present(entry)
        if path is None:
            with self._locked(entry.name, on_event):
                path = self._present(entry) or self._fetch(entry, on_event)
        if on_event:
            on_event(PullEvent("done", entry.size, entry.size))
        return path

    def list(self) -> builtins.list[Entry]:
        """The models that are here, complete, by name."""
        root = self.home / "models"
        found = [self._stored(file.parent) for file in root.glob("*/*/revision.json")]
        return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.name)

    def available(self) -> builtins.list[Entry]:
        """Every model of the catalog, here or not."""
        return [self.show(entry.name) for entry in self._entries]

    def show(self, name: str) -> Entry:
        """What is known of one model.

        Raises:
            NotFoundError: neither the catalog nor the store has it.
        """
        name = self._canonical(name) or self._known(name).name
        return self._stored(self._folder(name)) or catalog_entry(self._known(name))

    def verify(self, name: str, on_event: OnEvent | None = None) -> None:
        """Hashes a stored model; raises VerifyError when it is not what was pulled, NotFoundError when it is not here.

        A path is an error here: only the store knows what its files must hash to.
        """
        entry = self.show(name)
        path = self.resolve(entry.name)
        check_file(path, entry.size, entry.sha256, Progress("verify", entry.size, on_event))

    def remove(self, name: str) -> None:
        """Deletes a model and what was derived from it. An engine that has it open keeps working.

        Raises:
            NotFoundError: it is not here.
        """
        name = self._canonical(name) or self._known(name).name
        folder = self._folder(name)
        with self._locked(name), paths.disk_errors(folder):
            scratch = self._scratch(name)
            if not folder.exists():
                shutil.rmtree(scratch.parent, ignore_errors=True)
                raise NotFoundError(f"model {name!r} is not on this machine; nothing to remove")
            derived = [self.cache_dir(file) for file in folder.iterdir()]
            # Out of sight first: a removal that is interrupted leaves no half model under the name.
            folder.rename(scratch / "removed")
            for doomed in (scratch.parent, *derived):
                shutil.rmtree(doomed, ignore_errors=True)
            if not any(folder.parent.iterdir()):
                folder.parent.rmdir()

    def cache_dir(self, model_path: str | os.PathLike[str]) -> Path:
        """The folder for what is derived from this file (packed weights, tokenizer); it need not exist yet."""
        path = Path(os.path.realpath(model_path))
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        return self.home / "cache" / f"{path.stem[:64]}-{digest}"

    @property
    def _entries(self) -> Sequence[CatalogEntry]:
        return catalog() if self._given is None else self._given

    def _find(self, name: str) -> CatalogEntry | None:
        return find(name, self._entries)

    def _known(self, name: str) -> CatalogEntry:
        entry = self._find(name)
        if entry is None:
            names = ", ".join(entry.name for entry in self._entries)
            raise NotFoundError(f"no model is named {name!r}; known are {names}")
        return entry

    def _canonical(self, name: str) -> str | None:
        """`family:size` in small letters, from a name or an alias; None when it is neither.

        A name need not be in the catalog: what an older catalog offered can still be used, shown and removed.
        """
        name = name.strip().lower()
        if re.fullmatch(r"[a-z0-9][a-z0-9._-]*:[a-z0-9][a-z0-9._-]*", name):
            return name
        entry = self._find(name)
        return entry.name if entry else None

    def _existing_path(self, text: str) -> Path:
        path = Path(text)
        try:
            if text and path.exists():
                return path
        except OSError:  # a folder on the way may not be entered: whoever opens the path will hear why
            return path
        if _is_path(text):
            raise NotFoundError(f"{path}: no such file; check the path")
        names = ", ".join(entry.name for entry in self._entries)
        raise NotFoundError(f"no model is named {text!r}; known are {names}, or give the path of a .gguf file")

    def _folder(self, name: str) -> Path:
        family, _, size = name.partition(":")
        return self.home / "models" / family / size

    def _scratch(self, name: str) -> Path:
        """A new empty folder in `partial`, after clearing what earlier runs left there for this model.

        Its name is new each time: the downloader of a killed process may still be writing to the old one.
        """
        place = self.home / "partial" / name.replace(":", "-")
        shutil.rmtree(place, ignore_errors=True)
        scratch = place / f"{os.getpid()}-{time.monotonic_ns()}"
        scratch.mkdir(parents=True)
        return scratch

    def _locked(self, name: str, on_event: OnEvent | None = None) -> AbstractContextManager[None]:
        def waiting() -> None:
            if on_event:
                on_event(PullEvent("wait", 0, 0))

        return paths.exclusive(self.home / "locks" / f"{name.replace(':', '-')}.lock", on_wait=waiting)

    def _stored(self, folder: Path) -> Entry | None:
        revision = read_revision(folder)
        if revision is None:
            return None
        path = folder / revision.file
        if not path.is_file() or path.stat().st_size != revision.size:
            return None
        return stored_entry(revision, path, self._find(revision.name))

    def _present(self, entry: CatalogEntry) -> Path | None:
        stored = self._stored(self._folder(entry.name))
        # The same name with another hash is an older revision: pulling it fetches the one that is promised now.
        return stored.path if stored is not None and stored.sha256 == entry.sha256 else None

    def _fetch(self, entry: CatalogEntry, on_event: OnEvent | None) -> Path:
        folder = self._folder(entry.name)
        # Imported here: opening a model that is present must not pay for what only a download needs.
        from smepilot.models.download import download, room_needed

        with paths.disk_errors(self.home):
            scratch = self._scratch(entry.name)
            room = shutil.disk_usage(scratch).free
        try:
            if room < room_needed(entry):
                raise DiskFullError(
                    f"{self.home}: {entry.name} needs {room_needed(entry) // 1_000_000} MB while it is fetched, "
                    f"{room // 1_000_000} MB are free; free some space or point SMEPILOT_HOME at another disk"
                )
            path = download(entry, scratch, on_event)
            check_file(path, entry.size, entry.sha256, Progress("verify", entry.size, on_event))
            write_revision(scratch, _revision(entry))
            with paths.disk_errors(folder):
                folder.parent.mkdir(parents=True, exist_ok=True)
                if folder.exists():  # a stored model that is no longer whole
                    shutil.rmtree(folder)
                scratch.rename(folder)
                paths.sync_folder(folder.parent)
        finally:
            shutil.rmtree(scratch.parent, ignore_errors=True)
        return folder / entry.file


def _is_path(text: str) -> bool:
    return text.endswith(".gguf") or os.sep in text or (os.altsep or os.sep) in text


def _revision(entry: CatalogEntry) -> Revision:
    source = entry.source
    return Revision(
        entry.name,
        entry.file,
        entry.size,
        entry.sha256,
        entry.licence,
        source.package,
        source.version,
        entry.prompt_class or "",
    )
