# SPDX-License-Identifier: Apache-2.0
"""Keeps a run: what was measured, on what, under which conditions.

A run is a folder `YYYY-MM-DD-device-topic` with `README.md` (the tables), `env.json` (machine, versions, conditions)
and `raw.csv` (every sample). A claim of speed should name such a folder. What could not be found out is null.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from smepilot import _native, paths
from smepilot.bench import report
from smepilot.bench.suite import Row

_BUSY = (0, 1, 2, 5, 6, 7)  # columns of /proc/stat: user, nice, system, irq, softirq, steal
_STEAL = 7


class Conditions:
    """What else happened on the machine between construction and `finish`."""

    def __init__(self) -> None:
        """Starts watching."""
        self._clock, self._ticks, self._own = time.monotonic(), _stat(), _own_seconds()
        self._load = os.getloadavg()

    def finish(self) -> dict[str, Any]:
        """The run's conditions; call it once the processes that were measured have ended.

        `other_load` is the share of all cores that was used by processes other than this one and its children,
        `steal` the share that a hypervisor gave to other machines; None where the system does not say.
        """
        seconds = time.monotonic() - self._clock
        cores = os.cpu_count() or 1
        other = steal = None
        after = _stat()
        if self._ticks is not None and after is not None and seconds > 0:
            spent = [(b - a) / os.sysconf("SC_CLK_TCK") for a, b in zip(self._ticks, after, strict=True)]
            steal = spent[_STEAL] / (seconds * cores)
            used = sum(spent[i] for i in _BUSY) - (_own_seconds() - self._own)
            other = max(0.0, used / (seconds * cores) - steal)
        return {
            "seconds": round(seconds, 1),
            "load_before": list(self._load),
            "load_after": list(os.getloadavg()),
            "other_load": None if other is None else round(other, 4),
            "steal": None if steal is None else round(steal, 4),
        }


def _stat(path: Path = Path("/proc/stat")) -> list[int] | None:
    if not path.exists():
        return None
    return [int(field) for field in path.read_text().splitlines()[0].split()[1:9]]


def _own_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def environment() -> dict[str, Any]:
    """The machine and the versions, now."""
    cpu = _native.cpu_info()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": cpu["brand"],
        "arch": cpu["arch"],
        "cores": cpu["cores"],
        "usable_cores": cpu["usable"],
        "quota": cpu["quota"],
        "features": sorted(name for name, present in cpu["features"].items() if present),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_mib": (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) >> 20,
        "system": platform.platform(),
        "python": platform.python_version(),
        "smepilot": version("smepilot"),
        "numpy": version("numpy"),
        "commit": _commit(),
        "command": [Path(word).name if os.path.isabs(word) else word for word in sys.argv],  # folders are private
    }


def usable_cores() -> int:
    """Physical cores that this process may use."""
    return _native.cpu_info()["usable"]


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _commit() -> str | None:
    """The commit of the checkout that this package belongs to, with "+" when files have changed; None without one."""
    here = Path(__file__).parent
    top = _git(here, "rev-parse", "--show-toplevel")
    if top is None or not (Path(top) / "sdk" / "smepilot").is_dir():  # somebody else's repository
        return None
    return _git(here, "describe", "--always", "--abbrev=12", "--match=", "--dirty=+")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        run = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return run.stdout.strip()


def device() -> str:
    """This machine in a folder's name: `amd-epyc-2c`."""
    cpu = _native.cpu_info()
    words = re.sub(r"[^a-z0-9]+", "-", (cpu["brand"] or cpu["arch"]).lower()).strip("-")
    return f"{words}-{cpu['cores']}c"


def write_run(
    runs: Path, topic: str, rows: Sequence[Row], *, env: Mapping[str, Any], readme: str, title: str | None = None
) -> Path:
    """Writes a run and returns its folder.

    A run of the same day, device and topic gets a number; nothing is overwritten.

    Args:
        runs: Folder of all runs.
        topic: Last part of the name; becomes lower-case words joined by dashes.
        rows: All samples.
        env: `environment()` with conditions and whatever else explains the figures.
        readme: Markdown under the title: tables and remarks.
        title: First line of README.md; None for the topic.
    """
    words = re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-") or "run"
    name = f"{env['date'][:10]}-{device()}-{words}"
    with paths.disk_errors(runs / name):
        folder = _fresh(runs, name)
        (folder / "env.json").write_text(json.dumps(env, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        (folder / "raw.csv").write_text(report.as_csv(rows), encoding="utf-8")
        (folder / "README.md").write_text(f"# {title or topic}\n\n{_headline(env)}\n\n{readme}", encoding="utf-8")
    return folder


def _fresh(runs: Path, name: str) -> Path:
    runs.mkdir(parents=True, exist_ok=True)
    for suffix in ("", *(f"-{n}" for n in range(2, 1000))):
        folder = runs / (name + suffix)
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(17, "a thousand runs of that name", str(runs / name))


def _headline(env: Mapping[str, Any]) -> str:
    seen = env.get("conditions", {})
    return (
        f"{env['cpu']}, {env['usable_cores']} cores, smepilot {env['smepilot']} ({env['commit'] or 'no checkout'}), "
        f"other load {report.percent(seen.get('other_load'))}, steal {report.percent(seen.get('steal'))}."
    )
