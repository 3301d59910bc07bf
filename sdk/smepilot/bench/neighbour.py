# SPDX-License-Identifier: Apache-2.0
"""A busy neighbour: a process that does nothing but keep one core.

An engine that waits in a spinning barrier for a thread that has lost its core collapses; one whose workers take
tiles as they can merely shares.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SPIN = "while True: pass"


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """Keeps the last core this process may use busy during the body (any core where pinning is not offered)."""
    process = subprocess.Popen([sys.executable, "-c", _SPIN])
    try:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        yield
    finally:
        process.kill()
        process.wait()
