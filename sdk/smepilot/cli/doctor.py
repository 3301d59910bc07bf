# SPDX-License-Identifier: Apache-2.0
"""`smepilot doctor`: what this machine has, what was built, and what a run would use, from the engine itself."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from dataclasses import asdict
from typing import Any

from smepilot.cli.render import facts, print_json, table

EXAMPLES = """\
  smepilot doctor
  SMEPILOT_ISA=avx2 smepilot doctor --kernels    what a forced tier would use
  SMEPILOT_ISA=-sme smepilot doctor              what is used without the matrix unit
  smepilot doctor --retest                       put the matrix unit to the test again"""

VARIABLES = ("SMEPILOT_HOME", "SMEPILOT_ISA")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    parser.add_argument("--kernels", action="store_true", help="list every kernel that was built")
    parser.add_argument("--retest", action="store_true", help="run the matrix unit's self-test, kept answer or not")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Reports; starts the default thread pool to see where its workers are put."""
    report = _report(args.retest)
    if args.json:
        print_json(report)
        return 0
    facts(report["versions"] | report["paths"])
    print()
    facts(_machine_facts(report["machine"]) | _selftest_facts(report["selftest"]))
    print()
    table(("TIER", "USED", "WHY NOT"), [(t["name"], _yes(t["used"]), t["reason"] or "") for t in report["tiers"]])
    print()
    workers = [
        (
            str(w["index"]),
            w["kind"],
            "any" if w["cpu"] is None else str(w["cpu"]),
            w["pin"],
            "" if w["svl"] is None else f"{w['svl']} bytes",
        )
        for w in report["workers"]
    ]
    table(("WORKER", "KIND", "CPU", "PINNED", "VECTOR"), workers)
    print()
    kernels = [k for k in report["kernels"] if args.kernels or k["chosen"]]
    table(("KERNEL", "TIER", "USED BY"), [(k["name"], k["tier"], ", ".join(k["workers"]) or "none") for k in kernels])
    return 0


def _report(retest: bool) -> dict[str, Any]:
    from smepilot import __version__, _native
    from smepilot.paths import home
    from smepilot.runtime.tiers import tiers

    found = tiers(retest=retest)
    machine = _native.cpu_info()
    matrix = machine["sme_workers"] if any(name.startswith("sme") for name in found.used) else 0
    with _native.Pool(matrix=matrix) as pool:
        workers = pool.placement()
    return {
        "versions": {
            "smepilot": __version__,
            "python": f"{platform.python_version()} ({platform.python_implementation()})",
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        },
        "paths": {"package": os.path.dirname(sys.modules["smepilot"].__file__ or ""), "home": str(home())}
        | {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "machine": machine,
        "tiers": [
            {**there, "used": tier.reason is None, "reason": tier.reason}
            for there, tier in zip(_native.tiers(), found.every, strict=True)
        ],
        "used": list(found.used),
        "selftest": [asdict(verdict) | {"reason": verdict.reason} for verdict in found.verdicts],
        "workers": workers,
        "kernels": _native.kernels(found.used),
    }


def _machine_facts(machine: dict[str, Any]) -> dict[str, str]:
    present = [name for name, there in machine["features"].items() if there]
    lines = {
        "processor": f"{machine['brand'] or 'unnamed'} ({machine['arch']})",
        "features": ", ".join(present) or "none that matter here",
        "cores": f"{machine['cores']} with {machine['smt']} threads each, {machine['usable']} usable by this process",
        "quota": "none" if machine["quota"] is None else f"{machine['quota']:.2f} CPUs",
        "matrix units": _units(machine),
    }
    for number, cluster in enumerate(machine["clusters"]):
        clock = "" if cluster["max_mhz"] is None else f", {cluster['max_mhz']:.0f} MHz"
        caches = "".join(
            f", {level} {cluster[level]['bytes'] // 1024} KiB" for level in ("l1d", "l2", "l3") if cluster[level]
        )
        lines[f"cluster {number}"] = f"{cluster['cores']} cores{clock}{caches}"
    return lines


def _units(machine: dict[str, Any]) -> str:
    if not machine["features"]["sme"]:
        return "none that user code may use"
    vector = f", vectors of {machine['svl']} bytes before workers raise them" if machine["svl"] else ""
    if machine["sme_private"]:
        return f"one in each core{vector}"
    if not machine["sme_units"]:
        return f"shared by cores, number unknown: taken as one{vector}"
    return f"{machine['sme_units']} shared by cores, {machine['sme_workers']} of them by the strongest{vector}"


def _selftest_facts(verdicts: list[dict[str, Any]]) -> dict[str, str]:
    lines = {}
    for verdict in verdicts:
        result = verdict["reason"] or (
            f"right: {verdict['calls']} products through {verdict['interruptions']} interruptions"
        )
        lines[f"self-test {verdict['tier']}"] = (
            f"{result} ({verdict['seconds'] * 1000:.0f} ms, {_ago(verdict['when'])})"
        )
    return lines


def _ago(when: float) -> str:
    """How long ago, in the largest unit that gives more than one."""
    seconds = max(0.0, time.time() - when)
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return "just now"


def _yes(value: object) -> str:
    return "yes" if value else "no"
