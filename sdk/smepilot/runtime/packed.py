# SPDX-License-Identifier: Apache-2.0
"""The packed model on disk: written once, then mapped by every start.

Packing a model (rearranging its weights into the panels that all workers read) takes seconds; mapping the result
takes less than a millisecond and no memory of one's own. The file is valid safetensors (packed_header.py), so any
tool can list it: tensors are bytes, names and meaning are the caller's, and so is the `key`, one string that names
everything the content depends on (source file, layout version, ...). A file with another key is stale.

Trust: the header is checked against its digest at every start, it is small; the tensors only by `verify`, because
hashing gigabytes would cost what the cache saves. Whatever fails the check at start is packed again, with a warning.

Two processes may start at once: the writer holds a lock, the other waits and maps the result. Disk space is reserved
before the mapping is written to, because a full disk answers a write to a mapping with a signal, not an error. The
file appears under its name by a rename after fsync, so it is never seen half done; what a killed process leaves is
one `.partial` that the next writer overwrites.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from smepilot.errors import ClosedError, OutOfMemoryError, VerifyError
from smepilot.paths import disk_errors, exclusive, sync_folder
from smepilot.runtime import packed_header
from smepilot.runtime.packed_header import DamageError, Header, padded

if TYPE_CHECKING:
    from smepilot.weights.source import WeightSource

Item = tuple[str, int, Callable[[memoryview], None]]  # name, bytes, what fills them
Progress = Callable[[int, int], None]  # bytes done, bytes in all

log = logging.getLogger(__name__)


class PackedFile(Mapping[str, memoryview]):
    """Packed tensors, mapped read-only: name to bytes, each on a 64-byte boundary.

    Attributes:
        path: the file, or None when the tensors are in memory only.
        metadata: what the packer stored beside the tensors.
    """

    def __init__(self, path: Path | None, mapping: mmap.mmap, header: Header) -> None:
        """Takes over the mapping; made by the functions of this module."""
        import numpy as np

        self.path = path
        self.metadata = header.metadata
        self._spans = header.spans
        self._mapping: mmap.mmap | None = mapping
        self._view = memoryview(mapping).toreadonly()
        self._base = int(np.frombuffer(self._view, np.uint8).ctypes.data)

    def __getitem__(self, name: str) -> memoryview:
        """The bytes of one tensor: a read-only view of its true length, no copy."""
        offset, nbytes = self._spans[name]
        self._require_open(name)
        return self._view[offset : offset + nbytes]

    def __iter__(self) -> Iterator[str]:
        """Names in the order in which they were packed."""
        return iter(self._spans)

    def __len__(self) -> int:
        """The number of tensors."""
        return len(self._spans)

    def address(self, name: str) -> int:
        """Where the tensor is in memory, for native code; valid until `close`."""
        offset = self._spans[name].offset
        self._require_open(name)
        return self._base + offset

    def close(self) -> None:
        """Gives the mapping back. Views stay valid and keep it until they die; addresses do not."""
        mapping, self._mapping = self._mapping, None
        if mapping is not None:
            with suppress(BufferError):  # a view is alive: the mapping goes with the last one
                self._view.release()
                mapping.close()

    def __enter__(self) -> Self:
        """The file itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        self.close()

    def _require_open(self, name: str) -> None:
        if self._mapping is None:
            raise ClosedError(f"{self.path or 'packed weights'}: tensor {name!r} was read after close")


def source_key(source: WeightSource, layout_version: str) -> str:
    """What of a source file its packed form depends on, as a hex digest: size, mtime, header, tensor table, layout."""
    facts = source.path.stat()
    parts = [str(facts.st_size), str(facts.st_mtime_ns), source.fingerprint(), layout_version]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def open_packed(path: Path, key: str) -> PackedFile | None:
    """Maps a packed file; None when there is none, when it belongs to another key, or (with a warning) is damaged."""
    try:
        mapping = _map(path)
        with memoryview(mapping) as view:
            header, _ = packed_header.read(view)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, DamageError) as reason:  # ValueError: there is nothing in it
        log.warning("%s: damaged (%s); packing again", path, reason)
        return None
    if header.key != key:
        mapping.close()
        log.info("%s: stale, its model or layout has changed; packing again", path)
        return None
    if hasattr(mmap, "MADV_WILLNEED"):
        mapping.madvise(mmap.MADV_WILLNEED)
    return PackedFile(path, mapping, header)


