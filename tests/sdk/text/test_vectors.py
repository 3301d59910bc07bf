# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's own vectors: some fifty awkward texts per vocabulary and the ids that the models' makers give them."""

from __future__ import annotations

import pytest

from tests.sdk.text.samples import SEPARATOR, tokenizer, vocabulary_file

NAMES = ["gpt-2", "llama-bpe", "qwen2", "starcoder", "command-r", "falcon", "mpt", "refact", "llama-spm", "phi-3"]


def vectors(name: str) -> list[tuple[str, list[int]]]:
    path = vocabulary_file(name)
    texts = path.with_name(path.name + ".inp").read_bytes().decode().split(SEPARATOR)[:-1]
    lines = path.with_name(path.name + ".out").read_text().splitlines()[: len(texts)]
    return list(zip(texts, ([int(word) for word in line.split()] for line in lines), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_equal(name: str) -> None:
    cases = vectors(name)
    assert len(cases) >= 46
    wrong = [(text, ids) for text, ids in cases if tokenizer(name).encode(text, add_special=False) != ids]
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_ids_decode_to_the_text(name: str) -> None:
    for text, ids in vectors(name):
        assert tokenizer(name).decode(ids) == text


@pytest.mark.parametrize(
    ("name", "bos", "eos", "ends", "add_bos"),
    [
        ("gpt-2", "<|endoftext|>", "<|endoftext|>", {50256}, False),
        ("llama-bpe", "<|begin_of_text|>", "<|end_of_text|>", {128001, 128009}, True),
        ("qwen2", "<|endoftext|>", "<|endoftext|>", {151643, 151645}, False),
        ("llama-spm", "<s>", "</s>", {2}, True),
        ("phi-3", "<s>", "<|endoftext|>", {32000, 32007}, True),
        ("smollm", "<|im_start|>", "<|im_end|>", {2}, False),
    ],
)
def test_opening_and_closing_tokens(name: str, bos: str, eos: str, ends: set[int], add_bos: bool) -> None:
    subject = tokenizer(name)
    assert (subject.bos_token, subject.eos_token) == (bos, eos)
    assert subject.eos_ids == ends
    assert subject.add_bos is add_bos
