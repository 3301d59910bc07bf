# SPDX-License-Identifier: Apache-2.0
"""Floor 2: text to tokens and back, and conversations to text.

``from_metadata`` builds a `Tokenizer` from a model file's metadata, `ChatTemplate` renders messages, `StreamDecoder`
turns tokens into text as they come. The packages behind them (tokenizers, sentencepiece, jinja2) are imported when
the first text is encoded or rendered, not with this one.
"""

from __future__ import annotations

from smepilot.text.detok import StreamDecoder
from smepilot.text.template import ChatTemplate
from smepilot.text.tokenizer import Tokenizer, from_metadata

__all__ = ["ChatTemplate", "StreamDecoder", "Tokenizer", "from_metadata"]
