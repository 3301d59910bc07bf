# SPDX-License-Identifier: Apache-2.0
"""`Runner`: one open model that computes one native step at a time.

Everything above it thinks in sequences and requests; everything below in rows of a batch. The runner joins the two:
a step takes chunks (some tokens of some sequences, each with its block table) and gives logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import ClosedError, ContextLengthError, InvalidParameterError
from smepilot.plan import PlanLimits, lower, make_plan
from smepilot.runtime import loader
from smepilot.runtime.loader import Fraction
from smepilot.runtime.tiers import usable_tiers

PAGE = 64
DEFAULT_CONTEXT = 8192
"""Context where the caller names none: the model's own, but no more than this."""

Want = Literal["none", "last", "all"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one sequence contributes to a step.

    `pages` is its block table (page i holds positions [64 i, 64 i + 64)), int32; `start` the position of the first
    of `tokens`, int32; `logits` which rows of logits are wanted.
    """

    pages: NDArray[np.int32]
    start: int
    tokens: NDArray[np.int32]
    logits: Want = "last"


class Runner:
    """An open model with its threads, KV pages and program. Steps come from one thread at a time."""

    def __init__(
        self,
        model: loader.Model,
        tiers: Sequence[str],
        *,
        threads: int | None,
        ctx: int,
        kv_dtype: str,
        max_batch: int,
        pages: int | None,
    ) -> None:
        """Takes over `model`; made by `open`."""
        config = model.config
        self.config = config
        self.ctx = ctx
        self.max_batch = max_batch
        self._model: loader.Model | None = model
        self._pool = _native.Pool(threads)
        self.threads: int = self._pool.threads
        blocks = -(-ctx // PAGE)
        self.kv = _native.KvPool(
            layers=config.n_layers,
            heads=config.n_kv_heads,
            head_dim=config.head_dim,
            dtype=kv_dtype,
            pages=pages or max(2 * blocks, 128),
        )
        partial_bytes = _native.attention_partial_bytes(
            heads=config.n_heads,
            kv_heads=config.n_kv_heads,
            head_dim=config.head_dim,
            workers=self.threads,
            max_spans=max_batch,
            max_blocks=blocks,
        )
        self.plan = make_plan(config, model.formats, PlanLimits(max_batch, ctx, self.threads), partial_bytes)
        self._program = _native.Program(
            self._pool,
            self.kv,
            tiers=tiers,
            arena_bytes=self.plan.arena_bytes,
            max_tokens=max_batch,
            context=ctx,
            vocab=config.vocab_size,
            heads=config.n_heads,
            kv_heads=config.n_kv_heads,
            head_dim=config.head_dim,
            d_model=config.d_model,
            owner=model.packed,
        )
        lower(self.plan, model.weights, self._program)
        self._logits = np.empty((0, config.vocab_size), np.float32)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        threads: int | None = None,
        ctx: int | None = None,
        kv_dtype: Literal["f16", "f32"] = "f16",
        max_batch: int = 512,
        pages: int | None = None,
        cache_dir: Path | None = None,
        on_progress: Fraction | None = None,
    ) -> Runner:
        """Opens a model file; the arguments are those of `Engine.open`.

        Raises:
            InvalidParameterError: An argument is out of range.
            ModelError: The file cannot be run.
            OutOfMemoryError: Pages or buffers cannot be had.
        """
        limits = {"threads": 256, "ctx": 1 << 22, "max_batch": 1 << 16, "pages": 1 << 24}
        for name, value in zip(limits, (threads, ctx, max_batch, pages), strict=True):
            most = limits[name]
            if value is not None and not 1 <= value <= most:
                raise InvalidParameterError(f"{name} is {value}; it must be between 1 and {most}")
        if kv_dtype not in ("f16", "f32"):
            raise InvalidParameterError(f"kv_dtype is {kv_dtype!r}; it must be 'f16' or 'f32'")
        tiers = usable_tiers()
        model = loader.load(path, cache_dir=cache_dir, on_progress=on_progress)
        try:
            limit = model.config.context_length
            if ctx is not None and ctx > limit:
                raise ContextLengthError(f"ctx is {ctx}, but {path.name} was made for at most {limit} tokens")
            context = min(limit, DEFAULT_CONTEXT) if ctx is None else ctx
            batch = min(max_batch, max(1, context))
            return cls(model, tiers, threads=threads, ctx=context, kv_dtype=kv_dtype, max_batch=batch, pages=pages)
        except BaseException:
            model.close()
            raise

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The model file's metadata."""
        return self._open().source.metadata

    def _open(self) -> loader.Model:
        if self._model is None:
            raise ClosedError("the model was used after close()")
        return self._model

    def step(self, chunks: Sequence[Chunk]) -> NDArray[np.float32]:
        """Computes all chunks in one native call, with the GIL released.

        Returns float32 [rows, vocab], the wanted logits in the order of the chunks: a view that is valid until the
        next step. The chunks' tokens together number at most `max_batch`.

        Raises:
            CancelledError: `cancel` was called; the chunks' tokens have not been computed.
            ContextLengthError: A chunk reaches beyond the context.
            InvalidParameterError: No chunk, a chunk without tokens, too many tokens, an unknown token id or page.
        """
        self._open()
        if not chunks or not all(len(chunk.tokens) for chunk in chunks):
            raise InvalidParameterError("a step needs chunks, and each chunk tokens")
        spans = np.empty((len(chunks), 4), np.int32)
        row = page = 0
        rows: list[int] = []
        for i, chunk in enumerate(chunks):
            n = len(chunk.tokens)
            spans[i] = (row, n, chunk.start, page)
            if chunk.logits == "all":
                rows.extend(range(row, row + n))
            elif chunk.logits == "last":
                rows.append(row + n - 1)
            row += n
            page += len(chunk.pages)
        if len(rows) > len(self._logits):
            self._logits = np.empty((len(rows), self.config.vocab_size), np.float32)
        logits = self._logits[: len(rows)]
        self._program.run(
            np.concatenate([c.tokens for c in chunks]).astype(np.int32, copy=False),
            np.concatenate([np.arange(c.start, c.start + len(c.tokens), dtype=np.int32) for c in chunks]),
            spans,
            np.concatenate([c.pages for c in chunks]).astype(np.int32, copy=False),
            np.asarray(rows, np.int32),
            logits,
        )
        return logits

    def cancel(self) -> None:
        """Stops the step in progress between two tiles; from any thread. Without one, does nothing."""
        self._program.cancel()

    def counts(self) -> dict[str, int]:
        """Calls of every kernel that has run, by name."""
        return self._program.counts()

    def seconds(self) -> dict[str, float]:
        """Seconds spent per kind of operator."""
        return self._program.seconds()

    def sequence(self) -> Handle:
        """A new, empty sequence for `forward`."""
        return Handle(self)

    def forward(
        self, parts: Sequence[tuple[Handle, Sequence[int]]], logits: Want = "last", *, copy: bool = True
    ) -> NDArray[np.float32]:
        """Appends tokens to sequences; as many native steps as `max_batch` asks for.

        Args:
            parts: Sequences and the token ids that each receives; every list has at least one.
            logits: Which logits to return: of each sequence's last token, of all tokens (sequence by sequence), none.
            copy: False allows a view that is valid until the next step, where one step computes all tokens.

        Returns:
            float32 [rows, vocab], the caller's own.

        Raises:
            ContextLengthError: The tokens of a sequence do not fit the context; none has been computed.
            CancelledError: `cancel` was called; the sequences hold the tokens of the steps before.
        """
        if not parts or not all(len(ids) for _, ids in parts):
            raise InvalidParameterError("forward needs sequences, and token ids for each")
        for handle, ids in parts:
            handle.require_room(len(ids))
        if sum(len(ids) for _, ids in parts) <= self.max_batch:
            rows = self.step([handle.chunk(ids, logits) for handle, ids in parts])
            for handle, ids in parts:
                handle.length += len(ids)
            return rows.copy() if copy else rows
        return self._in_steps(parts, logits)

    def _in_steps(self, parts: Sequence[tuple[Handle, Sequence[int]]], logits: Want) -> NDArray[np.float32]:
        """`forward` for more tokens than one step takes: each step is filled from the front of what is left."""
        counts = [{"none": 0, "last": 1, "all": len(ids)}[logits] for _, ids in parts]
        out = np.empty((sum(counts), self.config.vocab_size), np.float32)
        at = 0  # steps finish sequence after sequence, so rows arrive in order
        todo = [(handle, ids, 0) for handle, ids in parts]
        while todo:
            chunks, taken, room = [], [], self.max_batch
            for handle, ids, done in todo:
                n = min(room, len(ids) - done)
                if n == 0:
                    break
                want = "none" if logits == "last" and done + n < len(ids) else logits
                chunks.append(handle.chunk(ids[done : done + n], want))
                taken.append(n)
                room -= n
            rows = self.step(chunks)
            out[at : at + len(rows)] = rows
            at += len(rows)
            taken += [0] * (len(todo) - len(taken))
            for (handle, _, _), n in zip(todo, taken, strict=True):
                handle.length += n
            todo = [(h, ids, done + n) for (h, ids, done), n in zip(todo, taken, strict=True) if done + n < len(ids)]
        return out

    def close(self) -> None:
        """Ends the threads and gives memory and mappings back. A second call does nothing."""
        model, self._model = self._model, None
        if model is not None:
            self._pool.close()
            model.close()


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

    def chunk(self, ids: Sequence[int], logits: Want) -> Chunk:
        """The next tokens as a chunk, with pages for them; `length` is advanced by `forward` once they are computed."""
        try:
            tokens = np.asarray(ids, np.int32)
        except OverflowError as error:
            raise InvalidParameterError("a token id does not fit 32 bits") from error
        self.require_room(len(ids))
        while len(self._pages) * PAGE < self.length + len(ids):
            self._pages.append(self._runner.kv.alloc())
        return Chunk(np.asarray(self._pages, np.int32), self.length, tokens, logits)

    def truncate(self, length: int) -> None:
        """Forgets all tokens from position `length` on."""
        keep = -(-length // PAGE)
        for page in self._pages[keep:]:
            self._runner.kv.release(page)
        del self._pages[keep:]
        self.length = min(self.length, length)

    def free(self) -> None:
        """Gives all pages back."""
        self.truncate(0)
