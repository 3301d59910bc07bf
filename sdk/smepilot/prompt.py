# SPDX-License-Identifier: Apache-2.0
"""From what a caller says, text, token ids or messages, to the tokens of a prompt.

Text is tokenised as it is; messages are rendered by the model's own chat template first. Either way the tokenizer
puts BOS in front where the model wants it and the text does not bring it, so it is there once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from smepilot.errors import InvalidParameterError
from smepilot.text.template import ChatTemplate
from smepilot.text.tokenizer import from_metadata
from smepilot.types import Message, Seconds

Text = str | Sequence[int]


@dataclass(frozen=True)
class Prompt:
    """Token ids and roles of a prompt, and what making them took (`began` is a `perf_counter()` time)."""

    tokens: list[int]
    roles: bytes
    began: float
    seconds: Seconds


class Prompter:
    """The tokenizer and the chat template of one model; `cache` is the folder that keeps a built tokenizer."""

    def __init__(self, metadata: Mapping[str, Any], vocab_size: int, cache: Path | None) -> None:
        self.tokenizer = from_metadata(metadata, cache=cache)
        self._vocab_size = vocab_size
        self._template = ChatTemplate.from_metadata(metadata, self.tokenizer)

    def prepare(self, prompt: Text | None, messages: Sequence[Message] | None) -> Prompt:
        """The prompt of a request that is not part of a session; all its tokens have the prompt role."""
        began = perf_counter()
        if (prompt is None) == (messages is None):
            raise InvalidParameterError("give either a prompt or messages")
        if messages is not None:
            prompt = self.render(messages)
        rendered = perf_counter()
        tokens = self.tokenizer.encode(prompt) if isinstance(prompt, str) else self.checked(prompt or ())
        seconds = Seconds(template=rendered - began, tokenize=perf_counter() - rendered)
        return Prompt(tokens, bytes(len(tokens)), began, seconds)

    def render(self, messages: Sequence[Message]) -> str:
        """The text of a conversation up to where the model is to answer."""
        for message in messages:
            if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
                raise InvalidParameterError(f"message {message!r}; expected a mapping with role and content")
        if not messages:
            raise InvalidParameterError("messages is empty; give at least one message")
        return self._template.render(messages, add_generation_prompt=True)

    def checked(self, tokens: Sequence[int]) -> list[int]:
        """Token ids as a list of ints, each within the vocabulary."""
        ids = np.asarray(tokens if len(tokens) else np.empty(0, np.int64))
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise InvalidParameterError("token ids must be a flat sequence of integers")
        wrong = ids[(ids < 0) | (ids >= self._vocab_size)]
        if len(wrong):
            raise InvalidParameterError(f"token id {wrong[0]}; the vocabulary has ids 0 to {self._vocab_size - 1}")
        return [int(token) for token in ids]
