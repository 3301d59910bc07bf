# SPDX-License-Identifier: Apache-2.0
"""GGUF's ``llama`` kind: sentencepiece BPE with byte fallback (Llama 2, Mistral, TinyLlama …).

GGUF stores the pieces of a sentencepiece model with scores and types but not the model, so one is written from them
(pack_spm.py) and run by the `sentencepiece` package. Spaces follow llama.cpp, whose converters decide what the files
say: a space goes in front of the text, and of every text after a special token, unless
``tokenizer.ggml.add_space_prefix`` is false; decoding takes one leading space away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smepilot.errors import TokenizerError
from smepilot.text.base import VocabularyTokenizer
from smepilot.text.cache import Packed

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


class SentencePieceTokenizer(VocabularyTokenizer):
    """A `Tokenizer` of the ``llama`` kind."""

    def __init__(self, packed: Packed) -> None:
        """`packed`: what pack_spm.py made."""
        super().__init__(packed)
        self._model = packed.blobs["model"]
        self._processor: SentencePieceProcessor | None = None

    def _encode_plain(self, text: str, after_special: bool, ids: list[int]) -> None:
        if self._processor is None:
            self._processor = load_model(bytes(self._model))
        if self.space_prefix and after_special:
            text = " " + text
        # The spare unknown lies behind the vocabulary: what it stands for is what the model cannot say at all.
        ids += [i for i in self._processor.EncodeAsIds(text) if i < self.vocab_size]


def load_model(model: bytes) -> SentencePieceProcessor:
    """The model in the package that runs it; TokenizerError where that refuses it."""
    from sentencepiece import SentencePieceProcessor

    try:
        return SentencePieceProcessor(model_proto=model)
    except (RuntimeError, OSError) as error:
        raise TokenizerError(
            f"sentencepiece refuses the vocabulary in tokenizer.ggml.tokens ({error}): convert the model again"
        ) from error
