# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders to GGUF, as llama.cpp's converter writes them, with nothing but the ``gguf`` package.

The product reads GGUF; the references were computed by Hugging Face from safetensors. These functions carry one into
the other, so that a difference in a test is a difference in the engine. What the converter does beyond renaming:

* Llama's rotary embedding pairs neighbours (0,1)(2,3) in GGUF and halves (0,d/2)(1,d/2+1) in Hugging Face, so the
  rows of Q and K are permuted head by head.
* The llama3 scaling of rotary frequencies becomes a tensor ``rope_freqs`` of divisors, one per frequency.
* Tied embeddings are written once; ``output.weight`` is absent.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Rope = Literal["tensor", "metadata"]
Floats = NDArray[np.float32]

# The parts of a block: Hugging Face's words, GGUF's words.
BLOCK = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def llama(folder: Path, target: Path, *, dtype: str = "F32", rope: Rope = "tensor", pre: str = "gpt-2") -> None:
    """Write the Llama model in `folder` to `target`.

    Args:
        folder: config.json, model.safetensors, tokenizer.json and tokenizer_config.json.
        target: The GGUF file to write.
        dtype: GGML type of the matrices; vectors stay F32, as in every published file.
        rope: Where the llama3 scaling goes: the tensor ``rope_freqs``, or the metadata ``llama.rope.scaling.*``.
        pre: Name of the pre-tokenizer.
    """
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(target, "llama")
    _write_config(writer, config)
    _write_tokenizer(writer, folder, pre)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, values in load_file(folder / "model.safetensors").items():
        renamed = _rename(name)
        part = renamed.split(".")[-2]
        _write_tensor(writer, renamed, _interleave(values, heads[part]) if part in heads else values, dtype)
    scaling = config["rope_parameters"]
    if scaling["rope_type"] == "llama3":
        if rope == "tensor":
            _write_tensor(writer, "rope_freqs.weight", rope_divisors(config["head_dim"], scaling), "F32")
        else:
            _write_rope_metadata(writer, scaling)
    _finish(writer)


def dequantise(source: Path, target: Path) -> None:
    """Write the GGUF file `source` to `target` with every tensor as float32, computed exactly; metadata is kept."""
    reader = gguf.GGUFReader(source)
    writer = _copy_metadata(reader, target, leave_out={"general.file_type"})
    for tensor in reader.tensors:
        shape = tuple(int(n) for n in reversed(tensor.shape))
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape))
    _finish(writer)


def first_blocks(source: Path, target: Path, count: int) -> None:
    """Write the GGUF file `source` to `target` with its first `count` decoder blocks alone, all else as it is."""
    reader = gguf.GGUFReader(source)
    name = f"{reader.fields['general.architecture'].contents()}.block_count"
    writer = _copy_metadata(reader, target, leave_out={name})
    writer.add_uint32(name, count)
    for tensor in reader.tensors:
        top, _, rest = tensor.name.partition(".")
        if top != "blk" or int(rest.partition(".")[0]) < count:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    _finish(writer)


def rope_divisors(head_dim: int, scaling: dict[str, Any]) -> Floats:
    """Return the divisors of the inverse frequencies, float32 [head_dim / 2], for the llama3 scaling."""
    frequencies = 1.0 / scaling["rope_theta"] ** (np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim))
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    context, factor = scaling["original_max_position_embeddings"], scaling["factor"]
    divisors = []
    for frequency in frequencies.astype(np.float32):
        wavelength = 2 * math.pi / float(frequency)
        if wavelength < context / high:
            divisors.append(1.0)
        elif wavelength > context / low:
            divisors.append(factor)
        else:
            smooth = (context / wavelength - low) / (high - low)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(divisors, dtype=np.float32)


def _copy_metadata(reader: gguf.GGUFReader, target: Path, leave_out: set[str]) -> gguf.GGUFWriter:
    writer = gguf.GGUFWriter(target, str(reader.fields["general.architecture"].contents()))
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in leave_out | {"general.architecture"}:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, inner)
    return writer


def _write_config(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    writer.add_name("tiny-llama3")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def _write_rope_metadata(writer: gguf.GGUFWriter, scaling: dict[str, Any]) -> None:
    writer.add_string("llama.rope.scaling.type", "llama3")
    writer.add_rope_scaling_factor(scaling["factor"])
    writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    writer.add_float32("llama.rope.scaling.low_freq_factor", scaling["low_freq_factor"])
    writer.add_float32("llama.rope.scaling.high_freq_factor", scaling["high_freq_factor"])


def _write_tokenizer(writer: gguf.GGUFWriter, folder: Path, pre: str) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    config = json.loads((folder / "tokenizer_config.json").read_text())
    ids: dict[str, int] = dict(tokenizer["model"]["vocab"])
    types = dict.fromkeys(ids.values(), gguf.TokenType.NORMAL)
    for added in tokenizer["added_tokens"]:
        ids[added["content"]] = added["id"]
        types[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(sorted(ids, key=ids.__getitem__))
    writer.add_token_types([types[i] for i in sorted(types)])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(ids[config["eos_token"]])
    writer.add_pad_token_id(ids[config["pad_token"]])
    writer.add_add_bos_token(False)
    writer.add_chat_template(config["chat_template"])


def _write_tensor(writer: gguf.GGUFWriter, name: str, values: Floats, dtype: str) -> None:
    kind = gguf.GGMLQuantizationType[dtype if values.ndim > 1 else "F32"]
    writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def _rename(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in TOP:
        return f"{TOP[stem]}.weight"
    _, _, block, part = stem.split(".", 3)
    return f"blk.{block}.{BLOCK[part]}.weight"


def _interleave(values: Floats, heads: int) -> Floats:
    """Permute the rows of a projection from halves to neighbouring pairs, head by head."""
    rows, columns = values.shape
    return values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