def verify(path: Path, on_progress: Progress | None = None) -> None:
    """Hashes the whole packed file.

    Raises:
        VerifyError: it is missing, or not what was packed.
    """
    advice = "delete it, it is packed again at the next start"
    step = 1 << 24
    try:
        with _map(path) as mapping, memoryview(mapping) as view:
            header, expected = packed_header.read(view)
            digest = hashlib.sha256(header.raw)
            for start in range(len(header.raw), header.size, step):
                with view[start : start + step] as part:
                    digest.update(part)
                if on_progress:
                    on_progress(min(start + step, header.size), header.size)
    except (OSError, ValueError, DamageError) as error:
        raise VerifyError(f"{path}: {error}; {advice}") from error
    if digest.hexdigest() != expected:
        raise VerifyError(f"{path}: its content has changed since packing; {advice}")


def write_packed(
    path: Path,
    key: str,
    metadata: Mapping[str, str],
    items: Sequence[Item],
    on_progress: Progress | None = None,
) -> PackedFile:
    """Packs `items` into the file `path` and maps it; if another process just did that, maps its result.

    Args:
        path: the file to make; its folder is created.
        key: what `open_packed` must be asked for to find the file fresh.
        metadata: strings to keep beside the tensors; names that start with "packed." are taken.
        items: name, bytes, and the function that fills exactly so many zeroed bytes of memory in place.
        on_progress: called with bytes done and bytes in all after each item.

    Raises:
        DiskFullError: the file does not fit; nothing is left behind.
        StoreError: the folder cannot be written.
        LockTimeoutError: another process has been packing for half an hour.
    """
    header = packed_header.build(key, metadata, [(name, nbytes) for name, nbytes, _ in items])
    with exclusive(path.with_name(path.name + ".lock")):
        packed = open_packed(path, key)
        if packed is not None:
            return packed
        partial = path.with_name(path.name + ".partial")
        try:
            with disk_errors(path):
                with partial.open("w+b") as file:
                    _reserve(file, header.size)
                    _write(file, header, items, on_progress)
                os.replace(partial, path)
                sync_folder(path.parent)
        finally:
            with suppress(OSError):  # the error that matters is on its way
                partial.unlink(missing_ok=True)
        packed = open_packed(path, key)
    if packed is None:
        raise VerifyError(f"{path}: cannot be read back after it was written; check the disk")
    return packed


def pack_in_memory(
    metadata: Mapping[str, str], items: Sequence[Item], on_progress: Progress | None = None
) -> PackedFile:
    """The same as `write_packed` without a file, for a disk that is full, read-only, or not to be used."""
    header = packed_header.build("", metadata, [(name, nbytes) for name, nbytes, _ in items])
    try:
        mapping = mmap.mmap(-1, header.size)
    except (OSError, OverflowError) as error:
        raise OutOfMemoryError(f"{header.size} bytes for packed weights cannot be had; use a smaller model") from error
    view = memoryview(mapping)
    for name, _, fill in items:
        start, nbytes = header.spans[name]
        fill(view[start : start + nbytes])
        if on_progress:
            on_progress(start + padded(nbytes), header.size)
    return PackedFile(None, mapping, header)


def _map(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _reserve(file: IO[bytes], size: int) -> None:
    """Gives the empty file `size` zero bytes that are really there."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    zeros = bytes(1 << 20)
    for start in range(0, size, len(zeros)):
        file.write(zeros[: size - start])
    file.flush()


def _write(file: IO[bytes], header: Header, items: Sequence[Item], on_progress: Progress | None) -> None:
    """Fills the reserved file through a mapping, hashing each tensor while it is still in the processor's caches."""
    mapping = mmap.mmap(file.fileno(), header.size)
    view = memoryview(mapping)
    digest = hashlib.sha256(header.raw)
    try:
        view[: len(header.raw)] = header.raw
        for name, _, fill in items:
            start, nbytes = header.spans[name]
            end = start + padded(nbytes)
            fill(view[start : start + nbytes])
            digest.update(view[start:end])
            _let_go(mapping, start, end)
            if on_progress:
                on_progress(end, header.size)
        packed_header.seal(view, header, digest.hexdigest())
        mapping.flush()
        os.fsync(file.fileno())
    finally:
        with suppress(BufferError):  # a filler kept its view: the mapping goes with it
            view.release()
            mapping.close()


def _let_go(mapping: mmap.mmap, start: int, end: int) -> None:
    """Takes finished pages out of this process's resident memory; their content stays in the page cache."""
    if sys.platform == "linux":
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        last = end // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
