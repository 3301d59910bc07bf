# SPDX-License-Identifier: Apache-2.0
"""The engine: one open model that answers prompts, streams, sessions and questions about its logits.

    engine = Engine.open("smollm2:135m")
    print(engine.complete("The capital of France is", max_tokens=16).text)
    engine.close()

An engine may be used from any number of threads at once; their requests are batched. What all the ways to ask share
happens here: a prompt becomes token ids, is checked against the context, and goes to the runtime thread
(`runtime/loop.py`).
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from smepilot.errors import ContextLengthError, InvalidParameterError, OutOfMemoryError
from smepilot.prompt import Prompt, Prompter, Text
from smepilot.runtime.loop import Loop
from smepilot.runtime.request import Event, Generation
from smepilot.runtime.sampler import Sampler
from smepilot.runtime.sequence import Role
from smepilot.stream import Answer, Stream
from smepilot.types import (
    Calibration,
    Chunk,
    Completion,
    GenerateParams,
    Message,
    Perplexity,
    PromptClass,
    PromptClassChoice,
    Sampling,
    TokenRole,
)

if TYPE_CHECKING:
    from smepilot.runtime.runner import Runner
    from smepilot.runtime.sequence import Sequence as KvSequence
    from smepilot.session import Session


class Engine:
    """One open model. Made by `Engine.open`; a context manager that closes itself.

    Attributes:
        name: what `open` was given.
        config: the model's sizes.
        context_length: most tokens of prompt and answer together.
        threads: worker threads.
        prompt_class: "grouped" or "rowwise": how prompts are computed; answers are always grouped.
    """

    def __init__(self, runner: Runner, cache_dir: Path | None, name: str) -> None:
        self.name = name
        self.config = runner.config
        self.context_length = runner.ctx
        self.threads = runner.threads
        self.prompt_class: PromptClass = runner.prompt_class
        self._runner = runner
        self._prompter = Prompter(runner.metadata, runner.config.vocab_size, cache_dir)
        self._loop = Loop(runner)
        # When the engine is collected or the interpreter leaves.
        weakref.finalize(self, self._loop.close, quietly=True)

    @classmethod
    def open(
        cls,
        model: str | Path,
        *,
        threads: int | None = None,
        ctx: int | None = None,
        kv_dtype: Literal["f16", "f32"] = "f16",
        max_batch: int = 512,
        pages: int | None = None,
        cache: bool | str | Path = True,
        prompt_class: PromptClassChoice = "auto",
        on_progress: Callable[[float], None] | None = None,
    ) -> Engine:
        """Opens a model, packing its weights on the first start.

        Args:
            model: a catalog name that was pulled, or the path of a .gguf file.
            threads: worker threads; None: one for each physical core this process may use.
            ctx: most tokens of prompt and answer together; None: the model's own, within reason.
            kv_dtype: how keys and values are kept.
            max_batch: most tokens that one native step computes.
            pages: KV pages of 64 tokens for all requests together; None: enough for `ctx`.
            cache: where packed weights and tokenizer are kept: True, the usual place; False, nowhere; or a folder.
            prompt_class: how prompts are computed: "grouped", int8 with a scale for every 32 columns, like answers;
                "rowwise", with one for each row, which is faster; "auto", rowwise where that was measured to cost at
                most one per cent of perplexity.
            on_progress: called with the fraction done while weights are packed and the model is calibrated.

        Raises:
            NotFoundError: no such model; the message says how to get it.
            ModelError: the file is damaged, or of a kind this version cannot run.
            InvalidParameterError: an argument is out of range, or the model has no rowwise class.
            OutOfMemoryError: the model does not fit.
        """
        from smepilot.models.store import Store
        from smepilot.runtime.runner import Runner

        store = Store()
        path = store.resolve(str(model))
        usual = store.cache_dir(path) if cache is True else None
        cache_dir = usual if isinstance(cache, bool) else Path(cache)
        runner = Runner.open(
            path,
            threads=threads,
            ctx=ctx,
            kv_dtype=kv_dtype,
            max_batch=max_batch,
            pages=pages,
            cache_dir=cache_dir,
            prompt_class=store.prompt_class(str(model), prompt_class),
            on_progress=on_progress,
        )
        try:
            return cls(runner, cache_dir, str(model))
        except BaseException:
            runner.close()
            raise

    # ---- asking

    def complete(
        self, prompt: Text | None = None, *, messages: Sequence[Message] | None = None, **sampling: Unpack[Sampling]
    ) -> Completion:
        """Answers a prompt (text or token ids, taken as it is) or messages (rendered by the model's chat template).

        Keywords are those of `GenerateParams`; an unknown one raises TypeError.

        Raises:
            ContextLengthError: the prompt leaves no room for an answer; the message says both numbers.
            InvalidParameterError: a keyword is outside its range, or the prompt is empty.
        """
        params = GenerateParams(**sampling)
        return self._stream(self._prompter.prepare(prompt, messages), params, quiet=not params.stops).result()

    def stream(
        self, prompt: Text | None = None, *, messages: Sequence[Message] | None = None, **sampling: Unpack[Sampling]
    ) -> Stream:
        """Like `complete`, piece by piece: an iterator of `Chunk` that can be cancelled from any thread."""
        params = GenerateParams(**sampling)
        return self._stream(self._prompter.prepare(prompt, messages), params)

    async def astream(
        self, prompt: Text | None = None, *, messages: Sequence[Message] | None = None, **sampling: Unpack[Sampling]
    ) -> AsyncIterator[Chunk]:
        """Like `stream`, for asyncio. Cancelling the task or closing the generator cancels the request."""
        import asyncio

        params = GenerateParams(**sampling)
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[Event] = asyncio.Queue()

        def sink(event: Event) -> None:
            with suppress(RuntimeError):  # the event loop is closed: the reader is gone
                loop.call_soon_threadsafe(events.put_nowait, event)

        prepared = await asyncio.to_thread(self._prompter.prepare, prompt, messages)
        answer = self._start(prepared, params, sink)
        try:
            while answer.completion is None:
                chunk = answer.feed(await events.get())
                if chunk is not None:
                    yield chunk
        finally:
            answer.cancel()

    def session(
        self, system: str | None = None, *, messages: Sequence[Message] = (), **sampling: Unpack[Sampling]
    ) -> Session:
        """A conversation that keeps its keys and values between turns; `sampling` are its defaults."""
        from smepilot.session import Session

        return Session(self, system, messages, GenerateParams(**sampling))

    def cancel(self) -> None:
        """Ends every request there is, from any thread; the next one works as ever."""
        self._loop.cancel_all()

    # ---- tokens and logits

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = True) -> list[int]:
        """Token ids of `text`; `add_special` puts BOS in front where the model wants it and the text has none."""
        return self._prompter.tokenizer.encode(text, add_special=add_special, parse_special=parse_special)

    def detokenize(self, tokens: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of token ids."""
        return self._prompter.tokenizer.decode(self._prompter.checked(tokens), skip_special=skip_special)

    def logits(self, tokens: Sequence[int], *, role: TokenRole = "prompt") -> NDArray[np.float32]:
        """Logits after each of the token ids, float32[len(tokens), vocabulary].

        `role` says whether they count as a prompt or as generated, which selects the class they are computed in.
        """
        from smepilot.runtime.score import score

        ids = self._prompter.checked(tokens)
        self._check_fits(len(ids), answer=0)
        result = np.empty((len(ids), self.config.vocab_size), dtype=np.float32)

        def keep(start: int, rows: NDArray[np.float32]) -> None:
            result[start : start + len(rows)] = rows

        if ids:
            score(self._loop, ids, keep, _role(role))
        return result

    def perplexity(
        self,
        text: Text,
        *,
        window: int | None = None,
        role: TokenRole = "prompt",
        on_progress: Callable[[float], None] | None = None,
    ) -> Perplexity:
        """How well the model predicts a text: exp of the mean negative log-likelihood of its tokens but the first.

        Texts longer than `window` tokens (None: the context) are read in windows that overlap by half; each
        token is scored once, with at least half a window before it. `role` is as for `logits`. `on_progress` gets the
        fraction done.
        """
        from smepilot.runtime.score import perplexity

        began = perf_counter()
        tokens = self.tokenize(text) if isinstance(text, str) else self._prompter.checked(text)
        limit = min(window or self._loop.capacity, self._loop.capacity)
        if len(tokens) < 2 or limit < 2:
            raise InvalidParameterError(f"perplexity of {len(tokens)} tokens in windows of {limit}; both must be >= 2")
        nll = perplexity(self._loop, tokens, limit, on_progress, _role(role))
        return Perplexity(float(np.exp(nll)), nll, len(tokens) - 1, perf_counter() - began)

    # ---- what it is

    def kernel_counts(self) -> dict[str, int]:
        """How often each native kernel has run since the engine was opened."""
        return self._runner.counts()

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The model file's metadata."""
        return self._runner.metadata

    def close(self) -> None:
        """Ends all requests with ClosedError and frees the model; may be called again, and never waits long."""
        self._loop.close()

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the engine."""
        self.close()

    # ---- shared with sessions

    def _start(
        self,
        prompt: Prompt,
        params: GenerateParams,
        sink: Callable[[Event], None],
        *,
        sequence: KvSequence | None = None,
        quiet: bool = False,
    ) -> Answer:
        from smepilot.text.detok import StreamDecoder

        if not prompt.tokens:
            raise InvalidParameterError("the prompt is empty, and the model adds no BOS token; give some text")
        self._check_fits(len(prompt.tokens), answer=1)
        request = Generation(
            prompt.tokens,
            Sampler(params, self.config.vocab_size, self._prompter.tokenizer.eos_ids),
            sink,
            ends=frozenset() if params.ignore_eos else self._prompter.tokenizer.eos_ids,
            max_tokens=params.max_tokens,
            capacity=self._loop.capacity,
            roles=prompt.roles,
            sequence=sequence,
            keep=sequence is not None,
            quiet=quiet,
        )
        answer = Answer(self._loop, request, StreamDecoder(self._prompter.tokenizer, params.stops), prompt)
        self._loop.submit(request)
        return answer

    def _stream(
        self,
        prompt: Prompt,
        params: GenerateParams,
        *,
        sequence: KvSequence | None = None,
        quiet: bool = False,
        done: Callable[[Answer], None] | None = None,
    ) -> Stream:
        events: SimpleQueue[Event] = SimpleQueue()
        answer = self._start(prompt, params, events.put, sequence=sequence, quiet=quiet)
        return Stream(answer, events, self._loop.check_process, done)

    def _check_fits(self, tokens: int, *, answer: int) -> None:
        """Refuses what the context or the KV pool cannot hold together with `answer` more tokens."""
        if tokens + answer > self.context_length:
            raise ContextLengthError(
                f"the prompt has {tokens} tokens, the context holds {self.context_length} with the answer; "
                f"shorten it or open the engine with a larger ctx"
            )
        if tokens + answer > self._loop.capacity:
            raise OutOfMemoryError(
                f"the prompt has {tokens} tokens, the KV pool holds {self._loop.capacity}; "
                f"open the engine with more pages"
            )


def calibration(model: str | Path, *, cache: str | Path | None = None) -> Calibration | None:
    """What was measured of a model's classes for prompts when it was first opened, without opening it.

    Args:
        model: as for `Engine.open`.
        cache: the folder that `Engine.open` was given; None for the usual one.

    Returns:
        None where nothing has been measured yet, or no layer is quantised.
    """
    from smepilot.models.store import Store
    from smepilot.runtime.promptclass import peek

    store = Store()
    path = store.resolve(str(model))
    return peek(path, store.cache_dir(path) if cache is None else Path(cache))


def _role(name: TokenRole) -> Role:
    if name not in ("prompt", "generated"):
        raise InvalidParameterError(f"role is {name!r}; it must be 'prompt' or 'generated'")
    return Role[name.upper()]
