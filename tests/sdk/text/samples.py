# SPDX-License-Identifier: Apache-2.0
"""What the tests of this floor speak about: llama.cpp's vocabularies with their vectors, and small ones made here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from smepilot.text import Tokenizer, from_metadata
from smepilot.text.pack_bpe import byte_alphabet
from smepilot.weights.gguf import open_gguf
from tests import fetch

SEPARATOR = "\n__ggml_vocab_test__\n"
BOTCHAN = Path(__file__).parents[2] / "data" / "smollm2" / "ppl_botchan.txt"
# A sentencepiece model splits these in its own way; for a byte-level one each is a border case of its pattern.
TEXTS = [
    "",
    " ",
    "a\n\n1. b\r\n\r\n  c\t",
    "I'm, YOU'LL, we'Ve; it's 1234567890 3.14 ½ ²",
    "Größe naïve e\u0301 \u1e9e ﬁ",  # "e" with a combining accent: other ids after normalisation
    "数え方 一二三 한국어 Привет नमस्ते",
    "🦙 🤦🏼‍♂️ 👩‍👩‍👧‍👦",
    "\0 \x01 \x7f \ufeff \u2028 \ufffd",
    "def f(x):\n    return {'a': [x ** 2, \"\\n\"]}\n",
    "=" * 300 + " " * 300 + "ab" * 300,
]


def vocabulary_file(name: str) -> Path:
    """llama.cpp's vocabulary of that name, a GGUF file without tensors."""
    return fetch.llama_cpp_sdist() / f"ggml-vocab-{name}.gguf"


@cache
def tokenizer(name: str) -> Tokenizer:
    """The tokenizer of llama.cpp's vocabulary `name`, or of the SmolLM2 file."""
    path = fetch.smollm2() if name == "smollm" else vocabulary_file(name)
    with open_gguf(path) as file:
        return from_metadata(file.metadata)


def arrays(name: str) -> dict[str, list[Any]]:
    """Tokens, types and merges of a vocabulary as lists."""
    path = fetch.smollm2() if name == "smollm" else vocabulary_file(name)
    with open_gguf(path) as file:
        return {key: list(file.metadata[f"tokenizer.ggml.{key}"]) for key in ("tokens", "token_type", "merges")}


def gpt2(**changes: Any) -> dict[str, Any]:
    """Metadata of a byte-level vocabulary: 256 bytes, four merges, two control tokens, an added word.

    `changes` replace keys below ``tokenizer.ggml.``; None removes one.
    """
    words = ["he", "ll", "hell", "hello"]
    keys: dict[str, Any] = {
        "model": "gpt2",
        "pre": "gpt-2",
        "tokens": [*byte_alphabet(), *words, "<|im_start|>", "<|im_end|>", "<added>"],
        "token_type": [1] * 260 + [3, 3, 4],
        "merges": ["h e", "l l", "he ll", "hell o"],
        "bos_token_id": 260,
        "eos_token_id": 261,
    }
    return _metadata(keys, changes)


def llama(**changes: Any) -> dict[str, Any]:
    """Metadata of a small sentencepiece vocabulary with byte fallback; `changes` as in `gpt2`."""
    pieces = ["▁", "a", "b", "c", "ab", "▁a", "▁ab", "abc", "▁abc"]
    keys: dict[str, Any] = {
        "model": "llama",
        "pre": "default",
        "tokens": ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces],
        "token_type": [2, 3, 3] + [6] * 256 + [1] * len(pieces),
        "scores": [0.0] * 259 + [-10.0 - i for i in range(4)] + [float(i) for i in range(5)],
    }
    return _metadata(keys, changes)


def _metadata(keys: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = {**keys, **changes}
    return {f"tokenizer.ggml.{key}": value for key, value in merged.items() if value is not None}
