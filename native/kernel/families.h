// SPDX-License-Identifier: Apache-2.0
// The families of micro-kernels: one slot per operation and operand type, with its function type.
//
// Arithmetic common to all (one result, whoever computes it):
//  * multiply-add is fused exactly where `fma` is written below, nowhere else; division and square root are IEEE.
//  * "16 lanes": element i belongs to lane i % 16, lanes start at +0 and run sequentially over i; then the tree
//    l[j] += l[j+8], l[j] += l[j+4], l[j] += l[j+2], l[0] + l[1].
//  * exp2(x): x < -126 gives +0; x > 127 gives exp2(127); else n = rint(x), f = x - n (exact),
//    2^n * P(f), P a polynomial of degree 6 in Horner form with fma, P(0) = 1 (kernel/softmax/exp2.h).
//    NaN gives NaN.
//  * max(a, b) is a > b ? a : b: with a NaN, or with zeros of two signs, it is b. (x86's instruction; not Arm's FMAX.)
//  * silu(x) = x / (1 + exp2(-x * log2e)).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sp_slot {
    SP_SLOT_GEMM_Q4S,   // int8 activations x 4-bit symmetric weights (Q4_0), scales per group of 32
    SP_SLOT_GEMM_Q4A,   // int8 activations x 4-bit affine weights (Q4_1)
    SP_SLOT_GEMM_Q8S,   // int8 activations x 8-bit symmetric weights (Q8_0)
    SP_SLOT_GEMM_F32,   // float32 x float32, fma chain over k
    SP_SLOT_GEMM_F16,   // float32 x float16, widened exactly: the same chain
    SP_SLOT_GEMM_Q8R,   // int8 x int8, one scale per token and one per weight row
    SP_SLOT_EXPAND_Q4S, // quantised weight panel -> int8 panel with one scale per row
    SP_SLOT_EXPAND_Q4A,
    SP_SLOT_EXPAND_Q8S,
    SP_SLOT_EXPAND_F16, // float16 weight panel -> float32 panel
    SP_SLOT_EXPAND_BF16,
    SP_SLOT_RMSNORM,
    SP_SLOT_QUANT,      // float32 row -> int8 panel slot with group scales
    SP_SLOT_QUANT_ROW,  // float32 row -> int8 panel slot with one scale
    SP_SLOT_ROPE,
    SP_SLOT_SWIGLU,
    SP_SLOT_ADD,
    SP_SLOT_SOFTMAX,    // one key block of attention scores
    SP_SLOT_MERGE,      // join of two key blocks
    SP_SLOT_FINISH,     // o / l
    SP_SLOT_WIDEN_F16,  // float16 -> float32, contiguous
    SP_SLOT_NARROW_F16, // float32 -> float16, strided destination
    SP_SLOT_ARGMAX,
    SP_SLOT_TOPK,
    SP_SLOT_COUNT
} sp_slot;

#define SP_GROUP 32  // activations per quantisation group
#define SP_KEYS 64   // keys of one attention block, and tokens of one KV page

// ---- gemm, quantised: y[t][r] += or = sum over groups, in ascending order, of one fma per group.
//  Q4S, Q8S: acc = fma((float)dot, dw * da, acc)       dot = sum (q - 8) * a   or   sum q * a   (int32, exact)
//  Q4A:      acc = fma((float)dot, dw * da, acc); acc = fma(mw, sa, acc)       dot = sum q * a
//  One call makes up to mr tokens of one activation panel against one panel of 16 weight rows, over the whole k.
typedef struct sp_gemm_q_args {
    const uint8_t *w;       // weight panel (layout/panel.h)
    const int8_t *a;        // activation panel: [k/4][width][4]
    const float *ad;        // [groups][width] scales
    const int32_t *an;      // [groups][width] negated sums of the int8 values
    const float *as;        // [groups][width] scale * (float)sum
    size_t width;           // tokens that the panel was laid out for (stride of a quad is 4 * width bytes)
    size_t m;               // tokens to compute, 1..mr; the pointers above are at the first one
    size_t groups;          // k / 32
    float *y;               // y[t * ldy + r], r < 16
    size_t ldy;
} sp_gemm_q_args;
typedef void (*sp_gemm_q_fn)(const sp_gemm_q_args *args);

