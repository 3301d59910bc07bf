# SPDX-License-Identifier: Apache-2.0
"""What the rowwise class costs: perplexity of SmolLM2 on 16,368 tokens of two texts that nothing was calibrated on.

The bar is one per cent. One text is a novel, the other the reference manual of the Python that runs the test; windows
of 1,024 tokens, so that the difference is known to 0.12 per cent.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from smepilot import _native
from smepilot.runtime.runner import Runner
from smepilot.text.tokenizer import from_metadata
from tests import fetch

WINDOW, WINDOWS, STEP = 1024, 8, 128


def texts() -> dict[str, str]:
    from pydoc_data.topics import topics

    return {
        "novel": fetch.botchan().read_text(encoding="utf-8"),
        "manual": "\n\n".join(map(topics.get, sorted(topics))),
    }


def losses(runner: Runner, ids: list[int]) -> list[float]:
    """Negative log-likelihoods of a window's tokens but the first, computed as a prompt."""
    handle, found = runner.sequence(), []
    for at in range(0, len(ids), STEP):
        rows = runner.forward([(handle, ids[at : at + STEP])], "all", copy=False)
        found += [-_native.log_softmax_at(row, t) for row, t in zip(rows, ids[at + 1 : at + 1 + STEP], strict=False)]
    handle.free()
    return found


@pytest.mark.slow
@pytest.mark.network
def test_rowwise_prompts_lose_less_than_one_per_cent(smollm2: Path, tmp_path: Path) -> None:
    found: dict[str, list[list[float]]] = {"grouped": [], "rowwise": []}
    for prompts, each in found.items():
        runner = Runner.open(smollm2, ctx=WINDOW, prompt_class=prompts, cache_dir=tmp_path)  # type: ignore[arg-type]
        tokenizer = from_metadata(runner.metadata)
        for text in texts().values():
            ids = tokenizer.encode(text[: 8 * WINDOW * WINDOWS])
            each.append([x for i in range(WINDOWS) for x in losses(runner, ids[i * WINDOW : (i + 1) * WINDOW])])
        assert any("_q8r_q8r_" in name for name in runner.counts()) == (prompts == "rowwise")
        runner.close()
    grouped, rowwise = np.array(found["grouped"]), np.array(found["rowwise"])
    assert grouped.size == 2 * WINDOWS * (WINDOW - 1)
    for loss in (rowwise - grouped).mean(axis=1):
        assert math.expm1(loss) < 0.01
    assert math.expm1((rowwise - grouped).mean()) < 0.005
