# SPDX-License-Identifier: Apache-2.0
"""From a row of logits to a token.

The draw is native, bias and penalties included (native/op/sample.h states the order). What is kept here is what it
needs to know of one answer: its parameters, its seed, and the tokens that have occurred. The number of a token in its
answer is the number of its draw, so a text depends on seed and logits alone, never on who else is in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from secrets import randbits

import numpy as np
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import InvalidParameterError
from smepilot.runtime.tiers import usable_tiers
from smepilot.types import GenerateParams


class Sampler:
    """Draws the tokens of one answer. `seed` is the one asked for, or a random one where none was."""

    def __init__(self, params: GenerateParams, vocab_size: int, ends: frozenset[int]) -> None:
        self.seed = randbits(53) if params.seed is None else params.seed  # 53 bits survive JSON readers
        self._params = params
        self._tiers = usable_tiers()
        bias = dict(params.logit_bias)
        if beyond := [token for token in bias if token >= vocab_size]:
            raise InvalidParameterError(
                f"logit_bias names token {beyond[0]}; the vocabulary has ids 0 to {vocab_size - 1}"
            )
        if params.ignore_eos:
            bias.update(dict.fromkeys(ends, -np.inf))
        self._bias_ids = np.fromiter(bias.keys(), np.int32, len(bias))
        self._bias_values = np.fromiter(bias.values(), np.float32, len(bias))
        penalties = (params.repetition_penalty, params.presence_penalty, params.frequency_penalty)
        self._penalises = penalties != (1, 0, 0)
        self._recent = np.empty(0, np.int32)  # prompt and answer, with room to grow
        self._known = 0

    def draw(self, row: NDArray[np.float32], prompt: Sequence[int], drawn: Sequence[int]) -> int:
        """The next token after `prompt` and `drawn`; raises NumericError if the row has NaN. `row` is not changed."""
        params = self._params
        return _native.sample(
            row,
            temperature=params.temperature,
            top_k=params.top_k,
            top_p=params.top_p,
            min_p=params.min_p,
            repetition_penalty=params.repetition_penalty,
            presence_penalty=params.presence_penalty,
            frequency_penalty=params.frequency_penalty,
            recent=self._occurred(prompt, drawn) if self._penalises else None,
            answer=len(drawn) if self._penalises else None,
            bias_ids=self._bias_ids,
            bias_values=self._bias_values,
            seed=self.seed,
            draw=len(drawn),
            tiers=self._tiers,
        )

    def _occurred(self, prompt: Sequence[int], drawn: Sequence[int]) -> NDArray[np.int32]:
        """Prompt and answer as int32; only what is new since the last draw is copied."""
        length = len(prompt) + len(drawn)
        if length > len(self._recent):
            self._recent = np.empty(length + 256, np.int32)
            self._known = 0
        if self._known < len(prompt):
            self._recent[: len(prompt)] = prompt
            self._known = len(prompt)
        self._recent[self._known : length] = drawn[self._known - len(prompt) :]
        self._known = length
        return self._recent[:length]
