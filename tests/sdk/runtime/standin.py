# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the runner: a "model" whose logits are a hash of the tokens before them and of their roles.

It keeps both in KV pages as the real one keeps keys and values, and reads them back through the block table. So a
wrong page, position or role, or a page given to two sequences, changes the text, which a test notices by `==`. It can
be slow on purpose, be cancelled in the middle of a step, and fail for chosen tokens.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from smepilot.errors import CancelledError, OutOfMemoryError
from smepilot.runtime.batch import Chunk

VOCAB = 50
POISON = 49  # this token in a prompt gives NaN logits
BROKEN = 48  # this one makes the whole step fail
PAGE = 64


class StandinPool:
    """A pool of pages that hold `code`s; 0 is "nothing"."""

    def __init__(self, pages: int) -> None:
        self.total = pages
        self.content = np.zeros((pages, PAGE), dtype=np.int64)
        self._free = list(range(pages))

    @property
    def free(self) -> int:
        """Pages nobody holds."""
        return len(self._free)

    def alloc(self) -> int:
        """A zeroed page."""
        if not self._free:
            raise OutOfMemoryError("no page is free")
        page = self._free.pop()
        self.content[page] = 0
        return page

    def release(self, page: int) -> None:
        """Gives a page back."""
        assert page not in self._free, "a page was given back twice"
        self._free.append(page)


class StandinRunner:
    """The shape of `Runner`. `token_seconds` is the time one token takes, `steps` the sizes of all steps."""

    def __init__(self, *, pages: int = 64, ctx: int = 1024, max_batch: int = 512, token_seconds: float = 0.0) -> None:
        self.kv = StandinPool(pages)
        self.ctx, self.max_batch, self.threads = ctx, max_batch, 1
        self.config = SimpleNamespace(vocab_size=VOCAB, context_length=ctx)
        self.token_seconds = token_seconds
        self.steps: list[list[int]] = []
        self.closed = False
        self._cancel = threading.Event()

    def step(self, chunks: Sequence[Chunk]) -> NDArray[np.float32]:
        """Writes tokens to pages, then computes the rows wanted."""
        sizes = [len(chunk.tokens) for chunk in chunks]
        assert 0 < sum(sizes) <= self.max_batch
        self.steps.append(sizes)
        rows = []
        for chunk in chunks:
            if BROKEN in chunk.tokens:
                raise OSError("broken token")
            for offset, token in enumerate(chunk.tokens):
                self._work()
                position = chunk.start + offset
                self.kv.content[chunk.pages[position // PAGE], position % PAGE] = code(token, chunk.role)
                if chunk.logits == "all" or (chunk.logits == "last" and offset == len(chunk.tokens) - 1):
                    rows.append(self._logits(chunk.pages, position))
        self._cancel.clear()
        return np.array(rows, dtype=np.float32).reshape(len(rows), VOCAB)

    def _work(self) -> None:
        if self.token_seconds:
            time.sleep(self.token_seconds)
        if self._cancel.is_set():
            self._cancel.clear()
            raise CancelledError("the step was cancelled")

    def _logits(self, pages: NDArray[np.int32], position: int) -> NDArray[np.float32]:
        past = self.kv.content[pages].reshape(-1)[: position + 1]
        assert (past > 0).all(), "a position before this one was never computed"
        return logits_after([int(c) // 2 - 1 for c in past], bytes(int(c) % 2 for c in past))

    def cancel(self) -> None:
        """The running step, or the next one, raises CancelledError."""
        self._cancel.set()

    def counts(self) -> dict[str, int]:
        """One kernel, run once a step."""
        return {"standin": len(self.steps)}

    def close(self) -> None:
        """Marks the runner closed."""
        self.closed = True


def code(token: int, role: int) -> int:
    """A token and its role as they lie in a page."""
    return 2 * (token + 1) + role


def logits_after(tokens: Sequence[int], roles: bytes = b"") -> NDArray[np.float32]:
    """What the stand-in computes after these tokens, which are prompts if `roles` is empty, float32[VOCAB]."""
    if POISON in tokens:
        return np.full(VOCAB, np.nan, dtype=np.float32)
    seed = 0
    for token, role in zip(tokens, roles or bytes(len(tokens)), strict=True):
        seed = (seed * 1_000_003 + code(token, role)) & 0xFFFFFFFF
    logits = np.random.default_rng(seed).standard_normal(VOCAB).astype(np.float32)
    logits[[POISON, BROKEN]] = -np.inf
    return logits


def greedy(tokens: Sequence[int], count: int, roles: bytes = b"") -> list[int]:
    """The `count` tokens that greedy decoding gives after `tokens`: what any scheduling must reproduce."""
    text, of = list(tokens), roles or bytes(len(tokens))
    for _ in range(count):
        text.append(int(logits_after(text, of).argmax()))
        of += b"\1"
    return text[len(tokens) :]
