# SPDX-License-Identifier: Apache-2.0
"""Is this the file that was promised? Its hash decides: a file of the right length may be full of zeros."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from smepilot.errors import VerifyError
from smepilot.paths import disk_errors

_STEP = 1 << 22


def sha256_of(path: Path, on_bytes: Callable[[int], None] | None = None) -> str:
    """SHA-256 (hex) of a file in a bounded amount of memory; `on_bytes` hears how many are done."""
    digest = hashlib.sha256()
    done = 0
    buffer = memoryview(bytearray(_STEP))
    with disk_errors(path), path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
            done += count
            if on_bytes:
                on_bytes(done)
    return digest.hexdigest()


def check_file(path: Path, size: int, sha256: str, on_bytes: Callable[[int], None] | None = None) -> None:
    """Raises VerifyError unless the file has this size and hash."""
    with disk_errors(path):
        actual = path.stat().st_size
    if actual != size:
        raise VerifyError(f"{path}: {actual} bytes long, {size} were promised; remove the model and pull it again")
    found = sha256_of(path, on_bytes)
    if found != sha256:
        raise VerifyError(f"{path}: its SHA-256 is {found}, {sha256} was promised; remove the model and pull it again")
