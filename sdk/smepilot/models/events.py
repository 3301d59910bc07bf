# SPDX-License-Identifier: Apache-2.0
"""What a pull tells its caller while it runs: which stage, how far, how fast."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["wait", "download", "unpack", "verify", "done"]
OnEvent = Callable[["PullEvent"], None]

_WINDOW = 3.0  # seconds over which speed is averaged


@dataclass(frozen=True, slots=True)
class PullEvent:
    """One report of progress; `speed` is bytes per second, None until it can be told.

    `wait` (without numbers) is reported once, when another process is at work on the same model.
    """

    stage: Stage
    done_bytes: int
    total_bytes: int
    speed: float | None = None


class Progress:
    """Reports one stage: turns absolute counts of bytes into events with a speed over the last seconds."""

    def __init__(self, stage: Stage, total: int, on_event: OnEvent | None) -> None:
        """Reports nothing when `on_event` is None."""
        self._stage: Stage = stage
        self._total = total
        self._on_event = on_event
        self._recent: deque[tuple[float, int]] = deque()

    def __call__(self, done: int) -> None:
        """`done` bytes of the total are done."""
        if self._on_event is None:
            return
        now = time.monotonic()
        if done == 0:
            self._recent.clear()  # nothing flows yet: the time of asking is not part of the speed
        self._recent.append((now, done))
        while now - self._recent[0][0] > _WINDOW and len(self._recent) > 2:
            self._recent.popleft()
        then, before = self._recent[0]
        speed = (done - before) / (now - then) if now > then else None
        self._on_event(PullEvent(self._stage, min(done, self._total), self._total, speed))
