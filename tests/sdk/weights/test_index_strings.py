# SPDX-License-Identifier: Apache-2.0
"""The native walk over length prefixes equals the obvious one, and stays inside its buffer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smepilot._native import index_strings

TEXTS = st.lists(st.binary(max_size=20), max_size=30)


def packed(texts: list[bytes]) -> bytes:
    return b"".join(len(text).to_bytes(8, "little") + text for text in texts)


@given(TEXTS, st.binary(max_size=9), st.binary(max_size=9))
def test_positions(texts: list[bytes], before: bytes, after: bytes) -> None:
    positions = index_strings(before + packed(texts) + after, len(before), len(texts)).tolist()
    expected = [len(before)]
    for text in texts:
        expected.append(expected[-1] + 8 + len(text))
    assert positions == expected


@given(TEXTS, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_lies(texts: list[bytes], offset: int, count: int) -> None:
    data = packed(texts) or b"\0"
    try:
        positions = index_strings(data, offset, count)
    except ValueError:
        return
    assert positions[0] == offset
    assert positions[-1] <= len(data)
    assert len(positions) == count + 1


@given(TEXTS.filter(bool), st.data())
def test_truncated(texts: list[bytes], data: st.DataObject) -> None:
    whole = packed(texts)
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]
    with pytest.raises(ValueError, match="string"):
        index_strings(cut, 0, len(texts))


def test_read_only_memory_is_enough() -> None:
    assert index_strings(memoryview(packed([b"abc"])).toreadonly(), 0, 1).tolist() == [0, 11]
