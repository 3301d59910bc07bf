# SPDX-License-Identifier: Apache-2.0
# Sampling: one draw from a row of logits, and what belongs to it. The rules stand in native/op/sample.h.

cdef extern from "base/memory.h":
    void *sp_alloc(size_t count, size_t size)
    void sp_free(void *block)

cdef extern from "op/sample.h":
    ctypedef struct sp_sample_args:
        const sp_kernel_set *kernels
        const float *logits
        size_t vocab
        float temperature
        size_t top_k
        float top_p
        float min_p
        float repetition
        float presence
        float frequency
        const int32_t *recent
        size_t recent_count
        size_t answer_count
        const int32_t *bias_ids
        const float *bias_values
        size_t bias_count
        uint64_t seed
        uint64_t draw
        void *scratch
    size_t sp_sample_scratch_bytes(size_t vocab)
    sp_status sp_sample(const sp_sample_args *args, int32_t *token) nogil

cdef extern from "op/logprob.h":
    sp_status sp_logprob(const sp_kernel_set *kernels, const float *logits, size_t n, size_t id, double *out) nogil

cdef extern from "op/philox.h":
    void sp_philox(uint32_t *counter, uint64_t key) nogil


cdef class _SampleScratch:
    """Scratch memory of one draw. Draws borrow one from a list and return it, so that steady state allocates nothing."""

    cdef void *ptr
    cdef size_t vocab

    def __cinit__(self, size_t vocab):
        self.ptr = sp_alloc(1, sp_sample_scratch_bytes(vocab))
        if self.ptr == NULL:
            raise _errors.OutOfMemoryError(f"no memory for sampling from {vocab} logits")
        self.vocab = vocab

    def __dealloc__(self):
        sp_free(self.ptr)


cdef class _SampleKernels:
    """The kernels of given tiers, chosen once per set of tiers."""

    cdef sp_kernel_set set


cdef list _idle_scratch = []
cdef dict _kernels_by_tiers = {}


cdef _SampleScratch borrow_scratch(size_t vocab):
    cdef _SampleScratch scratch
    while _idle_scratch:
        scratch = _idle_scratch.pop()
        if scratch.vocab >= vocab:
            return scratch
    return _SampleScratch(vocab)


cdef _SampleKernels sample_kernels(names):
    cdef _SampleKernels kernels
    key = None if names is None else tuple(names)
    found = _kernels_by_tiers.get(key)
    if found is None:
        if names is None:
            names = [tier["name"] for tier in tiers() if tier["built"] and tier["supported"]]
        kernels = _SampleKernels()
        sp_kernel_select(&kernels.set, tier_bits(names))
        _kernels_by_tiers[key] = found = kernels
    return found


cdef int require_ids(const int32_t[::1] ids, size_t vocab, str what) except -1:
    cdef Py_ssize_t i
    for i in range(ids.shape[0]):
        if ids[i] < 0 or <size_t>ids[i] >= vocab:
            raise _errors.InvalidParameterError(
                f"{what} names token {ids[i]}; the vocabulary has ids 0 to {<Py_ssize_t>vocab - 1}")
    return 0


cdef int require(bint holds, str name, value, str expected) except -1:
    if not holds:
        raise _errors.InvalidParameterError(f"{name} is {value!r}; expected {expected}")
    return 0


