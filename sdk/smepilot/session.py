# SPDX-License-Identifier: Apache-2.0
"""A conversation over an engine.

    with engine.session(system="You are terse.") as chat:
        for chunk in chat.stream("Why is the sky blue?"):
            print(chunk.text, end="", flush=True)

Between turns the conversation keeps its keys and values, so a turn processes only what is new. What the model has
written stays the very tokens it chose: their text, tokenised again, may give others. The new turn is rendered as a
whole, and where its text begins with the text so far, only the rest is tokenised and added. Some templates change the
past (they trim answers, or drop their reasoning); then the whole is tokenised, and what agrees with the pages in
token and role is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Self, Unpack

from smepilot.errors import ClosedError, RequestError
from smepilot.prompt import Prompt
from smepilot.runtime.sequence import Role
from smepilot.runtime.sequence import Sequence as KvSequence
from smepilot.stream import Answer, Stream
from smepilot.types import Completion, GenerateParams, Message, Sampling, Seconds

if TYPE_CHECKING:
    from smepilot.engine import Engine


class Session:
    """One conversation; made by `Engine.session`. One turn at a time: a second one raises RequestError.

    Attributes:
        messages: the conversation so far, OpenAI style.
        last: the latest answer, None before the first.
        params: how answers are generated unless a turn says otherwise; may be replaced.
    """

    def __init__(self, engine: Engine, system: str | None, messages: Sequence[Message], params: GenerateParams) -> None:
        self._engine = engine
        self._sequence = KvSequence()
        self._answer: Answer | None = None  # the one under way
        self._closed = False
        head: list[Message] = [] if system is None else [{"role": "system", "content": system}]
        self._head = head + [dict(message) for message in messages]
        self.params = params
        self.messages: list[Message] = []
        self.last: Completion | None = None
        self.reset()

    def stream(self, text: str, **sampling: Unpack[Sampling]) -> Stream:
        """Says `text` and streams the answer. The turn becomes history when the answer ends, also when cancelled.

        Raises:
            ContextLengthError: the conversation no longer fits; it stays as it was, and `reset` makes room.
            RequestError: another turn of this session is being answered.
        """
        if self._closed:
            raise ClosedError("the session is closed; make another one")
        if self._answer is not None:
            raise RequestError("this session is answering already; wait for the answer or cancel it")
        params = self.params.with_changes(sampling)
        messages = [*self.messages, {"role": "user", "content": text}]
        rendered, prompt = self._prepare(messages)

        def done(answer: Answer) -> None:
            self._answer = None
            if answer.completion is not None:
                self._record(messages, rendered, prompt, answer.completion)

        stream = self._engine._stream(prompt, params, sequence=self._sequence, done=done)
        self._answer = stream.answer
        return stream

    def send(self, text: str, **sampling: Unpack[Sampling]) -> Completion:
        """Says `text` and waits for the whole answer."""
        return self.stream(text, **sampling).result()

    def reset(self) -> None:
        """Forgets all turns; system prompt and first messages stay."""
        self.messages = list(self._head)
        self.last = None
        self._text = ""
        self._tokens: list[int] = []
        self._roles = b""

    def close(self) -> None:
        """Cancels the answer that is under way, if any, and gives the conversation's KV pages back."""
        if not self._closed:
            self._closed = True
            if self._answer is not None:
                self._answer.interrupt()
            self._engine._loop.release(self._sequence)

    def __enter__(self) -> Self:
        """The session itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the session."""
        self.close()

    def __del__(self) -> None:
        """Closes the session."""
        self.close()

    def _prepare(self, messages: list[Message]) -> tuple[str, Prompt]:
        """Renders the conversation; tokenises what follows the tokens there are, or everything."""
        began = perf_counter()
        rendered = self._engine._prompter.render(messages)
        templated = perf_counter()
        if self._text and rendered.startswith(self._text):
            new = self._engine.tokenize(rendered[len(self._text) :], add_special=False)
            tokens, roles = self._tokens + new, self._roles + bytes(len(new))
        else:
            tokens = self._engine.tokenize(rendered)
            roles = bytes(len(tokens))
        seconds = Seconds(template=templated - began, tokenize=perf_counter() - templated)
        return rendered, Prompt(tokens, roles, began, seconds)

    def _record(self, messages: list[Message], rendered: str, prompt: Prompt, completion: Completion) -> None:
        """Makes an answered turn history; one that was cancelled before its first word leaves none."""
        self.last = completion
        if completion.finish_reason == "cancelled" and not completion.text:
            return
        self.messages = [*messages, {"role": "assistant", "content": completion.text}]
        kept, text = self._visible(completion)
        self._text = rendered + text
        self._tokens = prompt.tokens + kept
        self._roles = prompt.roles + bytes([Role.GENERATED]) * len(kept)

    def _visible(self, completion: Completion) -> tuple[list[int], str]:
        """The longest run of generated tokens whose text begins the answer, with that text.

        All of them as a rule; fewer where a stop string was cut off.
        """
        kept = list(completion.tokens)
        while not completion.text.startswith(text := self._engine._prompter.tokenizer.decode(kept, continuation=True)):
            kept.pop()
        return kept, text
