# SPDX-License-Identifier: Apache-2.0
"""What one native step computes: chunks of sequences, and the arrays that the native program reads.

Rows of a batch stand in the order that the program wants, prompts first where the model computes those in a class of
their own. Logits come in the order of the chunks, whatever the order of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smepilot.errors import InvalidParameterError
from smepilot.runtime.sequence import Role

Want = Literal["none", "last", "all"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one role that one sequence contributes to a step.

    `pages` is its block table (page i holds positions [64 i, 64 i + 64)), int32; `start` the position of the first
    of `tokens`, int32; `logits` which rows of logits are wanted. A sequence may contribute several chunks.
    """

    pages: NDArray[np.int32]
    start: int
    tokens: NDArray[np.int32]
    logits: Want = "last"
    role: Role = Role.PROMPT


@dataclass(frozen=True, slots=True)
class Batch:
    """The arguments of `_native.Program.run`, but for the logits' array."""

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    spans: NDArray[np.int32]
    pages: NDArray[np.int32]
    logit_rows: NDArray[np.int32]
    rowwise: int

    @classmethod
    def of(cls, chunks: Sequence[Chunk], *, rowwise: bool) -> Batch:
        """Lays chunks out as a batch; `rowwise` computes those of prompts in that class.

        Raises:
            InvalidParameterError: No chunk, or a chunk without tokens.
        """
        if not chunks or not all(len(chunk.tokens) for chunk in chunks):
            raise InvalidParameterError("a step needs chunks, and each chunk tokens")
        order = sorted(range(len(chunks)), key=lambda i: chunks[i].role) if rowwise else range(len(chunks))
        placed = [chunks[i] for i in order]
        spans = np.empty((len(placed), 4), np.int32)
        begins = [0] * len(chunks)
        row = page = 0
        for at, (i, chunk) in enumerate(zip(order, placed, strict=True)):
            begins[i] = row
            spans[at] = (row, len(chunk.tokens), chunk.start, page)
            row += len(chunk.tokens)
            page += len(chunk.pages)
        rows: list[int] = []
        for begin, chunk in zip(begins, chunks, strict=True):
            end = begin + len(chunk.tokens)
            rows.extend(range({"all": begin, "last": end - 1, "none": end}[chunk.logits], end))
        return cls(
            np.concatenate([c.tokens for c in placed]).astype(np.int32, copy=False),
            np.concatenate([np.arange(c.start, c.start + len(c.tokens), dtype=np.int32) for c in placed]),
            spans,
            np.concatenate([c.pages for c in placed]).astype(np.int32, copy=False),
            np.asarray(rows, np.int32),
            sum(len(c.tokens) for c in chunks if c.role == Role.PROMPT) if rowwise else 0,
        )
