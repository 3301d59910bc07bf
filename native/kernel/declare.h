// SPDX-License-Identifier: Apache-2.0
// Typed declarations of all kernels, made from their families' rows.
// A kernel file includes this, so that its definition is checked against its slot's type.
#pragma once

#include "kernel/families.h"

#define SP_FN_SP_SLOT_GEMM_Q4S sp_gemm_q_fn
#define SP_FN_SP_SLOT_GEMM_Q4A sp_gemm_q_fn
#define SP_FN_SP_SLOT_GEMM_Q8S sp_gemm_q_fn
#define SP_FN_SP_SLOT_GEMM_F32 sp_gemm_f_fn
#define SP_FN_SP_SLOT_GEMM_F16 sp_gemm_f_fn
#define SP_FN_SP_SLOT_GEMM_Q8R sp_gemm_r_fn
#define SP_FN_SP_SLOT_EXPAND_Q4S sp_expand_r_fn
#define SP_FN_SP_SLOT_EXPAND_Q4A sp_expand_r_fn
#define SP_FN_SP_SLOT_EXPAND_Q8S sp_expand_r_fn
#define SP_FN_SP_SLOT_EXPAND_F16 sp_expand_fn
#define SP_FN_SP_SLOT_EXPAND_BF16 sp_expand_fn
#define SP_FN_SP_SLOT_RMSNORM sp_rmsnorm_fn
#define SP_FN_SP_SLOT_QUANT sp_quant_fn
#define SP_FN_SP_SLOT_QUANT_ROW sp_quant_row_fn
#define SP_FN_SP_SLOT_ROPE sp_rope_fn
#define SP_FN_SP_SLOT_SWIGLU sp_swiglu_fn
#define SP_FN_SP_SLOT_ADD sp_add_fn
#define SP_FN_SP_SLOT_SOFTMAX sp_softmax_fn
#define SP_FN_SP_SLOT_MERGE sp_merge_fn
#define SP_FN_SP_SLOT_FINISH sp_finish_fn
#define SP_FN_SP_SLOT_WIDEN_F16 sp_widen_fn
#define SP_FN_SP_SLOT_NARROW_F16 sp_narrow_fn
#define SP_FN_SP_SLOT_ARGMAX sp_argmax_fn
#define SP_FN_SP_SLOT_TOPK sp_topk_fn

#define SP_KERNEL(slot, tier, mr, nr, name) __typeof__(*(SP_FN_##slot)0) name;
#include "kernel/act/act.inc"
#include "kernel/convert/convert.inc"
#include "kernel/gemm/gemm.inc"
#include "kernel/norm/norm.inc"
#include "kernel/quant/quant.inc"
#include "kernel/rope/rope.inc"
#include "kernel/softmax/softmax.inc"
#include "kernel/topk/topk.inc"
#undef SP_KERNEL
