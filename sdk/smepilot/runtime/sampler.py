# SPDX-License-Identifier: Apache-2.0
"""From a row of logits to a token.

Penalties and bias touch few logits, so they are edits of a copy of the row, in float32, in this order: repetition
(prompt and answer; a positive logit is divided, a negative one multiplied), frequency and presence (answer only),
bias. The draw itself is native: top-k, then probabilities at the temperature, top-p, min-p, and one Philox number for
(seed, index of the token in the answer). So a text depends on seed and logits alone, never on who else is in the
batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from secrets import randbits

import numpy as np
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import InvalidParameterError
from smepilot.types import GenerateParams


class Sampler:
    """Draws the tokens of one answer. `seed` is the one asked for, or a random one where none was."""

    def __init__(self, params: GenerateParams, vocab_size: int, ends: frozenset[int]) -> None:
        self.seed = randbits(53) if params.seed is None else params.seed  # 53 bits survive JSON readers
        self._params = params
        bias = dict(params.logit_bias)
        if beyond := [token for token in bias if token >= vocab_size]:
            raise InvalidParameterError(
                f"logit_bias names token {beyond[0]}; the vocabulary has ids 0 to {vocab_size - 1}"
            )
        if params.ignore_eos:
            bias.update(dict.fromkeys(ends, -np.inf))
        self._biased = np.fromiter(bias.keys(), np.intp, len(bias))
        self._bias = np.fromiter(bias.values(), np.float32, len(bias))
        self._additive = params.presence_penalty != 0 or params.frequency_penalty != 0
        self._edits = bool(bias) or self._additive or params.repetition_penalty != 1
        self._counts: Counter[int] = Counter()  # of the answer
        self._counted = 0
        self._seen: NDArray[np.intp] | None = None  # distinct tokens of prompt and answer

    def draw(self, row: NDArray[np.float32], prompt: Sequence[int], drawn: Sequence[int]) -> int:
        """The next token after `prompt` and `drawn`; raises NumericError if the row has NaN. `row` is not changed."""
        params = self._params
        if self._edits:
            row = self._edited(row, prompt, drawn)
        return _native.sample(
            row,
            temperature=params.temperature,
            top_k=params.top_k,
            top_p=params.top_p,
            min_p=params.min_p,
            seed=self.seed,
            draw=len(drawn),
        )

    def _edited(self, row: NDArray[np.float32], prompt: Sequence[int], drawn: Sequence[int]) -> NDArray[np.float32]:
        params = self._params
        row = row.copy()
        new = drawn[self._counted :]
        self._counts.update(new)
        self._counted = len(drawn)
        if params.repetition_penalty != 1:
            seen = np.unique(np.asarray(prompt, np.intp)) if self._seen is None else self._seen
            self._seen = seen = np.union1d(seen, np.asarray(new, np.intp)) if new else seen
            penalty = np.float32(params.repetition_penalty)
            logits = row[seen]
            row[seen] = np.where(logits > 0, logits / penalty, logits * penalty)
        if self._additive and self._counts:
            tokens = np.fromiter(self._counts.keys(), np.intp, len(self._counts))
            times = np.fromiter(self._counts.values(), np.float32, len(self._counts))
            row[tokens] -= times * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty)
        row[self._biased] += self._bias
        return row
