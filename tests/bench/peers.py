# SPDX-License-Identifier: Apache-2.0
"""`make peers`: measures every promise of table.py against llama.cpp and keeps the run.

    python -m tests.bench.peers [WORD ...] [--pairs N] [--quiet] [--runs FOLDER]

Needs an interpreter with this package (as a wheel) and llama-cpp-python. A word selects the promises whose name
contains it; --quiet leaves the busy neighbour out. Exit code 1 where a bar was not reached.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from smepilot import bench
from smepilot.bench import roofline, versus
from smepilot.bench.worker import Worker
from tests import fetch
from tests.bench.table import PROMISES, Outcome, Promise, render

RUNS = Path(__file__).parent / "runs"


def requantised(kind: str) -> Path:
    """Return SmolLM2 in another quantisation, made by llama.cpp from the embedded file, once."""
    target = fetch.cache() / f"smollm2-135m-{kind}.gguf"
    if not target.exists():
        partial = target.with_suffix(".partial")
        with Worker(Path(versus.__file__).with_name("peer_llama.py")) as peer:
            peer.quantise(source=fetch.smollm2(), target=partial, kind=kind)
        partial.replace(target)
    return target


MODELS: dict[str, Callable[[], Path]] = {
    "smollm2 q4_0": lambda: requantised("q4_0"),
    "smollm2 q8_0": lambda: requantised("q8_0"),
    "smollm2 q4_1": fetch.smollm2,
    "llama-3.2-1b q4_0": lambda: bench.synthetic("llama-3.2-1b", "q4_0"),
    "llama-3.2-3b q4_0": lambda: bench.synthetic("llama-3.2-3b", "q4_0"),
}


@dataclasses.dataclass(frozen=True)
class Limits:
    """A model's cost and the machine it is measured on."""

    work: roofline.Work
    machine: roofline.Machine


def measure(promise: Promise, engines: bench.Versus, limits: Limits, *, busy: bool) -> Outcome:
    """Measures one promise, rates also beside a busy neighbour."""
    if promise.test == versus.FIRST_TOKEN:
        return Outcome(promise, engines.startup())
    if promise.test == versus.PEAK_MEMORY:
        return Outcome(promise, engines.memory())
    case = bench.parse_case(promise.test)
    duel = engines.duel(case)
    share = roofline.fraction(case, duel.ours.summary.median, limits.work, limits.machine)
    duel = dataclasses.replace(duel, ours=dataclasses.replace(duel.ours, extra={"roofline": share}))
    return Outcome(promise, duel, engines.busy_duel(case, duel) if busy else None)


def outcomes(promises: list[Promise], args: argparse.Namespace, notes: dict[str, Any]) -> Iterator[Outcome]:
    """Measures model by model; `notes` receives llama.cpp's version and the machine's limits at that time."""
    for model, group in groupby(promises, key=lambda promise: promise.model):
        path = MODELS[model]()
        limits = Limits(roofline.work(path), roofline.measure(args.cores))
        notes.setdefault("limits", {})[model] = dataclasses.asdict(limits.machine)
        say(f"{model}: {limits.machine}")
        with bench.Versus(path, cores=args.cores, pairs=args.pairs, on_event=say) as engines:
            notes["peer"] = engines.about_peer
            for promise in group:
                outcome = measure(promise, engines, limits, busy=not args.quiet)
                say(render([outcome]))
                yield outcome


def say(text: str) -> None:
    """Print progress at once."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Measures what the command line selects and keeps the run."""
    parser = argparse.ArgumentParser(prog="make peers", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only promises whose name contains one of these")
    parser.add_argument("--pairs", type=int, default=5, help="samples of each engine (5)")
    parser.add_argument("--quiet", action="store_true", help="without the busy neighbour")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where the run is kept (tests/bench/runs)")
    parser.add_argument("--cores", type=int, default=bench.usable_cores(), help="threads (one for each physical core)")
    args = parser.parse_args()
    chosen = [p for p in PROMISES if not args.words or any(word in p.name for word in args.words)]
    if not chosen:
        parser.error(f"no promise contains {' or '.join(args.words)}")
    conditions, notes = bench.Conditions(), dict[str, Any]()
    measured = list(outcomes(chosen, args, notes))
    env = bench.environment() | {"conditions": conditions.finish()} | notes
    rows = [row for o in measured for duel in (o.duel, o.busy) if duel for row in (duel.ours, duel.theirs)]
    readme = render(measured)
    folder = bench.write_run(
        args.runs, "peers " + " ".join(args.words), rows, env=env, readme=readme, title="llama.cpp"
    )
    print(f"{readme}\nkept in {folder}")
    return 0 if all(outcome.held and outcome.steady for outcome in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
