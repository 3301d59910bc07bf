# SPDX-License-Identifier: Apache-2.0
"""How tests ask the tiny model: it is sure of itself and repeats a letter, so plain texts would hide mistakes."""

from __future__ import annotations

from typing import Any

PROMPT = "Once upon a time there was a small model"

# Texts in which a mistake would show: many tokens are about as likely, or none may be repeated for long.
VARIED: Any = {"temperature": 6.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "ignore_eos": True}
RESTLESS: Any = {"temperature": 0, "frequency_penalty": 5.0, "ignore_eos": True}
