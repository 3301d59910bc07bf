# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a process.

Linux carries `ru_maxrss` over from the parent that forked a process, so a small worker of a large driver would be
charged with the driver; VmHWM starts anew with the program. Elsewhere `ru_maxrss` is what there is.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory(status: Path = Path("/proc/self/status")) -> int:
    """Largest resident set of this process so far, bytes; file pages that are mapped and touched count."""
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
