# SPDX-License-Identifier: Apache-2.0
"""From events of the runtime to an answer: text, usage, and the two ways to wait for it.

`Answer` does no waiting of its own: it is fed events and returns chunks, so the blocking `Stream` and the
asynchronous generator share all of it. Text is decoded by the consumer, on the consumer's thread, while the engine
already computes the next token. A stop string is therefore found one step late: the request is abandoned, and what
was drawn meanwhile is dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Self

from smepilot.errors import CancelledError, SmePilotError
from smepilot.runtime.request import Event, Finish, Generation
from smepilot.types import Chunk, Completion, FinishReason, Usage

if TYPE_CHECKING:
    from smepilot.prompt import Prompt
    from smepilot.runtime.loop import Loop
    from smepilot.text.detok import StreamDecoder


class Answer:
    """The answer to one request as it grows."""

    def __init__(self, loop: Loop, request: Generation, decoder: StreamDecoder, prompt: Prompt) -> None:
        self._loop = loop
        self._request = request
        self._decoder = decoder
        self._prompt = prompt
        self._detokenize = 0.0
        self._text: list[str] = []
        self._seen = 0
        self.completion: Completion | None = None

    def feed(self, event: Event) -> Chunk | None:
        """The chunk that an event completes, if any; raises the error of a request that failed."""
        if isinstance(event, Finish):
            if event.error is not None:
                raise event.error
            return self._finish(event.reason, self._decode(len(self._request.drawn)))
        text = self._decode(self._seen + 1)
        if self._decoder.stopped is not None:
            self._loop.abandon(self._request)
            return self._finish("stop", text)
        return Chunk(text, (event,)) if text else None

    def interrupt(self) -> None:
        """Cancels the request, from any thread; its end comes as an event."""
        self._loop.cancel(self._request)

    def cancel(self) -> None:
        """Ends the answer where it is, without waiting for the event."""
        if self.completion is None:
            self.interrupt()
            self._finish("cancelled", "")

    def _decode(self, count: int) -> str:
        """The text that tokens up to `count` make safe to show, stopping at a stop string."""
        began = perf_counter()
        pieces = []
        while self._seen < count and self._decoder.stopped is None:
            pieces.append(self._decoder.push(self._request.drawn[self._seen]))
            self._seen += 1
        text = "".join(pieces)
        self._text.append(text)
        self._detokenize += perf_counter() - began
        return text

    def _finish(self, reason: FinishReason, text: str) -> Chunk:
        if self._decoder.stopped is None:
            rest = self._decoder.flush()
            self._text.append(rest)
            text += rest
        if self._decoder.stopped is not None:
            reason = "stop"
        self.completion = Completion(
            text="".join(self._text),
            tokens=tuple(self._request.drawn[: self._seen]),
            finish_reason=reason,
            usage=self._usage(),
            seed=self._request.sampler.seed,
        )
        return Chunk(text, (), reason, self.completion)

    def _usage(self) -> Usage:
        request, now = self._request, perf_counter()
        first = request.first_token
        seconds = replace(
            self._prompt.seconds,
            queue=max(0.0, (request.started or now) - request.submitted),
            prefill=first - request.started if first else 0.0,
            decode=request.last_token - first,
            detokenize=self._detokenize,
            total=now - self._prompt.began,
        )
        return Usage(
            prompt_tokens=len(request.tokens),
            cached_tokens=request.cached,
            completion_tokens=self._seen,
            seconds=seconds,
            time_to_first_token=first - self._prompt.began if first else None,
            peak_memory_bytes=peak_memory_bytes(),
        )


class Stream:
    """An answer as an iterator of chunks. Leaving it early (`close`, `with`, letting it go) cancels the request."""

    def __init__(
        self,
        answer: Answer,
        events: SimpleQueue[Event],
        alive: Callable[[], None],
        done: Callable[[Answer], None] | None = None,
    ) -> None:
        self.answer = answer
        self._events = events
        self._alive = alive
        self._done = done
        self._open = True

    @property
    def completion(self) -> Completion | None:
        """The whole answer once it has ended; None before, and after an error."""
        return self.answer.completion

    def result(self) -> Completion:
        """Waits for the end and returns the whole answer."""
        for _ in self:
            pass
        if self.answer.completion is None:
            raise CancelledError("the stream ended with an error, which was raised before; it has no result")
        return self.answer.completion

    def cancel(self) -> None:
        """Ends the answer, from any thread: whoever iterates gets a last chunk with finish reason "cancelled"."""
        self.answer.interrupt()

    def close(self) -> None:
        """Ends the answer, from the thread that iterates; the text so far is its completion."""
        if self._open:
            self.answer.cancel()
            self._end()

    def _end(self) -> None:
        self._open = False
        if self._done is not None:
            self._done(self.answer)

    def __iter__(self) -> Self:
        """The stream itself: it can be read once."""
        return self

    def __next__(self) -> Chunk:
        """Waits for the next chunk; raises the error of a request that failed."""
        while self._open:
            try:
                self._alive()
                chunk = self.answer.feed(self._events.get())
            except SmePilotError:
                self._end()
                raise
            except BaseException:  # Ctrl-C while waiting: the engine must not go on without a reader
                self.close()
                raise
            if self.answer.completion is not None:
                self._end()
            if chunk is not None:
                return chunk
        raise StopIteration

    def __enter__(self) -> Self:
        """The stream itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Cancels what is left."""
        self.close()

    def __del__(self) -> None:
        """Cancels what is left."""
        self.close()


def peak_memory_bytes() -> int | None:
    """Largest resident size of this process so far, where the system tells."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # kilobytes everywhere but on macOS
