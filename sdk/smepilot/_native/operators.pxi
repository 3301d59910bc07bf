# SPDX-License-Identifier: Apache-2.0
# What the native operators and programs are made of, declared for program.pxi.

cdef extern from "op/op.h":
    enum:
        SP_COUNTERS
        SP_OUTLIERS
        SP_ROWWISE_K
    ctypedef struct sp_linear:
        const uint8_t *panels
        sp_panel_layout layout
        uint32_t rows
        const float *inv
        const float *scale
    ctypedef struct sp_smooth:
        const float *s
        const float *u
        const int32_t *outliers
        uint32_t outlier_count
    ctypedef struct sp_act:
        size_t k, rows_at, q_at, d_at, neg_at, sum_at, scale_at, row_neg_at, outliers_at, arrived_at
        sp_smooth smooth
    ctypedef struct sp_span:
        uint32_t row0, rows
        int32_t start
        const int32_t *pages
    ctypedef struct sp_batch:
        uint32_t tokens
        const int32_t *ids
        const int32_t *positions
        const sp_span *spans
        uint32_t span_count
        const int32_t *logit_rows
        uint32_t logit_count
        float *logits
        uint32_t rowwise
    ctypedef struct sp_embed:
        sp_linear table
        size_t x_at, cos_at, sin_at
        const float *inv_freq
        uint32_t half
    ctypedef struct sp_norm:
        const float *weight
        float eps
        size_t x_at
        sp_act out
        bint gather
    ctypedef struct sp_qkv:
        sp_linear weights[3]
        sp_act in_ "in"
        size_t q_at, cos_at, sin_at
        uint32_t layer, head_dim
        float q_scale
    ctypedef struct sp_attention:
        size_t q_at
        sp_act out
        uint32_t layer, heads, kv_heads, head_dim
        size_t partial_at
    ctypedef struct sp_project:
        sp_linear weight
        sp_act in_ "in"
        size_t x_at
    ctypedef struct sp_gate_up:
        sp_linear gate, up
        sp_act in_ "in"
        sp_act out
    ctypedef struct sp_logits:
        sp_linear weight
        sp_act in_ "in"
    ctypedef struct sp_observe:
        sp_act in_ "in"
        float *peaks
    void sp_run_kernels(sp_kernel_set *kernels, uint32_t tiers, bint private_units)
    size_t sp_op_scratch_bytes(uint32_t max_tokens, uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t d_model)
    size_t sp_attention_partial_bytes(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t workers,
                                      uint32_t max_spans, uint32_t max_blocks)

cdef extern from "exec/program.h":
    ctypedef enum sp_op_kind:
        SP_OP_EMBED, SP_OP_NORM, SP_OP_QKV, SP_OP_ATTENTION, SP_OP_PROJECT, SP_OP_GATE_UP, SP_OP_LOGITS
        SP_OP_OBSERVE
        SP_OP_COUNT
    ctypedef union sp_step_u:
        sp_embed embed
        sp_norm norm
        sp_qkv qkv
        sp_attention attention
        sp_project project
        sp_gate_up gate_up
        sp_logits logits
        sp_observe observe
    ctypedef struct sp_step:
        sp_op_kind kind
        sp_step_u u
        uint32_t matrix_rows
    ctypedef struct sp_program:
        pass
    const char *sp_op_name(sp_op_kind kind)
    sp_status sp_program_create(sp_program **out, sp_pool *pool, sp_kv *kv, const sp_kernel_set *kernels,
                                size_t arena)
    void sp_program_destroy(sp_program *program)
    sp_status sp_program_add(sp_program *program, const sp_step *step)
    sp_status sp_program_run(sp_program *program, const sp_batch *batch) nogil
    void sp_program_cancel(sp_program *program) nogil
    void sp_program_times(const sp_program *program, uint64_t *ns)
