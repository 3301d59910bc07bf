# SPDX-License-Identifier: Apache-2.0
"""`ExecutionPlan`: the steps of one forward pass and the arena they share, as an immutable value.

A plan is made from a model's configuration, the formats of its weights and the limits of a batch; it runs nothing.
Buffers get their place in the arena by lifetime: two buffers may share bytes if no step needs both. All layers repeat
the same steps on the same buffers, so one layer decides the placement and the arena's size is known before the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smepilot.arch import ModelConfig
from smepilot.plan.rowwise import linear_inputs

TOKENS = 16
"""Tokens of an activation panel; the batch limit is rounded up to whole panels."""
GROUP = 32
"""Activations that share a scale."""
ALIGN = 128
"""Bytes: no two buffers share a cache line."""
FLOAT_FORMATS = frozenset({"F32", "F16", "BF16"})


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """What the arena is sized for: tokens of one step, the context, and the workers that attention splits over."""

    max_batch: int
    context: int
    workers: int


@dataclass(frozen=True, slots=True)
class Step:
    """One operator. `weights` are parameter names, `reads` and `writes` buffer names; `layer` is -1 outside layers."""

    op: str
    layer: int
    weights: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Buffer:
    """A matrix [max_batch][k] of activations in the arena.

    `rows_at` is the byte offset of its float32 rows, `panels_at` that of its int8 panels and their three planes;
    None where the consumer does not want that form.
    """

    name: str
    k: int
    nbytes: int
    rows_at: int | None
    panels_at: int | None


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
            lines.append(f"  {step.op:<10} {' '.join(step.reads):<12} -> {' '.join(step.writes):<12} {kinds}")
        lines += [
            f"  buffer {b.name:<8} k {b.k:<6} {b.nbytes / 1e6:8.2f} MB"
            f"{'  rows' if b.rows_at is not None else ''}{'  panels' if b.panels_at is not None else ''}"
            for b in self.buffers.values()
        ]
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
        ]
        if config.head_dim % GROUP:
            steps.append(Step("pack", i, (), ("a",), ("a",)))
        steps += [
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


_LAYER_LIFETIMES = {"h": ((0, 1), (5, 6)), "q": ((1, 2),), "partial": ((2, 2),), "a": ((2, 4),), "f": ((6, 7),)}
"""First and last step within a layer that need a buffer; the others live for the whole pass."""


def _overlap(a: tuple[tuple[int, int], ...], b: tuple[tuple[int, int], ...]) -> bool:
    return any(x[0] <= y[1] and y[0] <= x[1] for x in a for y in b)


def _place(sizes: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """First fit, largest first: offsets such that buffers alive at once do not overlap; and the peak."""
    whole = ((0, 7),)
    placed: dict[str, int] = {}
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        life = _LAYER_LIFETIMES.get(name, whole)
        at = 0
        for other in sorted(placed, key=lambda n: placed[n]):
            if not _overlap(life, _LAYER_LIFETIMES.get(other, whole)):
                continue
            if at + sizes[name] <= placed[other]:
                break
            at = max(at, placed[other] + sizes[other])
        placed[name] = at
    return placed, max(placed[n] + sizes[n] for n in sizes)


def _forms(steps: list[Step], formats: Mapping[str, str]) -> dict[str, tuple[bool, bool]]:
    """Per buffer: whether some consumer wants float32 rows, and whether some consumer wants int8 panels."""
    forms: dict[str, tuple[bool, bool]] = {}
    for step in steps:
        if step.op == "observe":
            forms[step.reads[0]] = (True, forms.get(step.reads[0], (False, False))[1])
        if step.op not in ("qkv", "project", "gate_up", "logits"):
            continue
        is_float = {formats[w] in FLOAT_FORMATS for w in step.weights}
        rows, panels = forms.get(step.reads[0], (False, False))
        forms[step.reads[0]] = (rows or True in is_float, panels or False in is_float)
    return forms


def make_plan(
    config: ModelConfig,
    formats: Mapping[str, str],
    limits: PlanLimits,
    partial_bytes: int,
    *,
    observe: bool = False,
) -> ExecutionPlan:
    """Plans a forward pass.

    Args:
        config: The model.
        formats: Parameter name to the format of its packed weights ("Q4_0", "F32", ...).
        limits: What one step may hold.
        partial_bytes: Room for the partial results of split attention (`_native.attention_partial_bytes`).
        observe: For calibration: steps that keep the largest size of each column of every linear input.
    """
    steps = _with_observers(config, _steps(config)) if observe else _steps(config)
    tokens = -(-limits.max_batch // TOKENS) * TOKENS
    forms = _forms(steps, formats)
    if config.head_dim % GROUP and forms["a"][1]:
        forms["a"] = (True, True)
    else:
        steps = [s for s in steps if s.op != "pack"]
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
    shapes: dict[str, tuple[int, int, int]] = {}  # k, bytes of rows, bytes of panels
    for name, k in widths.items():
        rows, panels = forms.get(name, (True, False))
        shapes[name] = (k, 4 * tokens * k if rows else 0, tokens * (k + 3 * 4 * (k // GROUP)) if panels else 0)
    shapes["partial"] = (0, partial_bytes, 0)
    sizes = {n: -(-(_aligned(rows) + panels) // ALIGN) * ALIGN for n, (_, rows, panels) in shapes.items()}
    offsets, peak = _place(sizes)
    buffers = {
        name: Buffer(
            name,
            k,
            sizes[name],
            offsets[name] if rows else None,
            offsets[name] + _aligned(rows) if panels else None,
        )
        for name, (k, rows, panels) in shapes.items()
    }
    return ExecutionPlan(config, limits, dict(formats), tuple(steps), buffers, max(peak, ALIGN))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGN) * ALIGN
