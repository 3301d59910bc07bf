# SPDX-License-Identifier: Apache-2.0
"""Lowering: the one place where a plan's terms become the native program's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from smepilot import _native
from smepilot.plan.plan import GROUP, TOKENS, Buffer, ExecutionPlan, Step
from smepilot.plan.rowwise import linear_inputs

Linear = tuple[int, str, int, int]
"""Address of the packed panels, format, columns k, rows."""


def _activation(buffer: Buffer, tokens: int) -> tuple[int, int, int, int, int, int]:
    """k, then byte offsets of rows, int8 values, scales, negated sums and scaled sums; -1 for an absent form."""
    rows = -1 if buffer.rows_at is None else buffer.rows_at
    if buffer.panels_at is None:
        return (buffer.k, rows, -1, -1, -1, -1)
    values = buffer.panels_at
    plane = 4 * tokens * (buffer.k // GROUP)
    scales = values + tokens * buffer.k
    return (buffer.k, rows, values, scales, scales + plane, scales + 2 * plane)


class _Lowering:
    def __init__(
        self,
        plan: ExecutionPlan,
        weights: Mapping[str, Linear],
        program: _native.Program,
        peaks: Mapping[str, int],
    ) -> None:
        self.plan = plan
        self.config = plan.config
        self.weights = weights
        self.program = program
        self.peaks = peaks
        self.input_of = {readers: name for name, readers in linear_inputs(plan.config).items()}
        self.tokens = -(-plan.limits.max_batch // TOKENS) * TOKENS

    def act(self, name: str) -> tuple[int, int, int, int, int, int]:
        return _activation(self.plan.buffers[name], self.tokens)

    def rows(self, name: str) -> int:
        at = self.plan.buffers[name].rows_at
        assert at is not None, f"buffer {name} has no rows"
        return at

    def add(self, step: Step) -> None:
        linear = [self.weights[name] for name in step.weights]
        config, program = self.config, self.program
        match step.op:
            case "embed":
                program.add_embed(linear[0], self.rows("x"), self.rows("cos"), self.rows("sin"), config.inv_freq)
            case "norm":
                program.add_norm(
                    linear[0][0], config.rms_eps, self.rows("x"), self.act(step.writes[0]), step.writes[0] == "last"
                )
            case "qkv":
                # Scores come out in units of log2, so softmax is 2^x.
                scale = math.log2(math.e) / math.sqrt(config.head_dim)
                program.add_qkv(
                    linear,
                    self.act("h"),
                    self.rows("q"),
                    self.rows("cos"),
                    self.rows("sin"),
                    step.layer,
                    config.head_dim,
                    scale,
                )
            case "attention":
                heads = (config.n_heads, config.n_kv_heads, config.head_dim)
                program.add_attention(self.rows("q"), self.act("a"), step.layer, heads, self.rows("partial"))
            case "pack":
                program.add_pack(self.act("a"))
            case "project":
                program.add_project(linear[0], self.act(step.reads[0]), self.rows("x"))
            case "gate_up":
                program.add_gate_up(linear[0], linear[1], self.act("h"), self.act("f"))
            case "logits":
                program.add_logits(linear[0], self.act("last"))
            case "observe":
                program.add_observe(self.act(step.reads[0]), self.peaks[self.input_of[step.weights]])
            case _:
                raise AssertionError(f"no lowering for {step.op}")


def lower(
    plan: ExecutionPlan,
    weights: Mapping[str, Linear],
    program: _native.Program,
    peaks: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Appends the plan's steps to an empty program.

    Args:
        plan: The plan.
        weights: Packed parameters by name; norm weights are float32 vectors with their address alone in use. The
            memory behind them must outlive the program.
        program: A native program whose arena has `plan.arena_bytes`.
        peaks: For a plan that observes: by linear input (`linear_inputs`) the address of float32 [k], at least +0,
            raised by every run to the largest size of each column. The memory must outlive the program.
    """
    lowering = _Lowering(plan, weights, program, peaks)
    for step in plan.steps:
        lowering.add(step)
