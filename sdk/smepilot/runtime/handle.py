# SPDX-License-Identifier: Apache-2.0
"""`Handle`: a sequence for those who drive a runner directly (measurements, calibration, tests), without the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from smepilot.errors import ContextLengthError, InvalidParameterError
from smepilot.runtime.batch import Chunk, Want
from smepilot.runtime.sequence import PAGE_TOKENS, Role

if TYPE_CHECKING:
    from smepilot.runtime.runner import Runner


class Handle:
    """A sequence that `Runner.forward` appends to: its length and its KV pages."""

    def __init__(self, runner: Runner) -> None:
        """Made by `Runner.sequence`."""
        self._runner = runner
        self._pages: list[int] = []
        self.length = 0

    def require_room(self, count: int) -> None:
        """Raises ContextLengthError if `count` more tokens do not fit the context."""
        if self.length + count > self._runner.ctx:
            raise ContextLengthError(f"{self.length + count} tokens do not fit the context of {self._runner.ctx}")

    def chunk(self, ids: Sequence[int], logits: Want, role: Role = Role.PROMPT) -> Chunk:
        """The next tokens as a chunk, with pages for them; `length` is advanced by `forward` once they are computed."""
        try:
            tokens = np.asarray(ids, np.int32)
        except OverflowError as error:
            raise InvalidParameterError("a token id does not fit 32 bits") from error
        self.require_room(len(ids))
        while len(self._pages) * PAGE_TOKENS < self.length + len(ids):
            self._pages.append(self._runner.kv.alloc())
        return Chunk(np.asarray(self._pages, np.int32), self.length, tokens, logits, role)

    def truncate(self, length: int) -> None:
        """Forgets all tokens from position `length` on."""
        keep = -(-length // PAGE_TOKENS)
        for page in self._pages[keep:]:
            self._runner.kv.release(page)
        del self._pages[keep:]
        self.length = min(self.length, length)

    def free(self) -> None:
        """Gives all pages back."""
        self.truncate(0)
