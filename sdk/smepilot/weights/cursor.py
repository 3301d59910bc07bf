# SPDX-License-Identifier: Apache-2.0
"""Reads little-endian values from a buffer that is not to be trusted.

A cursor knows the file it reads and what it is reading at the moment, so that every refusal names both. Nothing is
read before `take` has compared the length with what is left, and lengths are Python integers: a product that would
wrap in 64 bits is simply a large number here, larger than what is left.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NoReturn

from smepilot.errors import FileFormatError

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Cursor:
    """A position in `buffer`; `subject` is what the values around it belong to ("key 'general.name'")."""

    __slots__ = ("buffer", "path", "position", "size", "subject")

    def __init__(self, path: Path, buffer: memoryview) -> None:
        """Starts at the first byte."""
        self.path = path
        self.buffer = buffer
        self.size = len(buffer)
        self.position = 0
        self.subject = "header"

    def fail(self, reason: str) -> NoReturn:
        """Raises FileFormatError for the present subject."""
        raise FileFormatError(f"{self.path}: {self.subject}: {reason}; the file is damaged, fetch it again")

    @property
    def left(self) -> int:
        """Bytes between the position and the end."""
        return self.size - self.position

    def take(self, nbytes: int) -> int:
        """Steps over `nbytes` and returns where they start."""
        start = self.position
        if nbytes > self.size - start:
            self.fail(f"{nbytes} bytes expected at {start}, {self.size - start} are left")
        self.position = start + nbytes
        return start

    def scalar(self, form: struct.Struct) -> int | float | bool:
        """One number of the given form."""
        value: int | float | bool = form.unpack_from(self.buffer, self.take(form.size))[0]
        return value

    def u32(self) -> int:
        """One unsigned 32-bit number."""
        value: int = _U32.unpack_from(self.buffer, self.take(4))[0]
        return value

    def u64(self) -> int:
        """One unsigned 64-bit number."""
        value: int = _U64.unpack_from(self.buffer, self.take(8))[0]
        return value

    def count(self, what: str, smallest: int, most: int) -> int:
        """A number of things of at least `smallest` bytes each: refused if they cannot fit or exceed `most`."""
        value = self.u64()
        if value > most or value * smallest > self.left:
            self.fail(f"{value} {what} announced, the {self.left} bytes that are left cannot hold them")
        return value

    def string(self, most: int) -> bytes:
        """A string of at most `most` bytes behind its 64-bit length."""
        length = self.u64()
        if length > most or length > self.left:
            self.fail(f"a string of {length} bytes announced, {min(most, self.left)} are possible here")
        start = self.take(length)
        return bytes(self.buffer[start : start + length])

    def name(self, most: int) -> str:
        """A string that must be UTF-8 and not empty: a key or the name of a tensor."""
        try:
            text = self.string(most).decode()
        except UnicodeDecodeError:
            self.fail("a name that is not UTF-8")
        if not text:
            self.fail("an empty name")
        return text
