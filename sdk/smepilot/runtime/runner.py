# SPDX-License-Identifier: Apache-2.0
"""`Runner`: one open model that computes one native step at a time.

Everything above it thinks in sequences and requests; everything below in rows of a batch. The runner joins the two:
a step takes chunks (some tokens of some sequences, each with its block table) and gives logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from smepilot import _native
from smepilot.errors import ClosedError, ContextLengthError, InvalidParameterError
from smepilot.plan import PlanLimits, lower, make_plan
from smepilot.runtime import loader, promptclass
from smepilot.runtime.batch import Batch, Chunk, Want
from smepilot.runtime.handle import Handle
from smepilot.runtime.loader import Fraction
from smepilot.runtime.sequence import PAGE_TOKENS, Role
from smepilot.runtime.tiers import usable_tiers
from smepilot.types import PromptClass, PromptClassChoice

DEFAULT_CONTEXT = 8192
"""Context where the caller names none: the model's own, but no more than this."""


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
        lent: bool = False,
        peaks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Made by `open`. Takes `model` over, unless it is `lent`; given `peaks` (see `lower`), it observes."""
        config = model.config
        self.config = config
        self.ctx = ctx
        self.max_batch = max_batch
        self._model: loader.Model | None = model
        self._lent = lent
        machine = _native.cpu_info()
        units = any(name.startswith("sme") for name in tiers)
        private = units and machine["sme_private"]
        matrix = machine["sme_workers"] if units and not private else 0
        self._pool = _native.Pool(threads, matrix=matrix)
        workers = self._pool.threads
        self.threads: int = workers - matrix
        blocks = -(-ctx // PAGE_TOKENS)
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
            workers=workers,
            max_spans=max_batch,
            max_blocks=blocks,
        )
        limits = PlanLimits(max_batch, ctx, workers, matrix)
        facts = model.rowwise if model.prompt_class == "rowwise" else {}
        self.plan = make_plan(config, model.formats, limits, partial_bytes, rowwise=facts, observe=bool(peaks))
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
            owner=model,
            private_units=private,
        )
        lower(self.plan, model.weights, self._program, rowwise=facts, peaks=peaks)
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
        prompt_class: PromptClassChoice = "auto",
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
        if prompt_class not in get_args(PromptClassChoice):
            raise InvalidParameterError(f"prompt_class is {prompt_class!r}; it must be 'auto', 'grouped' or 'rowwise'")
        tiers = usable_tiers()
        progress = promptclass.Progress(on_progress, prompt_class)
        model = loader.load(path, cache_dir=cache_dir, on_progress=progress.packing)
        try:
            limit = model.config.context_length
            if ctx is not None and ctx > limit:
                raise ContextLengthError(f"ctx is {ctx}, but {path.name} was made for at most {limit} tokens")
            model = promptclass.settle(model, prompt_class, cache_dir, tiers, threads, progress.calibrating)
            progress.end()
            context = min(limit, DEFAULT_CONTEXT) if ctx is None else ctx
            batch = min(max_batch, max(1, context))
            return cls(model, tiers, threads=threads, ctx=context, kv_dtype=kv_dtype, max_batch=batch, pages=pages)
        except BaseException:
            model.close()
            raise

    @property
    def prompt_class(self) -> PromptClass:
        """The class in which prompts are computed."""
        return self._open().prompt_class

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
        batch = Batch.of(chunks, rowwise=self._open().prompt_class == "rowwise")
        count = len(batch.logit_rows)
        if count > len(self._logits):
            self._logits = np.empty((count, self.config.vocab_size), np.float32)
        logits = self._logits[:count]
        self._program.run(batch.ids, batch.positions, batch.spans, batch.pages, batch.logit_rows, logits, batch.rowwise)
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
        self,
        parts: Sequence[tuple[Handle, Sequence[int]]],
        logits: Want = "last",
        *,
        role: Role = Role.PROMPT,
        copy: bool = True,
    ) -> NDArray[np.float32]:
        """Appends tokens to sequences; as many native steps as `max_batch` asks for.

        Args:
            parts: Sequences and the token ids that each receives; every list has at least one.
            logits: Which logits to return: of each sequence's last token, of all tokens (sequence by sequence), none.
            role: Of all these tokens.
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
            rows = self.step([handle.chunk(ids, logits, role) for handle, ids in parts])
            for handle, ids in parts:
                handle.length += len(ids)
            return rows.copy() if copy else rows
        return self._in_steps(parts, logits, role)

    def _in_steps(self, parts: Sequence[tuple[Handle, Sequence[int]]], logits: Want, role: Role) -> NDArray[np.float32]:
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
                chunks.append(handle.chunk(ids[done : done + n], want, role))
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
            if not self._lent:
                model.close()
