# SPDX-License-Identifier: Apache-2.0
"""Tokens to text as they come: whole characters only, and never a letter of a stop string.

Two things are held back. The bytes of a character whose rest is still to come: an emoji is often two or three tokens.
And the longest end of the text that may yet grow into a stop string, no more: text that can no longer become one is
given out at once. A stop string is found as if the text had come letter by letter: the one that is complete first
counts, the longer of two that end together, wherever the borders of tokens lie. So for any tokens

    "".join(pushes) + flush() == decode(all tokens), or its part before the stop string

also when the bytes are not UTF-8: Python's incremental decoder puts U+FFFD where a decoder of the whole would.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from smepilot.errors import InvalidParameterError
from smepilot.text.tokenizer import Tokenizer


class StreamDecoder:
    """Turns one answer's tokens into text.

    Attributes:
        stopped: the stop string that was met; None so far. From then on `push` and `flush` return "".
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: Iterable[str] | str = (),
        *,
        skip_special: bool = True,
        continuation: bool = True,
    ) -> None:
        """Starts an answer.

        Args:
            tokenizer: of the model that produces the tokens.
            stop: strings that end the answer; they are not part of it.
            skip_special: leave control tokens out, as in `Tokenizer.decode`.
            continuation: the tokens go on from a prompt, so a leading space is theirs, as in `Tokenizer.decode`.

        Raises:
            InvalidParameterError: a stop string is empty or not a string.
        """
        self._stops = (stop,) if isinstance(stop, str) else tuple(stop)
        for text in self._stops:
            if not isinstance(text, str) or not text:
                raise InvalidParameterError(f"stop string {text!r:.60} must be a text of at least one character")
        self._tokenizer = tokenizer
        self._show_special = not skip_special
        self._drop_space = tokenizer.space_prefix and not continuation
        self._characters = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.stopped: str | None = None

    def push(self, id: int) -> str:
        """Takes the next token and returns the text that is now certain, often ""."""
        data = self._tokenizer.token_bytes(id, special=self._show_special)
        if self._drop_space and data:
            self._drop_space = False
            data = data.removeprefix(b" ")
        return self._take(self._characters.decode(data), final=False)

    def flush(self) -> str:
        """Ends the answer and returns what was held back; half a character becomes U+FFFD."""
        return self._take(self._characters.decode(b"", final=True), final=True)

    def _take(self, text: str, *, final: bool) -> str:
        if self.stopped is not None:
            return ""
        if not self._stops:
            return text
        text = self._held + text
        self._held = ""
        if (found := self._first_stop(text)) is not None:
            start, self.stopped = found
            return text[:start]
        certain = len(text) if final else len(text) - self._unfinished(text)
        self._held = text[certain:]
        return text[:certain]

    def _first_stop(self, text: str) -> tuple[int, str] | None:
        """Where the stop string begins that is complete first, and which it is."""
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if not found:
            return None
        _, start, stop = min(found)
        return start, stop

    def _unfinished(self, text: str) -> int:
        """Length of the longest end of `text` that is the beginning of a stop string."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:length]):
                    longest = length
                    break
        return longest
