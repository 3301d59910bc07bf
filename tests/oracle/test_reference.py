# SPDX-License-Identifier: Apache-2.0
"""Two models against Hugging Face transformers: what the engine computes is what the model's makers computed.

The references are in tests/data (README.md there). With float32 weights and float32 KV only rounding differs; the
default float16 KV costs a little; the Q4_1 file, whose activations are rounded to int8, is judged by perplexity and by
the words it says where the reference is sure of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from smepilot.runtime.runner import Runner
from smepilot.runtime.sequence import Role
from smepilot.text.tokenizer import from_metadata
from tests import fetch

DATA = Path(__file__).parents[1] / "data"
TEXT_IN_CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
Reference = Mapping[str, NDArray[Any]]


def forward(runner: Runner, ids: NDArray[Any] | list[int]) -> NDArray[np.float32]:
    handle = runner.sequence()
    logits = runner.forward([(handle, [int(i) for i in ids])], "all")
    handle.free()
    return logits


def greedy(runner: Runner, ids: NDArray[Any] | list[int], count: int) -> list[int]:
    handle, answer = runner.sequence(), [int(i) for i in ids]
    new, role = answer[:], Role.PROMPT
    for _ in range(count):
        (row,) = runner.forward([(handle, new)], role=role)
        new, role = [int(row.argmax())], Role.GENERATED
        answer += new
    handle.free()
    return answer[-count:]


def negative_log_likelihoods(runner: Runner, ids: NDArray[Any]) -> NDArray[np.float64]:
    """Of each token but the first, in nats."""
    rows = forward(runner, ids)[:-1].astype(np.float64)
    peak = rows.max(axis=1)
    chosen = rows[np.arange(len(rows)), ids[1:]]
    return np.asarray(peak + np.log(np.exp(rows - peak[:, None]).sum(axis=1)) - chosen)


# ---- tiny Llama 3: every logit


@pytest.fixture(scope="module")
def tiny() -> Reference:
    return dict(np.load(DATA / "tiny-llama3" / "reference.npz"))


@pytest.mark.parametrize("rope", ["tensor", "metadata"])
def test_tiny_llama3(rope: Any, tiny: Reference) -> None:
    """Short input, 600 tokens (beyond the original context of 128 that the rotary scaling extends), greedy answer."""
    runner = Runner.open(fetch.tiny_llama3_gguf(rope=rope), kv_dtype="f32")
    assert np.abs(forward(runner, tiny["ids"]) - tiny["logits"]).max() < 1e-4
    assert np.abs(forward(runner, tiny["long_ids"])[-4:] - tiny["long_last4"]).max() < 1e-4
    assert greedy(runner, tiny["ids"], len(tiny["greedy"])) == tiny["greedy"].tolist()
    runner.close()


def test_rope_scaling_from_tensor_and_metadata(tiny: Reference) -> None:
    """Both give the same frequencies to the last place or the one before."""
    frequencies = []
    for rope in ("tensor", "metadata"):
        runner = Runner.open(fetch.tiny_llama3_gguf(rope=rope))  # type: ignore[arg-type]
        frequencies.append(np.array(runner.config.inv_freq))
        runner.close()
    assert (np.abs(frequencies[0] - frequencies[1]) <= 2**-23 * frequencies[0]).all()


# ---- SmolLM2


@pytest.fixture(scope="module")
def reference() -> Reference:
    return dict(np.load(DATA / "smollm2" / "hf_f32.npz"))


@pytest.fixture(scope="module")
def exact() -> Iterator[Runner]:
    """SmolLM2 dequantised exactly, with float32 KV."""
    runner = Runner.open(fetch.smollm2_float(), kv_dtype="f32", ctx=2048)
    yield runner
    runner.close()


@pytest.fixture(scope="module", params=["grouped", "rowwise"])
def quantised(
    request: pytest.FixtureRequest, smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runner]:
    """SmolLM2 as it is shipped, with the default KV, in either class of prompts."""
    runner = Runner.open(smollm2, ctx=2048, prompt_class=request.param, cache_dir=tmp_path_factory.mktemp("cache"))
    yield runner
    runner.close()


def assert_agrees(runner: Runner, reference: Reference, tolerance: float) -> None:
    """All logits that are stored, and every row's sum, for the prompt and for each step of the reference's answer."""
    prompt, answer = reference["ids"], reference["gen_ids"]
    logits = forward(runner, np.concatenate([prompt, answer[:-1]]))
    rows = np.arange(len(prompt))[:, None]
    assert np.abs(logits[: len(prompt), reference["columns"]] - reference["logits"]).max() < tolerance
    assert np.abs(logits[rows, reference["top"]] - reference["top_logits"]).max() < tolerance
    steps = logits[len(prompt) - 1 :]
    assert np.abs(steps[np.arange(len(answer))[:, None], reference["gen_top"]] - reference["gen_top_logits"]).max() < (
        tolerance
    )
    wide = logits[: len(prompt)].astype(np.float64)
    count = wide.shape[1]
    assert np.abs(wide.sum(axis=1) - reference["row_sum"]).max() < tolerance * count
    spread = np.sqrt(reference["row_sum_squares"])
    assert np.abs(np.sqrt((wide**2).sum(axis=1)) - spread).max() < tolerance * np.sqrt(count)
    assert greedy(runner, prompt, len(answer)) == answer.tolist()


@pytest.mark.slow
def test_smollm2_float(exact: Runner, reference: Reference) -> None:
    assert_agrees(exact, reference, 1e-3)


@pytest.mark.slow
def test_smollm2_float_with_float16_kv(reference: Reference) -> None:
    runner = Runner.open(fetch.smollm2_float(), ctx=2048)
    assert_agrees(runner, reference, 0.1)
    runner.close()


@pytest.mark.slow
def test_smollm2_float_perplexity(exact: Runner, reference: Reference) -> None:
    losses = negative_log_likelihoods(exact, reference["ppl_ids"])
    assert np.abs(losses - reference["ppl_nll"]).max() < 1e-3


@pytest.mark.slow
def test_smollm2_q4_1_perplexity(quantised: Runner, reference: Reference) -> None:
    """Within 1.2 % of the float32 model's 31.94 (1,038 tokens, one window, no BOS)."""
    perplexity = np.exp(negative_log_likelihoods(quantised, reference["ppl_ids"]).mean())
    assert abs(perplexity / np.exp(reference["ppl_nll"].mean()) - 1) < 0.012
    assert abs(perplexity / 31.94 - 1) < 0.012


@pytest.mark.slow
def test_smollm2_q4_1_says_the_same_where_the_reference_is_sure(quantised: Runner) -> None:
    """24 tokens of the answer whose two likeliest tokens are never closer than 0.2."""
    prompts = json.loads((DATA / "smollm2" / "robust_prompts.json").read_text())
    (sure,) = (p for p in prompts if len(p["gaps_f32"]) >= 24 and min(p["gaps_f32"][:24]) > 0.2)
    tokenizer = from_metadata(quantised.metadata)
    ids = tokenizer.encode(TEXT_IN_CHAT.format(sure["prompt"]), add_special=False)
    assert greedy(quantised, ids, 24) == sure["gen_ids_f32"][:24]


@pytest.mark.slow
def test_the_prompts_are_tokenised_as_the_reference_was(quantised: Runner, reference: Reference) -> None:
    """Else the test above would ask another question."""
    (first, *_) = json.loads((DATA / "smollm2" / "prompts.json").read_text())
    tokenizer = from_metadata(quantised.metadata)
    assert tokenizer.encode(TEXT_IN_CHAT.format(first), add_special=False) == reference["ids"].tolist()