def sample(const float[::1] logits, *, float temperature=1.0, int64_t top_k=0, float top_p=1.0, float min_p=0.0,
           float repetition_penalty=1.0, float presence_penalty=0.0, float frequency_penalty=0.0,
           const int32_t[::1] recent=None, answer: int | None = None, const int32_t[::1] bias_ids=None,
           const float[::1] bias_values=None, seed: int = 0, draw: int = 0,
           tiers: _Sequence[str] | None = None) -> int:
    """Draws one token id from a row of logits, which is not changed.

    The same arguments give the same token on every machine, at every tier. Runs without the GIL.

    Args:
        logits: float32 [vocab], contiguous.
        temperature: 0 takes the largest logit, the lowest id among equals.
        top_k: Keep the k largest; 0, negative or beyond the vocabulary keeps all.
        top_p: Keep the smallest set of largest ones whose probability reaches p, at least one; 1 keeps all.
        min_p: Keep those at least min_p times as likely as the likeliest; 0 keeps all.
        repetition_penalty: Divides positive logits of recent tokens, multiplies others; 1 is off.
        presence_penalty: Subtracted from logits of recent tokens of the answer.
        frequency_penalty: Subtracted for each time such a token occurs.
        recent: int32 ids that occurred, oldest first.
        answer: How many of `recent`, counted from the end, belong to the answer; None for all.
        bias_ids: int32 ids whose logits get `bias_values` added first; -inf forbids a token.
        bias_values: float32, as many as `bias_ids`.
        seed: Key of the random sequence, 0 to 2**64 - 1.
        draw: Which number of the sequence to use, 0 to 2**64 - 1.
        tiers: Instruction sets to use; None for all that this machine has. Changes no result.

    Raises:
        NumericError: a logit is NaN, or the largest is infinite (all are forbidden, or the model overflowed).
        InvalidParameterError: an argument is out of range.
    """
    cdef sp_sample_args args
    cdef int32_t token = 0
    cdef sp_status status
    cdef size_t vocab = logits.shape[0]
    require(0 < vocab < 1 << 31, "len(logits)", vocab, "1 to 2**31 - 1")
    require(temperature >= 0, "temperature", temperature, "temperature >= 0")
    require(top_p == top_p, "top_p", top_p, "a number")
    require(min_p == min_p, "min_p", min_p, "a number")
    require(repetition_penalty > 0, "repetition_penalty", repetition_penalty, "repetition_penalty > 0")
    require(presence_penalty == presence_penalty, "presence_penalty", presence_penalty, "a number")
    require(frequency_penalty == frequency_penalty, "frequency_penalty", frequency_penalty, "a number")
    require(0 <= seed < 1 << 64, "seed", seed, "0 <= seed < 2**64")
    require(0 <= draw < 1 << 64, "draw", draw, "0 <= draw < 2**64")
    cdef Py_ssize_t recent_count = 0 if recent is None else recent.shape[0]
    cdef Py_ssize_t bias_count = 0 if bias_ids is None else bias_ids.shape[0]
    cdef Py_ssize_t values_count = 0 if bias_values is None else bias_values.shape[0]
    cdef Py_ssize_t answer_count = recent_count if answer is None else answer
    require(0 <= answer_count <= recent_count, "answer", answer, f"0 to len(recent), {recent_count}")
    require(values_count == bias_count, "len(bias_values)", values_count, f"as many as bias_ids, {bias_count}")
    cdef const int32_t *recent_at = NULL
    cdef const int32_t *bias_at = NULL
    cdef const float *values_at = NULL
    if recent_count > 0:
        require_ids(recent, vocab, "recent")
        recent_at = &recent[0]
    if bias_count > 0:
        require_ids(bias_ids, vocab, "bias_ids")
        bias_at, values_at = &bias_ids[0], &bias_values[0]
    cdef _SampleKernels kernels = sample_kernels(tiers)
    cdef _SampleScratch scratch = borrow_scratch(vocab)
    args = sp_sample_args(
        &kernels.set, &logits[0], vocab, temperature, max(top_k, 0), top_p, min_p, repetition_penalty,
        presence_penalty, frequency_penalty, recent_at, recent_count, answer_count, bias_at, values_at, bias_count,
        seed, draw, scratch.ptr)
    with nogil:
        status = sp_sample(&args, &token)
    _idle_scratch.append(scratch)
    check(status, f"sampling from {vocab} logits")
    return token


def argmax(const float[::1] logits) -> int:
    """The id of the largest logit, the lowest among equals. Raises NumericError as `sample` does."""
    return sample(logits, temperature=0.0)


def log_softmax_at(const float[::1] logits, size_t token, *, tiers: _Sequence[str] | None = None) -> float:
    """ln(softmax(logits)[token]), within 1e-6, the same bits on every machine; -inf for a forbidden token.

    `tiers` are as for `sample`.

    Raises:
        NumericError: a logit is NaN, or the largest is infinite.
        InvalidParameterError: `token` is beyond the vocabulary.
    """
    cdef double out = 0.0
    cdef sp_status status
    cdef size_t vocab = logits.shape[0]
    require(token < vocab, "token", token, f"an id below {vocab}")
    cdef _SampleKernels kernels = sample_kernels(tiers)
    with nogil:
        status = sp_logprob(&kernels.set, &logits[0], vocab, token, &out)
    check(status, f"log-probability of token {token}")
    return out


def philox(key: int, counter: int) -> tuple[int, int, int, int]:
    """Philox4x32-10: four 32-bit words for a 64-bit key and a 128-bit counter, lowest word first."""
    cdef uint32_t words[4]
    cdef int i
    for i in range(4):
        words[i] = counter >> 32 * i & 0xffffffff
    sp_philox(words, key)
    return words[0], words[1], words[2], words[3]
