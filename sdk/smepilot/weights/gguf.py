# SPDX-License-Identifier: Apache-2.0
"""Reads GGUF files, versions 2 and 3: mapped, never read as a whole, and never believed.

    magic "GGUF" · version u32 · tensors u64 · keys u64
    keys:     name · type u32 · value                                          (metadata.py)
    tensors:  name · n_dims u32 · dims u64 each, fastest first · type u32 · offset u64 from the data
    padding to `general.alignment` (32 unless the file says otherwise) · tensor data

Each offset, count and product is checked before it is used, so an opened file can be used without further checks:
every tensor lies inside the data, on its alignment, and overlaps no other. What is whole but beyond this version
(an unknown element type, one shard of many, the byte order of big-endian machines) is an UnsupportedModelError,
everything else that is wrong a FileFormatError. Element types that are merely not computed with yet are accepted
here and refused by `require_supported`, so that such a file can still be shown.

The file must not be shortened by others while it is open: the operating system answers reads of a mapping's
missing pages with a signal. Downloads therefore publish files by renaming them into place.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from collections.abc import Mapping
from math import prod
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from smepilot.errors import ClosedError, FileFormatError, NotFoundError, UnsupportedModelError
from smepilot.weights.cursor import Cursor
from smepilot.weights.dtypes import BY_NUMBER
from smepilot.weights.metadata import count_keys, read_metadata
from smepilot.weights.source import TensorInfo

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_TENSORS = 1 << 18
_MAX_NAME_BYTES = 256
_MAX_DIMS = 4
_MAX_ELEMENTS = (1 << 63) - 1

# What lies about under a model's name when a download went wrong.
_STRANGERS = {
    b"version https://git-lfs": "is a Git LFS pointer, not the file it points to; fetch it with `git lfs pull`",
    b"<!DOCTYPE": "is a web page, not a model; fetch the file itself",
    b"<html": "is a web page, not a model; fetch the file itself",
    b"PK\x03\x04": "is a zip archive; unpack it and open the .gguf inside",
    b"ggjt"[::-1]: "is of the old ggml format; get the model as GGUF",
    b"ggml"[::-1]: "is of the old ggml format; get the model as GGUF",
    b"ggla"[::-1]: "is an old ggml adapter; get the model as GGUF",
}


class GgufFile:
    """An open GGUF file, a `WeightSource`; made by `open_gguf`.

    Attributes:
        version: of the format, 2 or 3.
        alignment: bytes on which tensors start.
        data_offset: where the tensor data starts in the file.
    """

    def __init__(self, path: Path, mapping: mmap.mmap) -> None:
        """Reads and checks everything before the tensor data; the file owns the mapping from here on."""
        self._path = path
        self._mapping: mmap.mmap | None = mapping
        self._view = memoryview(mapping)
        self._fingerprint: str | None = None
        try:
            self._parse()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Key to value; arrays of strings are `GgufStringArray`, arrays of numbers read-only numpy arrays."""
        return self._metadata

    @property
    def tensors(self) -> Mapping[str, TensorInfo]:
        """Name to facts, in the file's order."""
        return self._tensors

    def data(self, name: str) -> memoryview:
        """The bytes of one tensor as stored: a read-only view over the mapping, no copy.

        Raises:
            FileFormatError: the file has no such tensor.
            ClosedError: the file was closed.
        """
        tensor = self._tensors.get(name)
        if tensor is None:
            raise FileFormatError(f"{self._path}: tensor {name!r} is missing; the file is incomplete for its model")
        if self._mapping is None:
            raise ClosedError(f"{self._path}: tensor {name!r} was read after the file was closed")
        return self._view[tensor.offset : tensor.offset + tensor.nbytes]

    def fingerprint(self) -> str:
        """SHA-256 (hex) of everything before the tensor data: header, metadata and tensor table."""
        if self._fingerprint is None:
            if self._mapping is None:
                raise ClosedError(f"{self._path}: the fingerprint was asked for after the file was closed")
            self._fingerprint = hashlib.sha256(self._view[: self.data_offset]).hexdigest()
        return self._fingerprint

    def close(self) -> None:
        """Gives the mapping back. Views that are still alive stay valid and keep the mapping until they die."""
        mapping, self._mapping = self._mapping, None
        if mapping is None:
            return
        try:
            self._view.release()
            mapping.close()
        except BufferError:
            pass  # a view is alive: the mapping goes with the last one

    def __enter__(self) -> Self:
        """The file itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        self.close()

    def _parse(self) -> None:
        cursor = Cursor(self._path, self._view)
        self.version = _read_version(cursor)
        # A tensor takes at least a name (8 + 1 bytes), n_dims, one dim, type and offset.
        n_tensors = cursor.count("tensors", 33, _MAX_TENSORS)
        metadata = read_metadata(cursor, count_keys(cursor))
        _refuse_shards(self._path, metadata)
        self.alignment = _alignment(self._path, metadata)
        tensors = _read_tensors(cursor, n_tensors)
        # Without tensors (a vocabulary alone) the file may end before the padding does.
        self.data_offset = min(-(-cursor.position // self.alignment) * self.alignment, cursor.size)
        self._metadata = MappingProxyType(metadata)
        self._tensors = MappingProxyType(_place(self._path, tensors, self.data_offset, cursor.size, self.alignment))


def open_gguf(path: str | os.PathLike[str]) -> GgufFile:
    """Opens and checks a GGUF file.

    Raises:
        NotFoundError: there is no such file.
        FileFormatError: it is damaged, truncated, or no GGUF file at all.
        UnsupportedModelError: it is a shard, big-endian, or of a version or element type unknown here.
    """
    path = Path(path)
    try:
        # A FIFO would block when opened, a folder cannot be mapped: look before.
        facts = path.stat()
        if stat.S_ISREG(facts.st_mode) and facts.st_size:
            with path.open("rb") as file:
                return GgufFile(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"{path}: no such file; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path, or truncated to nothing meanwhile
        raise FileFormatError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if stat.S_ISDIR(facts.st_mode):
        raise FileFormatError(f"{path}: is a folder; give the .gguf file inside")
    if stat.S_ISREG(facts.st_mode):
        raise FileFormatError(f"{path}: is empty; fetch it again")
    raise FileFormatError(f"{path}: is not a regular file; give a .gguf file")


def _read_version(cursor: Cursor) -> int:
    head = bytes(cursor.buffer[:32])
    if head[:4] != _MAGIC:
        for start, verdict in _STRANGERS.items():
            if head.lstrip().lower().startswith(start.lower()):
                raise FileFormatError(f"{cursor.path}: {verdict}")
        raise FileFormatError(f"{cursor.path}: is not a GGUF file (it starts with {head[:4]!r}, not {_MAGIC!r})")
    cursor.take(len(_MAGIC))
    version = cursor.u32()
    if version in _VERSIONS:
        return version
    if version and version & 0xFFFF == 0:
        raise UnsupportedModelError(f"{cursor.path}: is a big-endian GGUF file; get the little-endian one")
    raise UnsupportedModelError(
        f"{cursor.path}: is GGUF version {version}, this engine reads 2 and 3; convert the model again"
    )


def _refuse_shards(path: Path, metadata: Mapping[str, Any]) -> None:
    count = metadata.get("split.count", 0)
    if isinstance(count, int) and count > 1:
        number = metadata.get("split.no", 0)
        shard = f"{number + 1} of {count}" if isinstance(number, int) else f"one of {count}"
        raise UnsupportedModelError(
            f"{path}: is shard {shard}; join all of them into one file (`llama-gguf-split --merge`) and open that"
        )


def _alignment(path: Path, metadata: Mapping[str, Any]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or isinstance(alignment, bool) or alignment < 8 or alignment & (alignment - 1):
        raise FileFormatError(
            f"{path}: general.alignment is {alignment!r}, not a power of two from 8 up; the file is damaged"
        )
    return alignment


def _read_tensors(cursor: Cursor, count: int) -> list[TensorInfo]:
    """Reads the tensor table; offsets are still relative to the data."""
    tensors: list[TensorInfo] = []
    for index in range(count):
        cursor.subject = f"tensor {index}"
        name = cursor.name(_MAX_NAME_BYTES)
        cursor.subject = f"tensor {name!r}"
        n_dims = cursor.u32()
        if not 1 <= n_dims <= _MAX_DIMS:
            cursor.fail(f"it has {n_dims} dimensions, 1 to {_MAX_DIMS} are possible")
        dims = [cursor.u64() for _ in range(n_dims)]
        number = cursor.u32()
        tensors.append(_tensor(cursor, name, dims, number, cursor.u64()))
    return tensors


def _tensor(cursor: Cursor, name: str, dims: list[int], number: int, offset: int) -> TensorInfo:
    elements = prod(dims)
    if elements == 0:
        cursor.fail(f"a dimension of {dims} is 0")
    if elements > _MAX_ELEMENTS:
        cursor.fail(f"its dimensions {dims} multiply to more elements than 63 bits can count")
    dtype = BY_NUMBER.get(number)
    if dtype is None:
        raise UnsupportedModelError(
            f"{cursor.path}: {cursor.subject} has element type number {number}, unknown to this version; "
            "get the model in another quantisation or update"
        )
    if dims[0] % dtype.block:
        cursor.fail(f"rows of {dims[0]} elements are no whole number of {dtype.name} blocks of {dtype.block}")
    return TensorInfo(name, dtype.name, tuple(reversed(dims)), elements // dtype.block * dtype.nbytes, offset)


def _place(path: Path, tensors: list[TensorInfo], start: int, size: int, alignment: int) -> dict[str, TensorInfo]:
    """Checks that all tensors lie inside [start, size), aligned and apart; makes their offsets absolute."""
    placed: dict[str, TensorInfo] = {}
    for tensor in tensors:
        where = f"{path}: tensor {tensor.name!r}"
        if tensor.name in placed:
            raise FileFormatError(f"{where}: it occurs twice; the file is damaged, fetch it again")
        if tensor.offset % alignment:
            raise FileFormatError(f"{where}: offset {tensor.offset} is no multiple of the alignment {alignment}")
        end = start + tensor.offset + tensor.nbytes
        if end > size:
            raise FileFormatError(
                f"{where}: it ends at byte {end}, the file at {size}; the file is truncated, fetch it again"
            )
        placed[tensor.name] = TensorInfo(tensor.name, tensor.dtype, tensor.shape, tensor.nbytes, start + tensor.offset)
    previous: TensorInfo | None = None
    for tensor in sorted(placed.values(), key=lambda t: t.offset):
        if previous and previous.offset + previous.nbytes > tensor.offset:
            raise FileFormatError(f"{path}: tensors {previous.name!r} and {tensor.name!r} overlap; fetch it again")
        previous = tensor
    return placed
