# SPDX-License-Identifier: Apache-2.0
"""Architecture `llama`: what metadata means, and what is said about metadata that means nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smepilot import arch
from smepilot.errors import FileFormatError, ModelError, UnsupportedModelError
from tests import random_llama
from tests.random_llama import SCALING_KEYS, Shape

WHERE = "model.gguf"


class Tensor(NamedTuple):
    shape: tuple[int, ...]


def read(changes: dict[str, Any] | None = None, shape: Shape | None = None, **options: Any) -> arch.ModelConfig:
    """The configuration of a model of `shape` whose metadata was changed; None leaves a key out."""
    shape = shape or Shape()
    metadata = {"general.architecture": "llama", **random_llama.metadata(shape)} | (changes or {})
    metadata = {key: value for key, value in metadata.items() if value is not None}
    tensors = {name: Tensor(values.shape) for name, values in random_llama.tensors(shape).items()}
    return arch.from_metadata(metadata, tensors, where=WHERE, **options)


def test_sizes() -> None:
    config = read(shape=Shape(d_model=96, heads=6, kv_heads=2, head_dim=40, d_ff=184, layers=3, vocab=17, context=512))
    assert (config.d_model, config.n_heads, config.n_kv_heads, config.head_dim) == (96, 6, 2, 40)
    assert (config.d_ff, config.n_layers, config.vocab_size, config.context_length) == (184, 3, 17, 512)
    assert (config.q_size, config.kv_size) == (240, 80)
    assert config.linear_parameters == 3 * (96 * 240 + 2 * 96 * 80 + 240 * 96 + 3 * 96 * 184)
    assert (config.architecture, config.name) == ("llama", WHERE)


def test_defaults() -> None:
    """Old files leave out what follows from the rest."""
    keys = ("key_length", "value_length", "head_count_kv")
    left_out: dict[str, Any] = {f"llama.attention.{key}": None for key in keys}
    config = read(left_out | {"llama.rope.dimension_count": None, "llama.rope.freq_base": None})
    assert (config.head_dim, config.n_kv_heads) == (16, 4)
    assert config.inv_freq == read({"llama.rope.freq_base": 10000.0}).inv_freq


def test_output_is_tied_where_there_is_no_other() -> None:
    assert read().tied_output
    assert not read(shape=Shape(tied=False)).tied_output


# ---- rotary frequencies


def test_frequencies_are_hugging_faces() -> None:
    """1 / base^(2i/d), the power rounded to float32 and then inverted in float32."""
    config = read(shape=Shape(head_dim=64, rope_base=500000.0))
    powers = np.array([500000.0 ** (i / 64) for i in range(0, 64, 2)]).astype(np.float32)
    assert np.array_equal(np.array(config.inv_freq, np.float32), np.float32(1) / powers)


def test_factors_divide() -> None:
    plain, factors = np.array(read().inv_freq, np.float32), np.linspace(1, 8, 8, dtype=np.float32)
    assert np.array_equal(np.array(read(rope_factors=factors).inv_freq, np.float32), plain / factors)


def test_linear_scaling() -> None:
    scaled = read(shape=Shape(scaling={"type": "linear", "factor": 4.0})).inv_freq
    assert [4 * f for f in scaled] == list(read().inv_freq)


def test_llama3_scaling() -> None:
    """Short wavelengths stay, long ones are divided, and between them lies a ramp without steps back."""
    scaling = {"type": "llama3", "factor": 8.0, "low": 1.0, "high": 4.0, "original": 8192}
    plain = np.array(read(shape=Shape(head_dim=128, rope_base=5e5)).inv_freq)
    scaled = np.array(read(shape=Shape(head_dim=128, rope_base=5e5, scaling=scaling)).inv_freq)
    wavelength = 2 * np.pi / plain
    short, long = wavelength < 8192 / 4, wavelength > 8192
    assert np.array_equal(scaled[short], plain[short])
    assert np.array_equal(8 * scaled[long], plain[long])
    between = ~short & ~long
    assert short.any()
    assert long.any()
    assert between.any()
    assert ((plain[between] / 8 < scaled[between]) & (scaled[between] < plain[between])).all()
    assert (np.diff(scaled) < 0).all()


# ---- what is refused


@pytest.mark.parametrize("name", [None, "mamba", "LLAMA", 7, ""])
def test_unknown_architecture(name: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=rf"{WHERE}: architecture {name!r} is not supported; .*llama"):
        read({"general.architecture": name})


REQUIRED = ["context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count"]


@pytest.mark.parametrize("key", [*REQUIRED, "attention.layer_norm_rms_epsilon"])
@pytest.mark.parametrize("value", [None, "64", [64], float("nan"), float("inf"), 0, -8, True])
def test_keys_that_must_be_numbers(key: str, value: Any) -> None:
    with pytest.raises(ModelError, match=WHERE):
        read({f"llama.{key}": value})


@pytest.mark.parametrize("key", REQUIRED)
@pytest.mark.parametrize("value", [64.5, 1 << 24, 1 << 62])
def test_counts_that_cannot_be(key: str, value: Any) -> None:
    with pytest.raises(ModelError, match=WHERE):
        read({f"llama.{key}": value})


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"llama.attention.head_count_kv": 3}, FileFormatError, "4 heads do not divide into 3 KV heads"),
        ({"llama.attention.head_count_kv": 0}, FileFormatError, "n_kv_heads is 0"),
        ({"llama.attention.value_length": 8}, UnsupportedModelError, "keys and values of different length"),
        ({"llama.rope.dimension_count": 8}, UnsupportedModelError, "8 of 16 dimensions rotated"),
        ({"llama.expert_count": 8}, UnsupportedModelError, "mixtures of experts"),
        ({"llama.rope.freq_base": 0.0}, FileFormatError, "llama.rope.freq_base is 0.0"),
        ({"llama.rope.freq_base": float("inf")}, FileFormatError, "freq_base is inf, not a finite number"),
        ({"llama.rope.freq_base": 1e300}, FileFormatError, "freq_base is 1e.300"),
        ({"llama.embedding_length": 68}, UnsupportedModelError, "d_model 68 is not a multiple of 8"),
        ({"llama.feed_forward_length": 100}, UnsupportedModelError, "d_ff 100 is not a multiple of 8"),
        ({"llama.rope.scaling.type": "yarn"}, UnsupportedModelError, "rope scaling 'yarn' is not supported"),
    ],
)
def test_contradictions(changes: dict[str, Any], error: type[ModelError], message: str) -> None:
    with pytest.raises(error, match=f"{WHERE}: .*{message}"):
        read(changes)


@pytest.mark.parametrize("head_dim", [4, 12, 20, 264, 512, 1 << 40])
def test_sizes_of_heads(head_dim: int) -> None:
    lengths = dict.fromkeys(("llama.attention.key_length", "llama.attention.value_length"), head_dim)
    with pytest.raises(UnsupportedModelError, match=f"head size {head_dim} is not supported"):
        read(lengths | {"llama.rope.dimension_count": head_dim})


@pytest.mark.parametrize(
    "wrong",
    [
        {"factor": 0.0},
        {"factor": -1.0},
        {"factor": float("nan")},
        {"low": 4.0},
        {"low": 0.0},
        {"high": float("inf")},
        {"original": 0},
    ],
    ids=str,
)
def test_wrong_scaling(wrong: dict[str, Any]) -> None:
    scaling = {"type": "llama3", "factor": 8.0, "low": 1.0, "high": 4.0, "original": 128} | wrong
    with pytest.raises(FileFormatError, match=f"{WHERE}: .*llama.rope.scaling"):
        read(shape=Shape(scaling=scaling))


def test_missing_embedding() -> None:
    metadata = {"general.architecture": "llama", **random_llama.metadata(Shape())}
    with pytest.raises(FileFormatError, match=r"tensor token_embd.weight is missing"):
        arch.from_metadata(metadata, {}, where=WHERE)


KEYS = ["general.architecture", "llama.rope.scaling.type", *random_llama.metadata(Shape()), *SCALING_KEYS.values()]
VALUES = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.booleans(),
    st.sampled_from(["", "llama", "linear", "llama3"]),
    st.just(np.arange(2)),
    st.none(),
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1))
def test_any_metadata_gives_a_configuration_or_our_error(changes: dict[str, Any]) -> None:
    try:
        config = read(changes)
    except ModelError as error:
        assert WHERE in str(error)  # noqa: PT017 -- a configuration is as good
    else:
        assert np.isfinite(config.inv_freq).all()
        assert config.n_heads % config.n_kv_heads == 0
