# SPDX-License-Identifier: Apache-2.0
"""Lowering: the one place where a plan's terms become the native program's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from smepilot import _native
from smepilot.plan.buffers import GROUP, TOKENS, Buffer
from smepilot.plan.plan import LINEAR, ExecutionPlan, Step
from smepilot.plan.rowwise import RowwiseFacts, linear_inputs

Linear = tuple[int, str, int, int]
"""Address of the packed panels, format, columns k, rows."""
Activation = tuple[int, int, int, int, int, int, int, int, int, int, int, int, tuple[int, ...]]
"""k; offsets of rows, int8 values, grouped and rowwise planes, counters (-1: absent); s, u, outliers (`Program`)."""


def _activation(buffer: Buffer, tokens: int, facts: RowwiseFacts | None) -> Activation:
    rows, values, by_row, counters = (
        -1 if at is None else at for at in (buffer.rows_at, buffer.panels_at, buffer.rowwise_at, buffer.counters_at)
    )
    if values < 0:
        return (buffer.k, rows, *(-1,) * 8, 0, 0, ())
    plane = 4 * tokens * (buffer.k // GROUP)
    scales = values + (tokens if by_row < 0 else tokens + TOKENS) * buffer.k
    grouped = (scales, scales + plane, scales + 2 * plane)
    if facts is None:
        return (buffer.k, rows, values, *grouped, -1, -1, -1, counters, 0, 0, ())
    planes = (by_row, by_row + 4 * tokens, by_row + 8 * tokens)
    return (buffer.k, rows, values, *grouped, *planes, counters, facts.s, facts.u, facts.outliers)


class _Lowering:
    def __init__(
        self,
        plan: ExecutionPlan,
        weights: Mapping[str, Linear],
        program: _native.Program,
        rowwise: Mapping[str, RowwiseFacts],
        peaks: Mapping[str, int],
    ) -> None:
        self.plan = plan
        self.config = plan.config
        self.weights = weights
        self.program = program
        self.rowwise = rowwise
        self.peaks = peaks
        self.input_of = {readers: name for name, readers in linear_inputs(plan.config).items()}
        self.tokens = -(-plan.limits.max_batch // TOKENS) * TOKENS

    def facts(self, step: Step) -> RowwiseFacts | None:
        """How the step's input is smoothed: all its quantised matrices say the same."""
        if "rowwise" not in step.classes:
            return None
        return next(self.rowwise[name] for name in step.weights if name in self.rowwise)

    def act(self, name: str, at: int) -> Activation:
        """A buffer as the first linear step from step `at` on wants it that reads it."""
        reader = next(s for s in self.plan.steps[at:] if s.op in LINEAR and s.reads[0] == name)
        return _activation(self.plan.buffers[name], self.tokens, self.facts(reader))

    def linear(self, step: Step) -> list[tuple[int, str, int, int, int, int]]:
        """The step's matrices, with the scales of their rowwise form where it is used."""
        facts = self.rowwise if "rowwise" in step.classes else {}
        scales = [(facts[name].inv, facts[name].scale) if name in facts else (0, 0) for name in step.weights]
        return [(*self.weights[name], *pair) for name, pair in zip(step.weights, scales, strict=True)]

    def rows(self, name: str) -> int:
        at = self.plan.buffers[name].rows_at
        assert at is not None, f"buffer {name} has no rows"
        return at

    def add(self, i: int) -> None:
        step = self.plan.steps[i]
        linear = self.linear(step)
        config, program = self.config, self.program
        match step.op:
            case "embed":
                program.add_embed(linear[0], self.rows("x"), self.rows("cos"), self.rows("sin"), config.inv_freq)
            case "norm":
                out = step.writes[0]
                program.add_norm(linear[0][0], config.rms_eps, self.rows("x"), self.act(out, i), out == "last")
            case "qkv":
                # Scores come out in units of log2, so softmax is 2^x.
                scale = math.log2(math.e) / math.sqrt(config.head_dim)
                program.add_qkv(
                    linear,
                    self.act("h", i),
                    self.rows("q"),
                    self.rows("cos"),
                    self.rows("sin"),
                    step.layer,
                    config.head_dim,
                    scale,
                )
            case "attention":
                heads = (config.n_heads, config.n_kv_heads, config.head_dim)
                program.add_attention(self.rows("q"), self.act("a", i), step.layer, heads, self.rows("partial"))
            case "project":
                program.add_project(linear[0], self.act(step.reads[0], i), self.rows("x"))
            case "gate_up":
                program.add_gate_up(linear[0], linear[1], self.act("h", i), self.act("f", i))
            case "logits":
                program.add_logits(linear[0], self.act("last", i))
            case "observe":
                program.add_observe(self.act(step.reads[0], i), self.peaks[self.input_of[step.weights]])
            case _:
                raise AssertionError(f"no lowering for {step.op}")


def lower(
    plan: ExecutionPlan,
    weights: Mapping[str, Linear],
    program: _native.Program,
    *,
    rowwise: Mapping[str, RowwiseFacts] = MappingProxyType({}),
    peaks: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Appends the plan's steps to an empty program.

    Args:
        plan: The plan.
        weights: Packed parameters by name; norm weights are float32 vectors with their address alone in use. The
            memory behind them must outlive the program.
        program: A native program whose arena has `plan.arena_bytes`.
        rowwise: What the plan was made with; the memory that the facts name must outlive the program.
        peaks: For a plan that observes: by linear input (`linear_inputs`) the address of float32 [k], at least +0,
            raised by every run to the largest size of each column. The memory must outlive the program.
    """
    lowering = _Lowering(plan, weights, program, rowwise, peaks)
    for i, step in enumerate(plan.steps):
        program.matrix_rows = step.matrix_rows
        lowering.add(i)
