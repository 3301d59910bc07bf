# SPDX-License-Identifier: Apache-2.0
"""Golden hashes: what the logits of the tiny Llama 3 are, to the last bit, on every machine that the engine runs on.

`tests/data/golden.json` holds, per weight format, the sha256 of the model's tensors (so that a change in how the test
model is quantised is not taken for a change of arithmetic) and, per KV type, the sha256 of the float32 logits, little
endian, of a fixed input: 94 tokens, all rows; then 600 tokens, the last four rows. Quantised formats have such hashes
for prompts in the rowwise class too, smoothed as tests/rowwise.py draws it; there 30 tokens follow that the model would
have generated. The hashes were made by the scalar reference on one thread. They change only when the arithmetic is
changed on purpose; then, and only then:

    SMEPILOT_ISA=scalar python -m tests.sdk.runtime.golden
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np

from smepilot.runtime.runner import Runner
from smepilot.runtime.sequence import Role
from tests import fetch
from tests.rowwise import open_rowwise

DATA = Path(__file__).parents[2] / "data"
FORMATS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0")
QUANTISED = ("Q4_0", "Q4_1", "Q8_0")
KV_TYPES: tuple[Literal["f16", "f32"], ...] = ("f16", "f32")


def inputs() -> tuple[list[int], list[int]]:
    """The 94 and the 600 token ids of the Hugging Face reference."""
    with np.load(DATA / "tiny-llama3" / "reference.npz") as reference:
        return reference["ids"].tolist(), reference["long_ids"].tolist()


def model_hash(path: Path) -> str:
    """The sha256 of all tensors' bytes, in the file's order."""
    digest = hashlib.sha256()
    for tensor in gguf.GGUFReader(path).tensors:
        digest.update(np.ascontiguousarray(tensor.data))
    return digest.hexdigest()


def logits_hash(runner: Runner) -> str:
    """The sha256 of the logits of both inputs."""
    short, long = inputs()
    digest = hashlib.sha256()
    for ids, rows in ((short, len(short)), (long, 4)):
        handle = runner.sequence()
        digest.update(runner.forward([(handle, ids)], "all")[-rows:].astype("<f4").tobytes())
        handle.free()
    if runner.prompt_class == "rowwise":
        handle = runner.sequence()
        runner.forward([(handle, short[:64])], "none")
        digest.update(runner.forward([(handle, short[64:])], "all", role=Role.GENERATED).astype("<f4").tobytes())
        handle.free()
    return digest.hexdigest()


def _hash_and_close(runner: Runner) -> str:
    try:
        return logits_hash(runner)
    finally:
        runner.close()


def make() -> dict[str, Any]:
    """The content of golden.json, computed now."""
    golden: dict[str, Any] = {}
    for dtype in FORMATS:
        path = fetch.tiny_llama3_gguf(dtype)
        golden[dtype] = {"tensors": model_hash(path)}
        for kv in KV_TYPES:
            golden[dtype][kv] = _hash_and_close(Runner.open(path, threads=1, kv_dtype=kv, prompt_class="grouped"))
        if dtype in QUANTISED:
            golden[dtype]["rowwise"] = {
                kv: _hash_and_close(open_rowwise(path, threads=1, kv_dtype=kv)) for kv in KV_TYPES
            }
    return golden


if __name__ == "__main__":
    (DATA / "golden.json").write_text(json.dumps(make(), indent=1) + "\n")
