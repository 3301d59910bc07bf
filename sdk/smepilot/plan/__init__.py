# SPDX-License-Identifier: Apache-2.0
"""Floor 4: what a forward pass consists of, where its buffers lie, and its lowering to a native program."""

from __future__ import annotations

from smepilot.plan.buffers import Buffer
from smepilot.plan.lower import lower
from smepilot.plan.plan import ExecutionPlan, PlanLimits, Step, make_plan
from smepilot.plan.rowwise import RowwiseFacts, linear_inputs

__all__ = ["Buffer", "ExecutionPlan", "PlanLimits", "RowwiseFacts", "Step", "linear_inputs", "lower", "make_plan"]