// ---- gemm, one scale per row: y[t][r] = (float)dot * (wd[r] * ad[t]), dot the int32 sum over the whole k, exact for
//  k <= SP_ROWWISE_K. Nothing stands between two dot products, so a matrix unit runs at its integer peak.
//  One call makes m tokens x n rows of any size; mr x nr of a kernel is its inner tile. The last panel of tokens is
//  16 wide like the others: bytes of absent tokens may be anything, and nothing is written for them.
#define SP_ROWWISE_K 131072  // 127 * 127 * k < 2^31

typedef struct sp_gemm_r_args {
    const int8_t *w;    // n / 16 panels of [k/4][16][4], side by side
    const int8_t *a;    // panels of 16 tokens, [k/4][16][4], side by side
    const float *wd;    // [n] scales of weight rows
    const float *ad;    // [m] scales of tokens
    const int32_t *an;  // [m] negated sums of a token's int8 values
    size_t m, n, k;     // n is a multiple of 16, k of 32
    float *y;           // y[t * ldy + r]
    size_t ldy;
} sp_gemm_r_args;
typedef void (*sp_gemm_r_fn)(const sp_gemm_r_args *args);

// ---- gemm, float: y[i][j] = fma chain over k of a[i][k] * b[k][j], from +0 or (accumulate) from y.
//  b is float32 or float16, cut into strips of 16 columns: element (k, j) is b[(j / 16) * strip + k * step + j % 16].
//  n is a multiple of 16, n <= nr; m <= mr.
typedef struct sp_gemm_f_args {
    const float *a;
    size_t lda;
    const void *b;
    size_t strip, step;
    float *y;
    size_t ldy;
    size_t m, n, k;
    bool accumulate;
} sp_gemm_f_args;
typedef void (*sp_gemm_f_fn)(const sp_gemm_f_args *args);

// ---- expand to int8: a quantised weight panel (layout/panel.h) becomes [k/4][16][4] int8 with one scale per row:
//  Q4S, Q8S: rint(((d * inv[r]) * (float)q) * s[j])            q without its offset: -8..7, -128..127
//  Q4A:      rint(fma(d * inv[r], (float)q, m * inv[r]) * s[j])
//  Ties to even. s[j] smooths column j (0 drops it: an outlier column), inv[r] = 127 / the largest |w[r][j] * s[j]|, so
//  results lie within -127..127. Operands are finite.
typedef struct sp_expand_r_args {
    int8_t *dst;       // 64-byte aligned, like w
    const uint8_t *w;  // one panel
    const float *inv;  // [16]
    const float *s;    // [k]
    size_t k;          // a multiple of 32
} sp_expand_r_args;
typedef void (*sp_expand_r_fn)(const sp_expand_r_args *args);

// ---- expand: weight panel [k/2][16][2] of float16 or bfloat16 -> [k][16] float32, exact. k is even.
typedef void (*sp_expand_fn)(float *dst, const uint16_t *src, size_t k);

// ---- rmsnorm: ss = sum of x*x over 16 lanes (fma(x, x, lane)); r = 1 / sqrt(ss / n + eps); y = (x * r) * w.
//  n is a multiple of 8.
typedef void (*sp_rmsnorm_fn)(float *y, const float *x, const float *w, size_t n, float eps);

// ---- quant: one row of n = 32 * groups floats into slot t of a panel of `width` slots.
//  The pointers are at the slot: q[quad * 4 * width + 0..3], d/neg/sum[group * width].
//  amax = max |x| by integer comparison of the bit patterns. amax < 2^-110: scale 0, q 0.
//  amax infinite or NaN: scale and sum NaN, q 0. Else scale = amax / 127, q = rint(x * (127 / amax)) (ties to even),
//  neg = -sum q, sum = scale * (float)(sum q).
typedef struct sp_quant_args {
    const float *x;
    size_t n, width;
    int8_t *q;
    float *d;
    int32_t *neg;
    float *sum;
} sp_quant_args;
typedef void (*sp_quant_fn)(const sp_quant_args *args);

