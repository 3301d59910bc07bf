# SPDX-License-Identifier: Apache-2.0
"""This machine gives the bits that the emulated processors have to give."""

from __future__ import annotations

import json

import pytest

from smepilot.types import PromptClass
from tests.arm import smollm2


@pytest.mark.parametrize("prompt_class", smollm2.CLASSES)
def test_a_real_models_bits(prompt_class: PromptClass) -> None:
    runner = smollm2.opened(prompt_class, threads=2)
    try:
        assert smollm2.answer(runner) == json.loads(smollm2.GOLDEN.read_text())[prompt_class]
    finally:
        runner.close()
