# SPDX-License-Identifier: Apache-2.0
r"""How a text is cut into words before byte-pair merging: one row per ``tokenizer.ggml.pre``.

A row is a list of steps of the `tokenizers` package, applied one after the other to the pieces of the one before.
Patterns are the ones that the models' own tokenizer.json files hold (Oniguruma syntax: ``\p{L}`` letters, ``\p{N}``
numbers, ``\p{P}`` punctuation); a name is llama.cpp's, and several models share a row. Pieces stay plain text here:
the usual last step, GPT-2's detour that writes bytes as printable characters, is taken back in bpe.py anyway.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from smepilot.errors import TokenizerError

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

_LOG = logging.getLogger(__name__)

_DIGIT = r"\p{N}"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST
_QWEN2 = _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST
_QWEN35 = (
    _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_THREE_DIGITS = "[0-9][0-9][0-9]"


class Scheme(NamedTuple):
    """What happens to a text before merging.

    Attributes:
        patterns: regular expressions; each cuts every piece at its matches, and keeps matches and gaps as pieces.
        nfc: bring the text to Unicode normal form C first.
        whole_words: a piece that is a token as it stands is that token, whatever the merges would make of it.
        add_bos: whether texts begin with BOS where the file does not say.
    """

    patterns: tuple[str, ...]
    nfc: bool = False
    whole_words: bool = False
    add_bos: bool = False


_DEFAULT = Scheme((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", _THREE_DIGITS))
_WORDS = Scheme((_GPT2,))
_DIGITS_WORDS = Scheme((_DIGIT, _GPT2))
_LLAMA = Scheme((_LLAMA3,), whole_words=True, add_bos=True)
_QWEN = Scheme((_QWEN2,), nfc=True)

SCHEMES: dict[str, Scheme] = {
    "default": _DEFAULT,
    "gpt-2": _WORDS,
    "phi-2": _WORDS,
    "mpt": _WORDS,
    "olmo": _WORDS,
    "modern-bert": _WORDS,
    "smollm": _DIGITS_WORDS,
    "starcoder": _DIGITS_WORDS,
    "refact": _DIGITS_WORDS,
    "command-r": _DIGITS_WORDS,
    "codeshell": _DIGITS_WORDS,
    "minerva-7b": _DIGITS_WORDS,
    "falcon": Scheme((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, _THREE_DIGITS)),
    "llama-bpe": _LLAMA,
    "llama3": _LLAMA,
    "llama-v3": _LLAMA,
    "falcon3": _LLAMA,
    "lfm2": _LLAMA,
    "smaug-bpe": Scheme((_LLAMA3,)),  # SmolLM3
    "dbrx": Scheme((_LLAMA3,)),
    "glm4": Scheme((_LLAMA3,), whole_words=True),
    "qwen2": _QWEN,
    "deepseek-r1-qwen": _QWEN,
    "megrez": _QWEN,
    "stablelm2": Scheme((_QWEN2,)),
    "qwen35": Scheme((_QWEN35,), nfc=True),
}


def scheme(name: Any) -> Scheme:
    """The scheme of a ``tokenizer.ggml.pre``; a warning where the file names none, or one that is not known."""
    if name is None:
        _LOG.warning(
            "key 'tokenizer.ggml.pre' is missing (an old conversion): assuming 'default' word boundaries, which are "
            "wrong for most models; text quality may suffer, convert the model again"
        )
        return _DEFAULT
    if not isinstance(name, str):
        raise TokenizerError(f"tokenizer.ggml.pre is {name!r:.60}, not a name: correct this key in the file")
    found = SCHEMES.get(name)
    if found is None:
        _LOG.warning(
            "tokenizer.ggml.pre %r is not known: assuming 'default' word boundaries; known are %s",
            name,
            ", ".join(SCHEMES),
        )
        return _DEFAULT
    return found


def pre_tokenizer(scheme: Scheme) -> PreTokenizer:
    """The steps of a scheme as an object whose ``pre_tokenize_str`` gives the pieces in order."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Sequence, Split

    return Sequence([Split(Regex(pattern), "isolated") for pattern in scheme.patterns])
