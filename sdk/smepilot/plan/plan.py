# SPDX-License-Identifier: Apache-2.0
"""`ExecutionPlan`: the steps of one forward pass and the arena they share, as an immutable value.

A plan is made from a model's configuration, the formats of its weights, which of them have a rowwise form, and the
limits of a batch; it runs nothing. The arena's size is known before the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from smepilot.arch import ModelConfig
from smepilot.plan.buffers import ALIGN, GROUP, TOKENS, Buffer, Form, place
from smepilot.plan.rowwise import RowwiseFacts, linear_inputs

FLOAT_FORMATS = frozenset({"F32", "F16", "BF16"})
LINEAR = frozenset({"qkv", "project", "gate_up", "logits"})
"""Operators that multiply with weights."""
MATRIX_ROWS = 32
"""Rows of prompts that fill a matrix unit's tiles: two vectors of 512 bits."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """What the arena is sized for: tokens of one step, the context, and the workers that attention splits over.

    `matrix` of the workers drive matrix units that cores share.
    """

    max_batch: int
    context: int
    workers: int
    matrix: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One operator. `weights` are parameter names, `reads` and `writes` buffer names; `layer` is -1 outside layers.

    `classes` are the precision classes of a linear operator: "float", "grouped", and "rowwise" where prompts have it.
    `matrix_rows` is the number of prompt rows from which matrix units' workers take part; 0: cores alone.
    """

    op: str
    layer: int
    weights: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    matrix_rows: int = 0


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """The steps in order, the buffers, and the arena's peak."""

    config: ModelConfig
    limits: PlanLimits
    formats: Mapping[str, str]
    steps: tuple[Step, ...]
    buffers: Mapping[str, Buffer]
    arena_bytes: int

    def explain(self) -> str:
        """One line per distinct step, then the buffers."""
        lines = [f"{self.config.name}: {len(self.steps)} steps, arena {self.arena_bytes / 1e6:.1f} MB"]
        for step in self.steps:
            if step.layer > 0:
                continue
            kinds = ", ".join(sorted({self.formats[w] for w in step.weights}))
            line = f"  {step.op:<10} {' '.join(step.reads):<12} -> {' '.join(step.writes):<12} {kinds:<12}"
            workers = f"cores, matrix units from {step.matrix_rows} rows" if step.matrix_rows else ""
            lines.append(f"{line} {' '.join(step.classes):<16} {workers}".rstrip())
        lines += [f"  buffer {b.name:<8} k {b.k:<6} {b.nbytes / 1e6:8.2f} MB  {b.parts}" for b in self.buffers.values()]
        return "\n".join(lines)


def _with_observers(config: ModelConfig, steps: list[Step]) -> list[Step]:
    """Puts an `observe` step before each reader of a linear input."""
    readers = set(linear_inputs(config).values())
    observed = []
    for step in steps:
        if step.weights in readers:
            observed.append(Step("observe", step.layer, step.weights, step.reads[:1]))
        observed.append(step)
    return observed


def _steps(config: ModelConfig) -> list[Step]:
    names = config.names
    steps = [Step("embed", -1, (names.embedding,), (), ("x", "cos", "sin"))]
    for i in range(config.n_layers):

        def w(name: str, i: int = i) -> str:
            return name.format(i=i)

        steps += [
            Step("norm", i, (w(names.attn_norm),), ("x",), ("h",)),
            Step("qkv", i, (w(names.q), w(names.k), w(names.v)), ("h", "cos", "sin"), ("q",)),
            Step("attention", i, (), ("q",), ("a", "partial")),
            Step("project", i, (w(names.attn_output),), ("a",), ("x",)),
            Step("norm", i, (w(names.ffn_norm),), ("x",), ("h",)),
            Step("gate_up", i, (w(names.gate), w(names.up)), ("h",), ("f",)),
            Step("project", i, (w(names.down),), ("f",), ("x",)),
        ]
    output = names.embedding if config.tied_output else names.output
    steps += [
        Step("norm", -1, (names.output_norm,), ("x",), ("last",)),
        Step("logits", -1, (output,), ("last",), ()),
    ]
    return steps


def _classified(step: Step, formats: Mapping[str, str], rowwise: Mapping[str, RowwiseFacts]) -> Step:
    """The step with its precision classes: prompts are rowwise where all its quantised matrices have that form."""
    if step.op not in LINEAR:
        return step
    quantised = [name for name in step.weights if formats[name] not in FLOAT_FORMATS]
    classes = ["float"] if len(quantised) < len(step.weights) else []
    if quantised and step.layer >= 0 and all(name in rowwise for name in quantised):
        classes.append("rowwise")
    return replace(step, classes=tuple(classes + ["grouped"] * bool(quantised)))


def _placed(step: Step, matrix: int) -> Step:
    """The step with its workers: matrix units are worth entering for products that run on without a stop for scales."""
    pays = step.op == "attention" or (step.op in LINEAR and step.layer >= 0 and step.classes != ("grouped",))
    return replace(step, matrix_rows=MATRIX_ROWS) if matrix and pays else step


def _forms(
    config: ModelConfig, steps: list[Step], formats: Mapping[str, str], rowwise: Mapping[str, RowwiseFacts]
) -> dict[str, Form]:
    """What the readers of each buffer want, and what its writer needs for that."""
    forms = {name: Form(rows=True) for name in ("x", "cos", "sin", "q")}
    for step in steps:
        if step.op == "observe":
            wanted = Form(rows=True)
        elif step.op in LINEAR:
            outliers = max((len(rowwise[w].outliers) for w in step.weights if w in rowwise), default=0)
            by_row = "rowwise" in step.classes
            wanted = Form("float" in step.classes, "grouped" in step.classes, by_row, outliers if by_row else 0)
        else:
            continue
        forms[step.reads[0]] = forms.get(step.reads[0], Form()) | wanted
    if forms["a"].panels and (forms["a"].rowwise or config.head_dim % GROUP):
        forms["a"] |= Form(rows=True, parts=True)
    if forms["f"].rowwise:
        forms["f"] |= Form(rows=True, parts=True)
    return forms


def make_plan(
    config: ModelConfig,
    formats: Mapping[str, str],
    limits: PlanLimits,
    partial_bytes: int,
    *,
    rowwise: Mapping[str, RowwiseFacts] = MappingProxyType({}),
    observe: bool = False,
) -> ExecutionPlan:
    """Plans a forward pass.

    Args:
        config: The model.
        formats: Parameter name to the format of its packed weights ("Q4_0", "F32", ...).
        limits: What one step may hold.
        partial_bytes: Room for the partial results of split attention (`_native.attention_partial_bytes`).
        rowwise: The rowwise form of parameters that have one: prompts are computed in it.
        observe: For calibration: steps that keep the largest size of each column of every linear input.
    """
    steps = [_placed(_classified(step, formats, rowwise), limits.matrix) for step in _steps(config)]
    if observe:
        steps = _with_observers(config, steps)
    tokens = -(-limits.max_batch // TOKENS) * TOKENS
    widths = {
        "x": config.d_model,
        "cos": config.head_dim // 2,
        "sin": config.head_dim // 2,
        "h": config.d_model,
        "q": config.q_size,
        "a": config.q_size,
        "f": config.d_ff,
        "last": config.d_model,
    }
    forms = _forms(config, steps, formats, rowwise)
    parts = {name: (k, forms[name].sizes(k, tokens)) for name, k in widths.items()}
    buffers, peak = place({**parts, "partial": (0, (partial_bytes, 0, 0, 0))})
    return ExecutionPlan(config, limits, dict(formats), tuple(steps), buffers, max(peak, ALIGN))
