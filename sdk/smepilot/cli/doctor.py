# SPDX-License-Identifier: Apache-2.0
"""`smepilot doctor`: what this machine has, what was built, and what a run would use, from the engine itself."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from typing import Any

from smepilot.cli.render import facts, print_json, table

EXAMPLES = """\
  smepilot doctor
  SMEPILOT_ISA=avx2 smepilot doctor --kernels    what a forced tier would use"""

VARIABLES = ("SMEPILOT_HOME", "SMEPILOT_ISA")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    parser.add_argument("--kernels", action="store_true", help="list every kernel that was built")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Reports; starts the default thread pool to see where its workers are put."""
    report = _report()
    if args.json:
        print_json(report)
        return 0
    machine = report["machine"]
    facts(report["versions"] | report["paths"])
    print()
    facts(_machine_facts(machine))
    print()
    tiers = [
        (t["name"], _yes(t["built"]), _yes(t["supported"]), _yes(t["name"] in report["used"])) for t in report["tiers"]
    ]
    table(("TIER", "BUILT", "SUPPORTED", "USED"), tiers)
    print()
    workers = [
        (str(w["index"]), w["kind"], "any" if w["cpu"] is None else str(w["cpu"]), w["pin"]) for w in report["workers"]
    ]
    table(("WORKER", "KIND", "CPU", "PINNED"), workers)
    print()
    kernels = [k for k in report["kernels"] if args.kernels or k["chosen"]]
    table(("KERNEL", "TIER", "USED"), [(k["name"], k["tier"], _yes(k["chosen"])) for k in kernels])
    return 0


def _report() -> dict[str, Any]:
    from smepilot import __version__, _native
    from smepilot.paths import home
    from smepilot.runtime.tiers import usable_tiers

    used = usable_tiers()
    with _native.Pool() as pool:
        workers = pool.placement()
    return {
        "versions": {
            "smepilot": __version__,
            "python": f"{platform.python_version()} ({platform.python_implementation()})",
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        },
        "paths": {"package": os.path.dirname(sys.modules["smepilot"].__file__ or ""), "home": str(home())}
        | {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "machine": _native.cpu_info(),
        "tiers": _native.tiers(),
        "used": used,
        "workers": workers,
        "kernels": _native.kernels(used),
    }


def _machine_facts(machine: dict[str, Any]) -> dict[str, str]:
    present = [name for name, there in machine["features"].items() if there]
    lines = {
        "processor": f"{machine['brand']} ({machine['arch']})",
        "features": ", ".join(present) or "none that matter here",
        "cores": f"{machine['cores']} with {machine['smt']} threads each, {machine['usable']} usable by this process",
        "quota": "none" if machine["quota"] is None else f"{machine['quota']:.2f} CPUs",
        "matrix units": str(machine["sme_units"]) + (" (one in each core)" if machine["sme_private"] else ""),
    }
    for number, cluster in enumerate(machine["clusters"]):
        clock = "" if cluster["max_mhz"] is None else f", {cluster['max_mhz']:.0f} MHz"
        caches = "".join(
            f", {level} {cluster[level]['bytes'] // 1024} KiB" for level in ("l1d", "l2", "l3") if cluster[level]
        )
        lines[f"cluster {number}"] = f"{cluster['cores']} cores{clock}{caches}"
    return lines


def _yes(value: object) -> str:
    return "yes" if value else "no"
