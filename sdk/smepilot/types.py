# SPDX-License-Identifier: Apache-2.0
"""The frozen values that travel between caller and engine: what is asked for, what comes back.

Units: seconds are float seconds of a monotonic clock, memory is bytes, rates are tokens per second.
What was not measured is None, never 0.

One set of defaults serves `complete`, `stream`, `astream`, sessions and the command line: they are the defaults of
`GenerateParams`, and nothing else in the package names another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypedDict

from smepilot.errors import InvalidParameterError

FinishReason = Literal["stop", "length", "cancelled"]
PromptClass = Literal["grouped", "rowwise"]
"""How linear layers compute prompts: int8 with a scale per 32 columns, or with one for each row."""
PromptClassChoice = Literal["auto", "grouped", "rowwise"]
TokenRole = Literal["prompt", "generated"]
EnergySource = Literal["measured", "gauge", "model", "none"]
Message = Mapping[str, Any]

SEED_LIMIT = 1 << 64


class Sampling(TypedDict, total=False):
    """The keywords of `GenerateParams`, as `complete(**sampling)` and its kin take them."""

    max_tokens: int | None
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int | None
    stop: str | Sequence[str]
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: Mapping[int, float]
    ignore_eos: bool


@dataclass(frozen=True)
class GenerateParams:
    """How an answer is generated.

    Raises InvalidParameterError, naming value and range, for anything outside the ranges below.

    Attributes:
        max_tokens: Most tokens to generate, at least 1; None: until the model stops or the context is full.
        temperature: 0 picks the likeliest token; larger is more random.
        top_k: Keep the k likeliest tokens; 0 or -1 keeps all, as does a k beyond the vocabulary.
        top_p: Keep the smallest set of likeliest tokens whose probability reaches p, 0 < p <= 1.
        min_p: Keep tokens at least p times as likely as the likeliest, 0 <= p <= 1.
        seed: 0 <= seed < 2**64; same seed, same text. None draws a seed; the result names it.
        stop: Text at which the answer ends; it is not part of the answer.
        repetition_penalty: Divides the logits of tokens in prompt or answer, > 0; 1 is off.
        presence_penalty: Subtracted from the logits of tokens in the answer.
        frequency_penalty: Subtracted once for each time the token stands in the answer.
        logit_bias: Added to the logits of these token ids; -inf forbids a token.
        ignore_eos: Never choose a token that ends the answer.
    """

    max_tokens: int | None = None
    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    seed: int | None = None
    stop: str | Sequence[str] = ()
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        """Checks every range; `stop` becomes a tuple."""
        if self.max_tokens is not None:
            _require_int("max_tokens", self.max_tokens, 1)
        _require_int("top_k", self.top_k, -1)
        if self.seed is not None:
            _require_int("seed", self.seed, 0, SEED_LIMIT - 1)
        _require("temperature", self.temperature, "{} >= 0", lambda t: t >= 0)
        _require("top_p", self.top_p, "0 < {} <= 1", lambda p: 0 < p <= 1)
        _require("min_p", self.min_p, "0 <= {} <= 1", lambda p: 0 <= p <= 1)
        _require("repetition_penalty", self.repetition_penalty, "{} > 0", lambda p: p > 0)
        _require("presence_penalty", self.presence_penalty, "a finite {}", math.isfinite)
        _require("frequency_penalty", self.frequency_penalty, "a finite {}", math.isfinite)
        if not isinstance(self.ignore_eos, bool):
            raise InvalidParameterError(f"ignore_eos is {self.ignore_eos!r}; expected True or False")
        self._check_stop()
        self._check_bias()

    def _check_stop(self) -> None:
        stop = (self.stop,) if isinstance(self.stop, str) else self.stop
        if not isinstance(stop, Sequence) or not all(isinstance(text, str) and text for text in stop):
            raise InvalidParameterError(f"stop is {self.stop!r}; expected one or more non-empty strings")
        object.__setattr__(self, "stop", tuple(stop))

    def _check_bias(self) -> None:
        if not isinstance(self.logit_bias, Mapping):
            raise InvalidParameterError(f"logit_bias is {self.logit_bias!r}; expected token ids with numbers")
        for token, bias in self.logit_bias.items():
            _require_int("logit_bias token", token, 0)
            if not isinstance(bias, int | float) or math.isnan(bias) or bias == math.inf:
                raise InvalidParameterError(f"logit_bias[{token}] is {bias!r}; expected a number below infinity")

    @property
    def stops(self) -> tuple[str, ...]:
        """`stop` as a tuple."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    def with_changes(self, changes: Sampling) -> GenerateParams:
        """These parameters with some replaced; an unknown keyword raises TypeError."""
        return replace(self, **changes) if changes else self


