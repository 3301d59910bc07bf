# SPDX-License-Identifier: Apache-2.0
"""A real model's answer, to the last bit: SmolLM2 cut to two decoder blocks, on 64 tokens and 16 more that it chooses.

Packed weights, and for the rowwise class what was calibrated, lie in one folder for all processors: the first to open
the model packs it, and the others read the very bytes, as on a disk that is carried from one machine to another.

`tests/data/golden_smollm2.json` keeps, per prompt class, the sha256 of the float32 logits of all 64 positions, little
endian, and the greedy continuation. Like golden.json it was made by the scalar reference on one thread and changes only
when the arithmetic is changed on purpose:

    SMEPILOT_ISA=scalar python -m tests.arm.smollm2
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from smepilot.runtime.runner import Runner
from smepilot.runtime.sequence import Role
from smepilot.types import PromptClass
from tests import fetch
from tests.arm.processors import CROSS

GOLDEN = Path(__file__).parents[1] / "data" / "golden_smollm2.json"
PACKED = CROSS / "packed"
CLASSES: tuple[PromptClass, ...] = ("grouped", "rowwise")
VOCABULARY, TOKENS, ANSWER = 49152, 64, 16


def prompt() -> list[int]:
    """64 token ids, the same everywhere."""
    return np.random.default_rng(0).integers(0, VOCABULARY, TOKENS).tolist()


def opened(prompt_class: PromptClass, *, threads: int) -> Runner:
    """A runner of the model in the class, with keys and values in float16."""
    path = fetch.smollm2_two_blocks()
    return Runner.open(path, threads=threads, ctx=256, prompt_class=prompt_class, cache_dir=PACKED)


def answer(runner: Runner) -> dict[str, Any]:
    """The hash of the prompt's logits, and what the model says to it."""
    handle = runner.sequence()
    logits = runner.forward([(handle, prompt())], "all")
    chosen, row = [], logits[-1]
    for _ in range(ANSWER):
        chosen.append(int(row.argmax()))
        (row,) = runner.forward([(handle, chosen[-1:])], role=Role.GENERATED)
    handle.free()
    return {"logits": hashlib.sha256(logits.astype("<f4").tobytes()).hexdigest(), "answer": chosen}


def make() -> dict[str, Any]:
    """The content of golden_smollm2.json, computed now."""
    golden = {}
    for prompt_class in CLASSES:
        runner = opened(prompt_class, threads=1)
        golden[prompt_class] = answer(runner)
        runner.close()
    return golden


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(make(), indent=1) + "\n")
