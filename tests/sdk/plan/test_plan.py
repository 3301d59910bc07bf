# SPDX-License-Identifier: Apache-2.0
"""Plans: buffers that are alive never overlap, whatever the model; and plans are values that print themselves.

The placement is judged by running a plan on paper: a step that writes a buffer destroys what else lies on those
bytes, and a step that reads a buffer must find it whole. That knows nothing of how lifetimes were computed.
"""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smepilot import _native
from smepilot.arch import ModelConfig
from smepilot.plan import Buffer, ExecutionPlan, PlanLimits, linear_inputs, make_plan
from smepilot.runtime.loader import parameters

FLOAT, QUANTISED = ("F32", "F16", "BF16"), ("Q4_0", "Q4_1", "Q8_0")
LINE = 64


def config_of(layers: int, heads: int, kv_heads: int, head_dim: int, d_model: int, d_ff: int) -> ModelConfig:
    return ModelConfig(
        architecture="llama",
        name="paper",
        vocab_size=279,
        context_length=4096,
        n_layers=layers,
        d_model=d_model,
        d_ff=d_ff,
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        rms_eps=1e-5,
        inv_freq=(1.0,) * (head_dim // 2),
        interleaved_rope=True,
        tied_output=True,
    )


def plan_of(
    config: ModelConfig, formats: dict[str, str], limits: PlanLimits, *, observe: bool = False
) -> ExecutionPlan:
    partial = _native.attention_partial_bytes(
        heads=config.n_heads,
        kv_heads=config.n_kv_heads,
        head_dim=config.head_dim,
        workers=limits.workers,
        max_spans=limits.max_batch,
        max_blocks=-(-limits.context // 64),
    )
    return make_plan(config, formats, limits, partial, observe=observe)


@st.composite
def plans(draw: st.DrawFn) -> ExecutionPlan:
    """Plans of random models: each matrix of a format that its columns allow."""
    kv_heads = draw(st.integers(1, 4))
    config = config_of(
        layers=draw(st.integers(1, 3)),
        heads=kv_heads * draw(st.integers(1, 4)),
        kv_heads=kv_heads,
        head_dim=8 * draw(st.integers(1, 32)),
        d_model=8 * draw(st.integers(1, 100)),
        d_ff=8 * draw(st.integers(1, 300)),
    )
    formats = {
        p.name: draw(st.sampled_from(FLOAT if p.k % 32 else FLOAT + QUANTISED)) if p.rows else "F32"
        for p in parameters(config)
    }
    limits = PlanLimits(draw(st.integers(1, 600)), draw(st.integers(1, 4096)), draw(st.integers(1, 8)))
    return plan_of(config, formats, limits, observe=draw(st.booleans()))


def span(buffer: Buffer) -> tuple[int, int]:
    """First byte, and the byte after the last."""
    at = min(place for place in (buffer.rows_at, buffer.panels_at) if place is not None)
    return at, at + buffer.nbytes


def touching(plan: ExecutionPlan, name: str) -> set[str]:
    """Other buffers that share a byte with this one."""
    begin, end = span(plan.buffers[name])
    others = {other: span(buffer) for other, buffer in plan.buffers.items() if other != name and buffer.nbytes}
    return {other for other, (first, last) in others.items() if first < end and begin < last}


@given(plans())
def test_what_a_step_reads_is_whole(plan: ExecutionPlan) -> None:
    whole: set[str] = set()
    for step in plan.steps:
        used = {name for name in (*step.reads, *step.writes) if plan.buffers[name].nbytes}
        assert whole >= set(step.reads), step
        for name in used:
            assert not touching(plan, name) & used, step
        for name in step.writes:
            whole = whole - touching(plan, name) | {name}
        if step.op == "project":  # adds to what is there
            assert "x" in whole


@given(plans())
def test_buffers_hold_what_is_written(plan: ExecutionPlan) -> None:
    """Rows, then panels with their three planes, for whole panels of 16 tokens, inside the buffer and the arena."""
    tokens = -(-plan.limits.max_batch // 16) * 16
    for buffer in plan.buffers.values():
        begin, end = span(buffer)
        assert 0 <= begin <= end <= plan.arena_bytes
        assert begin % LINE == 0
        if buffer.rows_at is not None:
            assert buffer.rows_at + 4 * tokens * buffer.k <= (end if buffer.panels_at is None else buffer.panels_at)
        if buffer.panels_at is not None:
            assert buffer.k % 32 == 0
            assert buffer.panels_at % LINE == 0
            assert buffer.panels_at + tokens * (buffer.k + 3 * 4 * buffer.k // 32) <= end


@given(plans())
def test_consumers_find_the_form_they_want(plan: ExecutionPlan) -> None:
    """Float matrices read rows, quantised ones panels; heads that cut quantisation groups are packed by a step."""
    packs = [step for step in plan.steps if step.op == "pack"]
    wants_panels = False
    for step in plan.steps:
        if step.op == "observe":
            assert plan.buffers[step.reads[0]].rows_at is not None
        if step.op not in ("qkv", "project", "gate_up", "logits"):
            continue
        source = plan.buffers[step.reads[0]]
        for weight in step.weights:
            panels = plan.formats[weight] in QUANTISED
            assert (source.panels_at if panels else source.rows_at) is not None
            wants_panels |= panels and step.reads[0] == "a"
    assert len(packs) == (plan.config.n_layers if wants_panels and plan.config.head_dim % 32 else 0)


def smollm2(layers: int = 30) -> ExecutionPlan:
    config = config_of(layers, heads=9, kv_heads=3, head_dim=64, d_model=576, d_ff=1536)
    formats = {p.name: "Q4_1" if p.rows else "F32" for p in parameters(config)}
    return plan_of(config, formats, PlanLimits(512, 2048, 2))


def test_calibration_observes_what_each_linear_layer_reads() -> None:
    config = config_of(2, heads=4, kv_heads=2, head_dim=16, d_model=64, d_ff=96)
    formats = {p.name: "Q8_0" if p.rows else "F32" for p in parameters(config)}
    plan = plan_of(config, formats, PlanLimits(64, 128, 2), observe=True)
    plain = plan_of(config, formats, PlanLimits(64, 128, 2))
    assert [step for step in plan.steps if step.op != "observe"] == list(plain.steps)
    observed = [step for step in plan.steps if step.op == "observe"]
    assert [step.weights for step in observed] == list(linear_inputs(config).values())
    for step in observed:
        reader = plan.steps[plan.steps.index(step) + 1]
        assert (reader.weights, reader.reads[0]) == (step.weights, step.reads[0])


def test_plans_are_values() -> None:
    assert smollm2() == smollm2()
    assert smollm2() != smollm2(29)
    with pytest.raises(dataclasses.FrozenInstanceError):
        smollm2().arena_bytes = 1  # type: ignore[misc]


def test_the_arena_does_not_grow_with_layers() -> None:
    assert smollm2(1).arena_bytes == smollm2(30).arena_bytes
    assert len(smollm2(2).steps) - len(smollm2(1).steps) == 7


def test_sharing_saves_memory() -> None:
    """The arena is smaller than its buffers together, since not all live at once."""
    plan = smollm2()
    assert plan.arena_bytes < sum(buffer.nbytes for buffer in plan.buffers.values())


def test_explain() -> None:
    """One line per step of a layer and per buffer; sizes and formats are those of the plan."""
    plan = smollm2()
    first, *lines = plan.explain().splitlines()
    assert first == f"paper: {len(plan.steps)} steps, arena {plan.arena_bytes / 1e6:.1f} MB"
    steps = [step for step in plan.steps if step.layer <= 0]
    assert [line.split()[0] for line in lines[: len(steps)]] == [step.op for step in steps]
    assert [line.split()[1] for line in lines[len(steps) :]] == list(plan.buffers)
    assert all("Q4_1" in line for line in lines if line.split()[0] in ("qkv", "gate_up", "project", "logits"))
