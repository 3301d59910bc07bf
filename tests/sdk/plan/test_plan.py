# SPDX-License-Identifier: Apache-2.0
"""Plans: buffers that are alive never overlap, whatever the model; and plans are values that print themselves.

The placement is judged by running a plan on paper: a step that writes a buffer destroys what else lies on those
bytes, and a step that reads a buffer must find it whole. That knows nothing of how lifetimes were computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smepilot import _native
from smepilot.arch import ModelConfig
from smepilot.plan import Buffer, ExecutionPlan, PlanLimits, RowwiseFacts, linear_inputs, make_plan
from smepilot.runtime.loader import parameters

FLOAT, QUANTISED = ("F32", "F16", "BF16"), ("Q4_0", "Q4_1", "Q8_0")
LINE = 64
OUTLIERS = {"qkv": 0, "o": 1, "gate_up": 2, "down": 3}
"""Outlier columns that the plans here have, where they are rowwise."""


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
    config: ModelConfig,
    formats: dict[str, str],
    limits: PlanLimits,
    *,
    rowwise: Mapping[str, RowwiseFacts] = MappingProxyType({}),
    observe: bool = False,
) -> ExecutionPlan:
    partial = _native.attention_partial_bytes(
        heads=config.n_heads,
        kv_heads=config.n_kv_heads,
        head_dim=config.head_dim,
        workers=limits.workers,
        max_spans=limits.max_batch,
        max_blocks=-(-limits.context // 64),
    )
    return make_plan(config, formats, limits, partial, rowwise=rowwise, observe=observe)


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
    rowwise = {
        parameter: RowwiseFacts(0, 0, 0, 0, tuple(range(OUTLIERS[name.rpartition(".")[2]])))
        for name, readers in linear_inputs(config).items()
        for parameter in readers
        if draw(st.integers(0, 3))
    }
    return plan_of(config, formats, limits, rowwise=rowwise, observe=draw(st.booleans()))


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
    """Rows, panels with their planes, rowwise planes, counters: one after the other, inside the buffer and the arena.

    Both classes may stand in one batch: then a panel of each may be only partly used.
    """
    tokens = -(-plan.limits.max_batch // 16) * 16
    for buffer in plan.buffers.values():
        begin, end = span(buffer)
        assert 0 <= begin <= end <= plan.arena_bytes
        assert begin % LINE == 0
        k = buffer.k
        q_tokens = tokens if buffer.rowwise_at is None else tokens + 16
        needs = [
            (buffer.rows_at, 4 * tokens * k),
            (buffer.panels_at, q_tokens * k + 12 * tokens * k // 32),
            (buffer.rowwise_at, 4 * tokens * (2 + outliers(plan, buffer.name))),
            (buffer.counters_at, 4 * (tokens // 16 + 1)),
        ]
        for at, need in needs:
            if at is not None:
                assert begin <= at
                assert at % LINE == 0
                begin = at + need
        assert begin <= end
        assert buffer.panels_at is None or k % 32 == 0


def outliers(plan: ExecutionPlan, name: str) -> int:
    """The most outlier columns that a rowwise reader of the buffer adds."""
    inputs = {readers: name.rpartition(".")[2] for name, readers in linear_inputs(plan.config).items()}
    steps = [step for step in plan.steps if "rowwise" in step.classes and step.reads[0] == name]
    return max((OUTLIERS[inputs[step.weights]] for step in steps), default=0)


@given(plans())
def test_consumers_find_the_form_they_want(plan: ExecutionPlan) -> None:
    """Float matrices read rows, quantised ones panels, rowwise ones panels of both classes.

    What is quantised when a row is complete, by tiles that make parts of rows, has rows and counters.
    """
    for step in plan.steps:
        if step.op == "observe":
            assert plan.buffers[step.reads[0]].rows_at is not None
        if step.op not in ("qkv", "project", "gate_up", "logits"):
            assert step.classes == ()
            continue
        source = plan.buffers[step.reads[0]]
        panels = {plan.formats[weight] in QUANTISED for weight in step.weights}
        assert source.rows_at is not None or False not in panels
        assert source.panels_at is not None or True not in panels
        assert ("float" in step.classes, "grouped" in step.classes) == (False in panels, True in panels)
        by_row = "rowwise" in step.classes
        assert not by_row or (True in panels and step.op != "logits" and source.rowwise_at is not None)
        cut = source.name == "a" and True in panels and plan.config.head_dim % 32 != 0
        if cut or (by_row and source.name in ("a", "f")):
            assert None not in (source.rows_at, source.counters_at)


def test_a_step_is_rowwise_if_all_its_quantised_matrices_can_be() -> None:
    """The output head never is; without facts a plan has nothing of the class."""
    config = config_of(1, heads=4, kv_heads=2, head_dim=16, d_model=64, d_ff=96)
    formats = {p.name: "Q8_0" if p.rows else "F32" for p in parameters(config)} | {config.names.v.format(i=0): "F16"}
    facts = RowwiseFacts(0, 0, 0, 0)
    rowwise = {p.name: facts for p in parameters(config) if p.rows and p.name != config.names.up.format(i=0)}
    limits = PlanLimits(64, 128, 2)
    classes = {step.op: step.classes for step in plan_of(config, formats, limits, rowwise=rowwise).steps}
    assert classes["qkv"] == ("float", "rowwise", "grouped")
    assert classes["gate_up"] == ("grouped",)
    assert classes["project"] == ("rowwise", "grouped")
    assert classes["logits"] == ("grouped",)
    plain = plan_of(config, formats, limits)
    assert all("rowwise" not in step.classes for step in plain.steps)
    assert all(buffer.rowwise_at is None for buffer in plain.buffers.values())
    assert "rowwise" not in plain.explain()
    assert "rowwise grouped" in plan_of(config, formats, limits, rowwise=rowwise).explain()


def test_matrix_units_take_what_runs_on_without_a_stop() -> None:
    """Rowwise and float products and attention, from two full tiles on; the rest is the cores'."""
    config = config_of(1, heads=4, kv_heads=2, head_dim=16, d_model=64, d_ff=96)
    formats = {p.name: "Q8_0" if p.rows else "F32" for p in parameters(config)} | {config.names.down.format(i=0): "F16"}
    attention = (config.names.q.format(i=0), config.names.k.format(i=0), config.names.v.format(i=0))
    rowwise = dict.fromkeys(attention, RowwiseFacts(0, 0, 0, 0))
    limits = PlanLimits(64, 128, 3, matrix=1)
    plan = plan_of(config, formats, limits, rowwise=rowwise)
    assert [(s.op, s.matrix_rows) for s in plan.steps] == [
        ("embed", 0),
        ("norm", 0),
        ("qkv", 32),
        ("attention", 32),
        ("project", 0),
        ("norm", 0),
        ("gate_up", 0),
        ("project", 32),
        ("norm", 0),
        ("logits", 0),
    ]
    assert "matrix units from 32 rows" in plan.explain()
    plain = plan_of(config, formats, dataclasses.replace(limits, matrix=0), rowwise=rowwise)
    assert all(step.matrix_rows == 0 for step in plain.steps)


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
