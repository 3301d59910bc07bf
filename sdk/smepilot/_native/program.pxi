# SPDX-License-Identifier: Apache-2.0
# Native programs: lowered execution plans. Offsets are bytes in the arena; -1 marks an absent form of an activation.

from libc.stdlib cimport free as c_free, malloc as c_malloc


def attention_partial_bytes(*, heads: int, kv_heads: int, head_dim: int, workers: int, max_spans: int,
                            max_blocks: int) -> int:
    """Arena bytes for the partial results of attention split over key blocks."""
    return sp_attention_partial_bytes(heads, kv_heads, head_dim, workers, max_spans, max_blocks)


cdef sp_linear as_linear(linear) except *:
    cdef sp_linear out
    address, format, k, rows, inv, scale = linear
    out.panels = <const uint8_t *><size_t>address
    out.layout = layout_of(format, k)
    out.rows = rows
    out.inv, out.scale = <const float *><size_t>inv, <const float *><size_t>scale
    return out


cdef class Program:
    """A native program over one arena, for one model.

    A linear layer is (address of panels, format, k, rows, addresses of `inv` and `scale` or 0). An activation matrix is
    k, then offsets: rows; int8 values; scales, negated sums and scaled sums of grouped rows; scales, negated sums and
    outliers of rowwise rows; counters; then the addresses of s and u, or 0, and the outlier columns.

    `matrix_rows`, set before a step is added: rows of prompts from which matrix units' workers take part in it; 0: they
    do not. Keeps its pool, pages and `owner` (whatever holds the packed weights' memory) alive. One run at a time; `cancel`
    may come from any thread.
    """

    cdef sp_program *ptr
    cdef Pool pool
    cdef KvPool kv
    cdef object owner
    cdef float *inv_freq
    cdef list columns  # arrays that steps point into
    cdef sp_kernel_set kernels[SP_KIND_COUNT]
    cdef int32_t vocab
    cdef int32_t max_tokens
    cdef int32_t context
    cdef public uint32_t matrix_rows

    def __cinit__(self, pool: Pool, kv: KvPool, *, tiers: _Sequence[str], arena_bytes: int, max_tokens: int,
                  context: int, vocab: int, heads: int, kv_heads: int, head_dim: int, d_model: int, owner: object,
                  private_units: bool = False):
        if pool.counters < SP_COUNTERS:
            raise _errors.InvalidParameterError(f"the pool counts {pool.counters} kernels; {SP_COUNTERS} needed")
        self.pool, self.kv, self.owner, self.columns = pool, kv, owner, []
        self.vocab, self.max_tokens, self.context = vocab, max_tokens, context
        sp_run_kernels(self.kernels, tier_bits(tiers), private_units)
        check(sp_pool_reserve_scratch(pool.ptr, sp_op_scratch_bytes(max_tokens, heads, kv_heads, head_dim, d_model)),
              "reserving the workers' scratch memory")
        check(sp_program_create(&self.ptr, pool.ptr, kv.ptr, self.kernels, arena_bytes), "making the program")

    def __dealloc__(self):
        sp_program_destroy(self.ptr)
        c_free(self.inv_freq)

    cdef int add(self, sp_step *step) except -1:
        step.matrix_rows = self.matrix_rows
        return check(sp_program_add(self.ptr, step), "adding a step")

    cdef sp_act act(self, act) except *:
        cdef sp_act out
        cdef int32_t[::1] columns
        at = [<size_t>(-1) if value < 0 else value for value in act[1:10]]
        out.k = act[0]
        out.rows_at, out.q_at, out.d_at, out.neg_at, out.sum_at = at[:5]
        out.scale_at, out.row_neg_at, out.outliers_at, out.arrived_at = at[5:]
        s, u, outliers = act[10:]
        out.smooth = sp_smooth(<const float *><size_t>s, <const float *><size_t>u, NULL, len(outliers))
        if s and out.k > SP_ROWWISE_K or len(outliers) > SP_OUTLIERS:
            raise _errors.InvalidParameterError(f"no rowwise form for {out.k} columns, {len(outliers)} of them outliers")
        if any(not 0 <= column < out.k for column in outliers):
            raise _errors.InvalidParameterError(f"an outlier column of {outliers} is outside of {out.k} columns")
        if outliers:
            columns = _array("i", outliers)
            self.columns.append(columns)
            out.smooth.outliers = &columns[0]
        return out

    def add_embed(self, table, x_at: int, cos_at: int, sin_at: int, inv_freq: _Sequence[float]) -> None:
        """Token ids to rows of x, positions to cosines and sines."""
        cdef sp_step step
        cdef size_t i
        self.inv_freq = <float *>c_malloc(len(inv_freq) * sizeof(float))
        if self.inv_freq == NULL:
            raise _errors.OutOfMemoryError("no memory for the rotary frequencies")
        for i in range(<size_t>len(inv_freq)):
            self.inv_freq[i] = inv_freq[i]
        step.kind = SP_OP_EMBED
        step.u.embed = sp_embed(as_linear(table), x_at, cos_at, sin_at, self.inv_freq, len(inv_freq))
        self.add(&step)

    def add_norm(self, weight: int, eps: float, x_at: int, out, gather: bool) -> None:
        """RMS norm of x, or of the rows whose logits are wanted."""
        cdef sp_step step
        step.kind = SP_OP_NORM
        step.u.norm = sp_norm(<const float *><size_t>weight, eps, x_at, self.act(out), gather)
        self.add(&step)

    def add_qkv(self, linear, act, q_at: int, cos_at: int, sin_at: int, layer: int, head_dim: int,
                q_scale: float) -> None:
        """Q, K and V, rotated, K and V into their pages."""
        cdef sp_step step
        cdef int i
        step.kind = SP_OP_QKV
        for i in range(3):
            step.u.qkv.weights[i] = as_linear(linear[i])
        step.u.qkv.in_ = self.act(act)
        step.u.qkv.q_at, step.u.qkv.cos_at, step.u.qkv.sin_at = q_at, cos_at, sin_at
        step.u.qkv.layer, step.u.qkv.head_dim, step.u.qkv.q_scale = layer, head_dim, q_scale
        self.add(&step)

    def add_attention(self, q_at: int, out, layer: int, heads, partial_at: int) -> None:
        """Attention; `heads` is (query heads, key/value heads, head size)."""
        cdef sp_step step
        step.kind = SP_OP_ATTENTION
        step.u.attention = sp_attention(q_at, self.act(out), layer, heads[0], heads[1], heads[2], partial_at)
        self.add(&step)

    def add_project(self, linear, act, x_at: int) -> None:
        """x += W h."""
        cdef sp_step step
        step.kind = SP_OP_PROJECT
        step.u.project = sp_project(as_linear(linear), self.act(act), x_at)
        self.add(&step)

    def add_gate_up(self, gate, up, act, out) -> None:
        """silu(gate h) * (up h)."""
        cdef sp_step step
        step.kind = SP_OP_GATE_UP
        step.u.gate_up = sp_gate_up(as_linear(gate), as_linear(up), self.act(act), self.act(out))
        self.add(&step)

    def add_logits(self, linear, act) -> None:
        """Logits of the wanted rows."""
        cdef sp_step step
        step.kind = SP_OP_LOGITS
        step.u.logits = sp_logits(as_linear(linear), self.act(act))
        self.add(&step)

    def add_observe(self, act, peaks: int) -> None:
        """Raises float32 [k] at address `peaks` to the largest |x| of each column; the memory is the caller's."""
        cdef sp_step step
        step.kind = SP_OP_OBSERVE
        step.u.observe = sp_observe(self.act(act), <float *><size_t>peaks)
        self.add(&step)

    def run(self, const int32_t[::1] ids not None, const int32_t[::1] positions not None,
            const int32_t[:, ::1] spans not None, const int32_t[::1] pages not None,
            const int32_t[::1] logit_rows not None, float[:, ::1] logits not None, rowwise: int = 0) -> None:
        """One forward pass, with the GIL released.

        ids, positions: int32 [tokens]. spans: int32 [n][4] of first row, rows, first position, and where the span's
        block table begins in `pages`. logit_rows: int32 [m], rows whose logits go to logits: float32 [m][vocab].
        rowwise: leading rows to compute in the rowwise class, where layers have one; a span begins behind them.
        Raises InvalidParameterError for anything out of range, CancelledError after `cancel`.
        """
        cdef sp_batch batch
        cdef const int32_t *wanted = NULL
        cdef float *out = NULL
        cdef Py_ssize_t i, tokens = ids.shape[0], count = spans.shape[0]
        if not 0 < tokens <= self.max_tokens or positions.shape[0] != tokens or count < 1 or count > tokens:
            raise _errors.InvalidParameterError(f"a step takes 1 to {self.max_tokens} tokens, not {tokens}")
        if logit_rows.shape[0] > tokens:
            raise _errors.InvalidParameterError(f"logits wanted of {logit_rows.shape[0]} rows of {tokens}")
        if logits.shape[0] < logit_rows.shape[0] or (logit_rows.shape[0] and logits.shape[1] != self.vocab):
            raise _errors.InvalidParameterError("run: the logits array has the wrong shape")
        for i in range(tokens):
            if not 0 <= ids[i] < self.vocab:
                raise _errors.InvalidParameterError(f"token id {ids[i]} is outside the vocabulary of {self.vocab}")
        for i in range(logit_rows.shape[0]):
            if not 0 <= logit_rows[i] < tokens:
                raise _errors.InvalidParameterError(f"logits wanted of row {logit_rows[i]} of {tokens}")
        if logit_rows.shape[0]:
            wanted, out = &logit_rows[0], &logits[0, 0]
        cdef sp_span *list = <sp_span *>c_malloc(count * sizeof(sp_span))
        cdef sp_status status
        if list == NULL:
            raise _errors.OutOfMemoryError("no memory for the batch")
        try:
            self.fill_spans(list, positions, spans, pages, rowwise)
            batch = sp_batch(tokens, &ids[0], &positions[0], list, count,
                             wanted, logit_rows.shape[0], out, rowwise)
            with nogil:
                status = sp_program_run(self.ptr, &batch)
            check(status, "the forward pass")
        finally:
            c_free(list)

    cdef int fill_spans(self, sp_span *list, const int32_t[::1] positions, const int32_t[:, ::1] spans,
                        const int32_t[::1] pages, int64_t rowwise) except -1:
        cdef Py_ssize_t i, j, row = 0
        cdef bint cut = rowwise == positions.shape[0]
        cdef int64_t rows, start, at, blocks
        for i in range(spans.shape[0]):
            rows, start, at = spans[i, 1], spans[i, 2], spans[i, 3]
            blocks = (start + rows + 63) // 64
            if spans[i, 0] != row or rows < 1 or start < 0 or at < 0 or row + rows > positions.shape[0] \
                    or at + blocks > pages.shape[0]:
                raise _errors.InvalidParameterError(f"run: span {i} does not fit the batch or its block table")
            if start + rows > self.context:
                raise _errors.ContextLengthError(f"{start + rows} tokens do not fit the context of {self.context}")
            for j in range(rows):
                if positions[row + j] != start + j:
                    raise _errors.InvalidParameterError(f"run: positions of span {i} are not consecutive")
            for j in range(blocks):
                self.kv.held(pages[at + j])
            list[i] = sp_span(row, rows, start, &pages[at])
            cut = cut or row == rowwise
            row += rows
        if not cut:
            raise _errors.InvalidParameterError(f"run: no span begins at row {rowwise}, where the class changes")
        if row != positions.shape[0]:
            raise _errors.InvalidParameterError(f"run: spans cover {row} of {positions.shape[0]} rows")
        return 0

    def cancel(self) -> None:
        """Makes the run in progress stop between two tiles; without one, does nothing."""
        sp_program_cancel(self.ptr)

    def counts(self) -> dict[str, int]:
        """Calls of each kernel that has run, by name."""
        cdef int kind, slot
        calls = self.pool.counts()
        counted = {}
        for kind in range(SP_KIND_COUNT):
            for slot in range(SP_SLOT_COUNT):
                if calls[kind * SP_SLOT_COUNT + slot]:
                    name = self.kernels[kind].k[slot].name.decode()
                    counted[name] = counted.get(name, 0) + calls[kind * SP_SLOT_COUNT + slot]
        return counted

    def seconds(self) -> dict[str, float]:
        """Seconds spent per kind of operator since the program was made."""
        cdef uint64_t ns[SP_OP_COUNT]
        cdef int i
        sp_program_times(self.ptr, ns)
        return {sp_op_name(<sp_op_kind>i).decode(): ns[i] * 1e-9 for i in range(SP_OP_COUNT)}