def _require(name: str, value: float, expected: str, within: Callable[[float], bool]) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not within(value):
        raise InvalidParameterError(f"{name} is {value!r}; expected {expected.format(name)}")


def _require_int(name: str, value: int, low: int, high: int | None = None) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        limit = f"an integer >= {low}" if high is None else f"{low} <= {name} <= {high}"
        raise InvalidParameterError(f"{name} is {value!r}; expected {limit}")


@dataclass(frozen=True)
class Seconds:
    """Where the time of a request went.

    `queue` ends when its first token enters a step, `prefill` when the first new token is drawn, `decode` when the
    last one is. `detokenize` runs beside the engine's steps, so the parts need not add up to `total`.
    """

    template: float = 0.0
    tokenize: float = 0.0
    queue: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    detokenize: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class Usage:
    """What a request took.

    Attributes:
        prompt_tokens: Tokens of the prompt, with those that were cached.
        cached_tokens: Tokens of the prompt whose keys and values were still there from an earlier turn.
        completion_tokens: Tokens of the answer, without the one that ended it.
        seconds: The time, split.
        time_to_first_token: From the call to the first token of the answer; None if there was none.
        peak_memory_bytes: Largest resident size of the process so far; None where the system does not say.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    seconds: Seconds
    time_to_first_token: float | None = None
    peak_memory_bytes: int | None = None

    @property
    def prompt_tokens_per_second(self) -> float | None:
        """Rate of prefill over the tokens that were not cached."""
        return _rate(self.prompt_tokens - self.cached_tokens, self.seconds.prefill)

    @property
    def generation_tokens_per_second(self) -> float | None:
        """Rate of decode; the first token belongs to prefill."""
        return _rate(self.completion_tokens - 1, self.seconds.decode)

    @property
    def time_per_output_token(self) -> float | None:
        """Mean seconds between two tokens of the answer."""
        rate = self.generation_tokens_per_second
        return 1.0 / rate if rate else None

    def as_dict(self) -> dict[str, Any]:
        """All fields and rates, for JSON."""
        return asdict(self) | {
            "prompt_tokens_per_second": self.prompt_tokens_per_second,
            "generation_tokens_per_second": self.generation_tokens_per_second,
            "time_per_output_token": self.time_per_output_token,
        }


def _rate(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens > 0 and seconds > 0 else None


@dataclass(frozen=True)
class Completion:
    """A whole answer. `energy` is joules, or None with source "none" where nothing was measured."""

    text: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason
    usage: Usage
    seed: int
    energy: float | None = None
    energy_source: EnergySource = "none"

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self) | {"usage": self.usage.as_dict()}


@dataclass(frozen=True)
class Chunk:
    """A piece of an answer as it is streamed; the last one, perhaps with no text, carries reason and completion."""

    text: str
    tokens: tuple[int, ...] = ()
    finish_reason: FinishReason | None = None
    completion: Completion | None = None


@dataclass(frozen=True)
class Calibration:
    """What was measured of a model's classes for prompts.

    Attributes:
        default: The class that `Engine.open` picks by itself.
        loss: By what fraction perplexity of a built-in text is higher in the rowwise class; None: not measured.
        reason: Why the model has no rowwise class; None where it has one.
    """

    default: PromptClass
    loss: float | None
    reason: str | None


@dataclass(frozen=True)
class Perplexity:
    """How well a model predicts a text: `value` = exp(`nll`), `nll` the mean over `tokens` in nats per token."""

    value: float
    nll: float
    tokens: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)
