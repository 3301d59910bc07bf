# SPDX-License-Identifier: Apache-2.0
"""Where SMEPilot keeps its files, how processes take turns on them, and how the disk's refusals read.

Everything lives below one folder, `home()`: `SMEPILOT_HOME` when set, else the platform's usual place for an
application's data. Models are in `models/`, what was derived from them (packed weights, built tokenizers) in
`cache/`: the second may be deleted at any time.

Two processes may start at once, so every writer holds an `exclusive` lock (a lock of the operating system on an open
file: it dies with its holder, so nobody has to clean up after a crash). The OS errors that people meet in practice,
no room and no permission, become one-line errors with a way out through `disk_errors`.

Imports here are paid by every start, so the packages behind them are imported where they are used.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from smepilot.errors import DiskFullError, LockTimeoutError, StoreError

# EFBIG is what a quota set by RLIMIT_FSIZE or a FAT volume answers: to the user it is "does not fit" as well.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
_NO_PERMISSION = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def home() -> Path:
    """The folder of models and caches, absolute; it need not exist yet."""
    chosen = os.environ.get("SMEPILOT_HOME", "").strip()
    if chosen:
        return Path(os.path.abspath(os.path.expanduser(chosen)))
    from platformdirs import user_data_path

    return user_data_path("smepilot", appauthor=False)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns an OSError of the body into a DiskFullError or StoreError that names `path` and the way out."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            raise DiskFullError(
                f"{path}: no room ({reason}); free some space or point SMEPILOT_HOME at another disk"
            ) from error
        if error.errno in _NO_PERMISSION:
            raise StoreError(
                f"{path}: cannot be written ({reason}); point SMEPILOT_HOME at a folder you may write to"
            ) from error
        raise StoreError(f"{path}: {reason}; point SMEPILOT_HOME at another folder") from error


@contextmanager
def exclusive(path: Path, timeout: float = 1800.0, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Holds the inter-process lock `path` (created beside what it protects) during the body.

    Args:
        path: the lock file; its folder is created.
        timeout: seconds to wait for another holder.
        on_wait: called once if there is another holder.

    Raises:
        LockTimeoutError: another process still holds the lock after `timeout`.
        StoreError: the lock file cannot be created.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if on_wait:
                    on_wait()
                lock.acquire(timeout=timeout, poll_interval=0.05)
        except Timeout:
            raise LockTimeoutError(
                f"{path}: held by another process for {timeout:.0f} s; let it finish or end it, then try again"
            ) from None
    try:
        yield
    finally:
        lock.release()


def sync_folder(folder: Path) -> None:
    """Makes renames inside `folder` survive a power cut, where the platform can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
