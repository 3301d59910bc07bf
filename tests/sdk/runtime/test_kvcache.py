# SPDX-License-Identifier: Apache-2.0
"""Pages: taken, cut, kept for idle sessions, and given to whoever needs them."""

from __future__ import annotations

from smepilot.runtime.kvcache import KvCache
from smepilot.runtime.sequence import Role, Sequence, pages_for
from tests.sdk.runtime.standin import StandinPool


def filled(cache: KvCache, tokens: list[int], roles: bytes | None = None) -> Sequence:
    sequence = Sequence()
    cache.begin(sequence, tokens, bytes(len(tokens)) if roles is None else roles)
    assert cache.reserve(sequence, len(tokens))
    sequence.computed = len(tokens)
    return sequence


def test_pages_for_whole_and_started_pages() -> None:
    assert [pages_for(n) for n in (0, 1, 64, 65, 128, 129)] == [0, 1, 1, 2, 2, 3]


def test_block_table_grows_and_holds_distinct_pages() -> None:
    sequence = filled(KvCache(StandinPool(40)), list(range(40)) * 64)
    assert len(set(sequence.table.tolist())) == len(sequence.table) == 40


def test_prefix_is_kept_and_the_rest_cut() -> None:
    pool = StandinPool(10)
    cache = KvCache(pool)
    sequence = filled(cache, list(range(40)) * 5)
    cache.keep(sequence)
    tokens = [*(list(range(40)) * 5)[:100], 9, 9]
    assert cache.begin(sequence, tokens, bytes(102)) == 100
    assert sequence.pages == 2
    assert pool.free == 8


def test_the_last_token_is_always_computed_again() -> None:
    cache = KvCache(StandinPool(4))
    sequence = filled(cache, [1, 2, 3])
    assert cache.begin(sequence, [1, 2, 3], bytes(3)) == 2


def test_another_role_is_another_key() -> None:
    cache = KvCache(StandinPool(4))
    sequence = filled(cache, [1, 2, 3, 4], bytes([Role.PROMPT, Role.PROMPT, Role.GENERATED, Role.GENERATED]))
    assert sequence.agreement([1, 2, 3, 4, 5], bytes(5)) == 2
    assert sequence.agreement([1, 2, 3, 4, 5], bytes([0, 0, 1, 1, 0])) == 4


def test_the_session_idle_for_longest_loses_its_pages_first() -> None:
    cache = KvCache(StandinPool(4))
    old, young = filled(cache, [1] * 100), filled(cache, [2] * 100)
    cache.keep(old)
    cache.keep(young)
    assert cache.available == 4
    assert cache.reserve(Sequence(), 64)
    assert (old.pages, old.computed) == (0, 0)
    assert (young.pages, young.computed) == (2, 100)
    assert old.tokens == [1] * 100


def test_a_reservation_that_fails_takes_nothing() -> None:
    pool = StandinPool(2)
    cache = KvCache(pool)
    sequence = Sequence()
    assert not cache.reserve(sequence, 200)
    assert (sequence.pages, pool.free) == (0, 2)
