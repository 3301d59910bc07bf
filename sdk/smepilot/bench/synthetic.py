# SPDX-License-Identifier: Apache-2.0
"""Models of random weights at true shapes, written once into the cache.

Weights have mean 0 and deviation 1/sqrt(columns), so activations neither die nor explode and no NaN slows a kernel
down. The blocks are filled directly: random integers and a random scale each, no float matrix in between, in pieces
of a few MiB, so memory stays small whatever the model.

llama.cpp keeps a tied 4-bit model's embedding in Q6_K, which this version does not read; it is written as Q8_0 here,
for every engine alike (about 30 % more bytes for that one matrix). The tokenizer is a byte-level one (256 bytes, one
merge, two control tokens) padded with unused tokens to the model's vocabulary, so the file loads everywhere.

A mark in the metadata says that weights are random: there is nothing to calibrate, smoothing scales are one, and
prompts are computed in the rowwise class unless asked otherwise.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from smepilot import paths
from smepilot.bench import gguf_writer
from smepilot.bench.gguf_writer import Planned, Value
from smepilot.bench.shapes import Shape, shape_named
from smepilot.errors import DiskFullError, InvalidParameterError
from smepilot.runtime.rowwise import SYNTHETIC

VERSION = 2  # of the contents: a change makes new files
FILE_TYPES = {"f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "bf16": 32}
_PIECE = 1 << 17  # blocks or elements written at a time
_NORMAL, _CONTROL, _UNUSED = 1, 3, 5  # token types

Bytes = npt.NDArray[np.uint8]


def synthetic(
    name: str, quant: str, folder: Path | None = None, on_progress: Callable[[int, int], None] | None = None
) -> Path:
    """The file of a shape in a quantisation, written if it is not there yet.

    Args:
        name: A key of SHAPES.
        quant: A key of FILE_TYPES.
        folder: Where it is kept; None for the cache below `paths.home()`.
        on_progress: Called with bytes written and bytes in all.

    Raises:
        InvalidParameterError: Unknown shape or quantisation.
        DiskFullError: The file would not fit.
    """
    shape = shape_named(name)
    if quant not in FILE_TYPES:
        raise InvalidParameterError(f"no synthetic quantisation {quant!r}; there are {', '.join(FILE_TYPES)}")
    target = (folder or paths.home() / "cache" / "synthetic") / f"{name}.{quant}.v{VERSION}.gguf"
    with paths.exclusive(target.with_suffix(".lock")):
        if not target.exists():
            write_model(target, name, shape, quant, on_progress)
    return target


def write_model(
    target: Path, name: str, shape: Shape, quant: str, on_progress: Callable[[int, int], None] | None = None
) -> None:
    """Writes `target`, whole or not at all."""
    metadata, tensors = _metadata(name, shape, quant), _tensors(shape, quant)
    need, partial = gguf_writer.size(metadata, tensors), target.with_suffix(".partial")
    room = shutil.disk_usage(target.parent).free
    if need > room:
        raise DiskFullError(f"{target}: needs {need >> 20} MiB, {room >> 20} MiB are free; free some space")
    with paths.disk_errors(target):
        try:
            with partial.open("wb") as out:
                gguf_writer.write(out, metadata, tensors, on_progress)
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def _metadata(name: str, shape: Shape, quant: str) -> dict[str, Value]:
    kind = shape.architecture
    return {
        "general.architecture": kind,
        "general.name": f"{name} (random weights)",
        "general.file_type": FILE_TYPES[quant],
        "general.quantization_version": 2,
        SYNTHETIC: True,
        f"{kind}.block_count": shape.layers,
        f"{kind}.context_length": shape.context,
        f"{kind}.embedding_length": shape.hidden,
        f"{kind}.feed_forward_length": shape.ffn,
        f"{kind}.attention.head_count": shape.heads,
        f"{kind}.attention.head_count_kv": shape.kv_heads,
        f"{kind}.attention.key_length": shape.head_dim,
        f"{kind}.attention.value_length": shape.head_dim,
        f"{kind}.attention.layer_norm_rms_epsilon": shape.rms_eps,
        f"{kind}.rope.dimension_count": shape.head_dim,
        f"{kind}.rope.freq_base": shape.rope_base,
        f"{kind}.vocab_size": shape.vocabulary,
        **_tokenizer(shape.vocabulary),
    }


def _tokenizer(vocabulary: int) -> dict[str, Value]:
    tokens = [*byte_alphabet(), "Ġt", "<|begin|>", "<|end|>"]
    types = [_NORMAL] * 257 + [_CONTROL] * 2
    unused = range(vocabulary - len(tokens))
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens + [f"[unused{i}]" for i in unused],
        "tokenizer.ggml.token_type": types + [_UNUSED for _ in unused],
        "tokenizer.ggml.merges": ["Ġ t"],
        "tokenizer.ggml.bos_token_id": 257,
        "tokenizer.ggml.eos_token_id": 258,
        "tokenizer.ggml.add_bos_token": False,
    }


def byte_alphabet() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes, in byte order."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    spare = iter(range(256, 512))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]


def _tensors(shape: Shape, quant: str) -> list[Planned]:
    wide = quant.upper()
    coarse = wide if wide in ("F16", "BF16") else "Q8_0"
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    tensors = [_matrix("token_embd.weight", coarse, shape.vocabulary, shape.hidden)]
    for i in range(shape.layers):
        norms = {"attn_norm": shape.hidden, "ffn_norm": shape.hidden}
        if shape.qk_norm:
            norms |= {"attn_q_norm": shape.head_dim, "attn_k_norm": shape.head_dim}
        tensors += [_vector(f"blk.{i}.{part}.weight", np.ones(n, np.float32)) for part, n in norms.items()]
        matrices = {
            "attn_q": (q, shape.hidden),
            "attn_k": (kv, shape.hidden),
            "attn_v": (kv, shape.hidden),
            "attn_output": (shape.hidden, q),
            "ffn_gate": (shape.ffn, shape.hidden),
            "ffn_up": (shape.ffn, shape.hidden),
            "ffn_down": (shape.hidden, shape.ffn),
        }
        tensors += [_matrix(f"blk.{i}.{part}.weight", wide, *size) for part, size in matrices.items()]
    tensors.append(_vector("output_norm.weight", np.ones(shape.hidden, np.float32)))
    if not shape.tied:
        tensors.append(_matrix("output.weight", coarse, shape.vocabulary, shape.hidden))
    factors = shape.rope_factors()
    if factors is not None:
        tensors.append(_vector("rope_freqs.weight", np.array(factors, np.float32)))
    return tensors


def _vector(name: str, values: npt.NDArray[np.float32]) -> Planned:
    return Planned(name, "F32", values.shape, lambda: [values.tobytes()])


def _matrix(name: str, dtype: str, rows: int, columns: int) -> Planned:
    make = {"Q4_0": _q4_0, "Q4_1": _q4_1, "Q8_0": _q8_0, "F16": _f16, "BF16": _bf16}[dtype]
    count = rows * columns // (1 if dtype in ("F16", "BF16") else 32)

    def pieces() -> Iterator[bytes]:
        random = np.random.Generator(np.random.SFC64(zlib.crc32(name.encode())))
        for start in range(0, count, _PIECE):
            yield make(random, min(_PIECE, count - start), columns**-0.5).tobytes()

    return Planned(name, dtype, (rows, columns), pieces)


def _scales(random: np.random.Generator, count: int, sd: float) -> npt.NDArray[np.float16]:
    """Half to one and a half times `sd`, of either sign, so that what off-centre ranges add up to cancels."""
    size: npt.NDArray[np.float64] = random.uniform(0.5, 1.5, count)
    signed: npt.NDArray[np.float16] = (size * random.choice((-sd, sd), count)).astype(np.float16)
    return signed


def _q4_0(random: np.random.Generator, count: int, sd: float) -> Bytes:
    blocks = random.integers(0, 256, (count, 18), np.uint8)
    blocks[:, :2] = _scales(random, count, sd / 4.61)[:, None].view(np.uint8)  # 4.61: deviation of 0..15
    return blocks


def _q4_1(random: np.random.Generator, count: int, sd: float) -> Bytes:
    blocks = random.integers(0, 256, (count, 20), np.uint8)
    scale = _scales(random, count, sd / 4.61)
    blocks[:, :2] = scale[:, None].view(np.uint8)
    blocks[:, 2:4] = (scale * np.float16(-7.5))[:, None].view(np.uint8)
    return blocks


def _q8_0(random: np.random.Generator, count: int, sd: float) -> Bytes:
    blocks = random.integers(0, 256, (count, 34), np.uint8)
    blocks[:, 2:][blocks[:, 2:] == 128] = 0  # -128 is not a value of Q8_0
    blocks[:, :2] = _scales(random, count, sd / 73.6)[:, None].view(np.uint8)
    return blocks


def _f16(random: np.random.Generator, count: int, sd: float) -> Bytes:
    values = random.standard_normal(count, np.float32) * np.float32(sd)
    return values.astype(np.float16).view(np.uint8)


def _bf16(random: np.random.Generator, count: int, sd: float) -> Bytes:
    values = random.standard_normal(count, np.float32) * np.float32(sd)
    return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