// ---- quant_row: one row of n floats into slot t of a panel of 16 tokens, one scale for the row. z = x * u; then as
//  quant, with the maximum over the whole row: q[quad * 64 + 0..3], scale, neg = -sum q.
typedef struct sp_quant_row_args {
    const float *x, *u;  // [n]; n is a multiple of 32
    size_t n;
    int8_t *q;
    float *d;
    int32_t *neg;
} sp_quant_row_args;
typedef void (*sp_quant_row_fn)(const sp_quant_row_args *args);

// ---- rope (half-split): for i < half, with a = x[i], b = x[i + half]:
//  y[i] = fma(a, c[i], -(b * s[i])) * scale;  y[i + half] = fma(b, c[i], a * s[i]) * scale. half is a multiple of 4.
//  y may be x.
typedef void (*sp_rope_fn)(float *y, const float *x, const float *c, const float *s, size_t half, float scale);

// ---- swiglu: y = (g / (1 + exp2(-g * log2e))) * u. n is a multiple of 8. y may be g or u.
typedef void (*sp_swiglu_fn)(float *y, const float *g, const float *u, size_t n);

// ---- add: x += y. n is a multiple of 8.
typedef void (*sp_add_fn)(float *x, const float *y, size_t n);

// ---- softmax over one block of SP_KEYS scores per row, in place, scores in units of log2:
//  max = maximum of the first visible[r] scores, NaN passed over, plus +0 (so that it is never -0);
//  p = exp2(s - max) for them, +0 for the rest of the row; sum = 16-lane sum of p. visible[r] is in 1..SP_KEYS.
//  A row with NaN or +infinity, or of -infinity alone, has NaN in sum. Scores are results of arithmetic: no NaN among
//  them is a signalling one.
typedef struct sp_softmax_args {
    float *s;  // [rows][ld]
    size_t ld, rows;
    const uint8_t *visible;
    float *max, *sum;  // [rows]
} sp_softmax_args;
typedef void (*sp_softmax_fn)(const sp_softmax_args *args);

// ---- merge of a later block (ob, mb, lb) into the state (o, m, l), per row:
//  m' = max(m, mb); a = exp2(m - m'); b = exp2(mb - m'); l' = fma(lb, b, l * a); o' = fma(ob, b, o * a).
//  d is a multiple of 8. A NaN in l or lb stays in l'.
typedef struct sp_merge_args {
    float *o;  // [rows][ldo]
    float *m, *l;
    const float *ob;  // [rows][ldb]
    const float *mb, *lb;
    size_t ldo, ldb, rows, d;
} sp_merge_args;
typedef void (*sp_merge_fn)(const sp_merge_args *args);

// ---- finish: y = o / l + 0 (the addition turns -0 into +0). d is a multiple of 8.
typedef void (*sp_finish_fn)(float *y, const float *o, float l, size_t d);

// ---- widen: float16 -> float32, exact. n is a multiple of 8.
typedef void (*sp_widen_fn)(float *dst, const uint16_t *src, size_t n);

// ---- narrow: float32 -> float16, ties to even, dst[i * stride]. n is a multiple of 8.
typedef void (*sp_narrow_fn)(uint16_t *dst, size_t stride, const float *src, size_t n);

// ---- argmax: index of the largest value, the lowest index among equals; -1 if any value is NaN. n >= 1, any n.
typedef int64_t (*sp_argmax_fn)(const float *x, size_t n);

// ---- topk: the k largest values in descending order, equals in ascending index order; NaN-free input,
//  1 <= k <= n, any n. Meant for k up to about a thousand: beyond, the cost grows as n * k.
typedef void (*sp_topk_fn)(int32_t *index, float *value, const float *x, size_t n, size_t k);
