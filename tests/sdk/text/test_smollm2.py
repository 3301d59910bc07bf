# SPDX-License-Identifier: Apache-2.0
"""Template and tokenizer together on the embedded model: the ids that the reference runs were made with."""

from __future__ import annotations

import json

import numpy as np

from smepilot.text import ChatTemplate, StreamDecoder
from smepilot.weights.gguf import open_gguf
from tests import fetch
from tests.sdk.text.samples import BOTCHAN, tokenizer

DATA = BOTCHAN.parent


def test_a_prompt_through_the_models_own_template() -> None:
    prompt = json.loads((DATA / "prompts.json").read_text())[0]
    with open_gguf(fetch.smollm2()) as file:
        template = ChatTemplate.from_metadata(file.metadata, tokenizer("smollm"))
    text = template.render([{"role": "user", "content": prompt}])
    with np.load(DATA / "hf_f32.npz") as reference:
        assert tokenizer("smollm").encode(text) == reference["ids"].tolist()


def test_the_text_that_perplexity_is_measured_on() -> None:
    with np.load(DATA / "hf_f32.npz") as reference:
        assert tokenizer("smollm").encode(BOTCHAN.read_text()) == reference["ppl_ids"].tolist()


def test_answers_whole_and_streamed() -> None:
    for case in json.loads((DATA / "robust_prompts.json").read_text()):
        ids = case["gen_ids_f32"]
        assert tokenizer("smollm").decode(ids, skip_special=False) == case["text_f32"]
        stream = StreamDecoder(tokenizer("smollm"), skip_special=False)
        assert "".join(map(stream.push, ids)) + stream.flush() == case["text_f32"]
