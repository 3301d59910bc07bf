# SPDX-License-Identifier: Apache-2.0
"""The metadata of a GGUF file: keys with typed values, among them vocabularies of hundreds of thousands of strings.

Scalars and single strings become Python values. An array of numbers becomes a read-only numpy array (a copy: values
are not aligned in the file, and the copy of a vocabulary's scores takes less than a millisecond). An array of strings
becomes a `GgufStringArray`: only the positions of its elements are found when the file is opened, text is decoded
when asked for. Single strings may hold anything (bad UTF-8 is replaced, they are for people); elements of arrays are
tokens, so a bad one is an error when it is read as text, and `raw` always gives the bytes.

Nested arrays are allowed by the format and used by nobody; they are read, with a limit on depth and number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from smepilot._native import index_strings
from smepilot.errors import ClosedError, FileFormatError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smepilot.weights.cursor import Cursor

_BOOL, _STRING, _ARRAY = 7, 8, 9
_SCALARS = {
    number: struct.Struct("<" + code)
    for number, code in {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}.items()
}
_MAX_KEYS = 1 << 16
_MAX_KEY_BYTES = (1 << 16) - 1  # the format's own limit
_MAX_STRING_BYTES = 1 << 28  # whole tokenizer.json files are stored in one string
_MAX_DEPTH = 4
_MAX_NESTED = 1 << 16


class GgufStringArray(Sequence[str]):
    """Strings of a file, decoded when they are asked for; a sequence of str. Dies with its file."""

    __slots__ = ("_buffer", "_path", "_positions", "_subject")

    def __init__(self, path: Path, subject: str, buffer: memoryview, positions: NDArray[np.uint64]) -> None:
        """Positions are those of the length prefixes, and of the end: one more than there are strings."""
        self._path = path
        self._subject = subject
        self._buffer = buffer
        self._positions = positions

    def __len__(self) -> int:
        """The number of strings."""
        return len(self._positions) - 1

    def raw(self, index: int) -> bytes:
        """The bytes of one string, whatever they are."""
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"{self._subject}: element {index} of {count}")
        index %= count
        return self._bytes(int(self._positions[index]) + 8, int(self._positions[index + 1]))

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        """One string, or a list of them."""
        if isinstance(index, slice):
            return [self._text(i, self.raw(i)) for i in range(*index.indices(len(self)))]
        return self._text(index, self.raw(index))

    def __iter__(self) -> Iterator[str]:
        """All strings in order; several times faster than indexing."""
        first, last = int(self._positions[0]), int(self._positions[-1])
        blob = self._bytes(first, last)
        for index, (start, end) in enumerate(pairwise((self._positions - np.uint64(first)).tolist())):
            yield self._text(index, blob[start + 8 : end])

    def __repr__(self) -> str:
        """The first strings, so that a printed metadata mapping stays readable."""
        shown = ", ".join(repr(self.raw(i)) for i in range(min(3, len(self))))
        return f"<{len(self)} strings: {shown}{', …' if len(self) > 3 else ''}>"

    def _bytes(self, start: int, end: int) -> bytes:
        try:
            return bytes(self._buffer[start:end])
        except ValueError:
            raise ClosedError(f"{self._path}: {self._subject} was read after the file was closed") from None

    def _text(self, index: int, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise FileFormatError(
                f"{self._path}: {self._subject}: element {index} ({raw!r:.60}) is not UTF-8"
            ) from None


class _Reader:
    """Reads the values behind one cursor; counts nested arrays over the whole file."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.nested = 0

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self.cursor.scalar(_SCALARS[kind])
        if kind == _STRING:
            return self.cursor.string(_MAX_STRING_BYTES).decode(errors="replace")
        if kind == _BOOL:
            return self._flag()
        if kind == _ARRAY:
            return self._array(depth + 1)
        self.cursor.fail(f"unknown value type {kind}")

    def _flag(self) -> bool:
        byte = self.cursor.buffer[self.cursor.take(1)]
        if byte > 1:
            self.cursor.fail(f"a truth value of {byte}")
        return byte == 1

    def _array(self, depth: int) -> Any:
        kind, count = self.cursor.u32(), self.cursor.u64()
        if kind in _SCALARS:
            return self._numbers(np.dtype(_SCALARS[kind].format), count)
        if kind == _BOOL:
            flags = self._numbers(np.dtype(np.uint8), count)
            if flags.size and flags.max() > 1:
                self.cursor.fail("a truth value that is neither 0 nor 1")
            return flags.view(np.bool_)
        if kind == _STRING:
            return self._strings(count)
        if kind == _ARRAY:
            return self._nested(count, depth)
        self.cursor.fail(f"an array of unknown value type {kind}")

    def _numbers(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        start = self.cursor.take(count * dtype.itemsize)
        numbers = np.frombuffer(self.cursor.buffer, dtype, count, start).copy()
        numbers.flags.writeable = False
        return numbers

    def _strings(self, count: int) -> GgufStringArray:
        cursor = self.cursor
        if count > cursor.left // 8:
            cursor.fail(f"{count} strings announced, the {cursor.left} bytes that are left cannot hold them")
        try:
            positions = index_strings(cursor.buffer, cursor.position, count)
        except ValueError as error:
            cursor.fail(str(error))
        cursor.position = int(positions[-1])
        return GgufStringArray(cursor.path, cursor.subject, cursor.buffer, positions)

    def _nested(self, count: int, depth: int) -> list[Any]:
        self.nested += count
        if depth >= _MAX_DEPTH or self.nested > _MAX_NESTED:
            self.cursor.fail(f"arrays nested deeper than {_MAX_DEPTH} or more than {_MAX_NESTED} of them")
        return [self._array(depth + 1) for _ in range(count)]


def read_metadata(cursor: Cursor, count: int) -> dict[str, Any]:
    """Reads `count` keys with their values; the cursor stops behind the last."""
    reader = _Reader(cursor)
    metadata: dict[str, Any] = {}
    for index in range(count):
        cursor.subject = f"key {index}"
        key = cursor.name(_MAX_KEY_BYTES)
        cursor.subject = f"key {key!r}"
        if key in metadata:
            cursor.fail("it occurs twice")
        metadata[key] = reader.value(cursor.u32())
    return metadata


def count_keys(cursor: Cursor) -> int:
    """The number of keys, as the header announces it (a key takes 8 + 1 bytes, its type 4, its value 1 or more)."""
    return cursor.count("keys", 14, _MAX_KEYS)
