# SPDX-License-Identifier: Apache-2.0
"""`smepilot bench`: tokens per second, in llama-bench's terms, with the share of the machine's limits beside them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from smepilot.cli.options import add_prompt_class

if TYPE_CHECKING:
    from smepilot.bench import Case, Duel, Row

EXAMPLES = """\
  smepilot bench smollm2:135m                        pp512 and tg64 with all cores
  smepilot bench model.gguf -p 512 -n 64 -d 0,2048 -t 1,2 -r 5 -o csv
  smepilot bench model.gguf -p 0 -n 64 -b 1,8        8 sequences at once
  smepilot bench --shape llama-3.2-1b --quant q4_0   random weights at a true shape
  smepilot bench model.gguf --vs-llama-cpp --startup --memory --record runs
  smepilot bench --compare runs/2026-01-01-box-a runs/2026-01-02-box-a"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help="a catalog name or a .gguf file")
    add("--shape", metavar="NAME", help="instead of MODEL: random weights at the sizes of this model")
    add("--quant", metavar="TYPE", default="q4_0", help="their type: q4_0, q4_1, q8_0, f16 or bf16 (q4_0)")
    group = parser.add_argument_group("cases; lists as in llama-bench: 512  128,512  0-4096+1024")
    add = group.add_argument
    add("-p", dest="prompts", metavar="N", default="512", help="prompt lengths, 0 for none (512)")
    add("-n", dest="generations", metavar="N", default="64", help="tokens to generate, 0 for none (64)")
    add("-d", dest="depths", metavar="N", default="0", help="tokens already in the cache (0)")
    add("-b", dest="batch", metavar="N", default="1", help="sequences generated at once (1)")
    add("-t", dest="threads", metavar="N", help="threads (one for each physical core)")
    add_prompt_class(group)
    add("-r", dest="repeats", metavar="N", type=int, default=5, help="samples of each (5)")
    group = parser.add_argument_group("against llama.cpp, paired, each engine at its best setting")
    add = group.add_argument
    add("--vs-llama-cpp", action="store_true", help="time llama-cpp-python in turn with this engine")
    add("--peer-python", metavar="PATH", help="the Python that has llama-cpp-python (this one)")
    add("--busy", action="store_true", help="every case again beside a process that keeps one core busy")
    add("--startup", action="store_true", help="also from process start to first token")
    add("--memory", action="store_true", help="also peak memory with a full context of 2048")
    group = parser.add_argument_group("results")
    add = group.add_argument
    add("-o", dest="style", choices=("table", "json", "csv"), default="table", help="how to print them (table)")
    add("--json", dest="style", action="store_const", const="json", help="the same as -o json")
    add("--record", metavar="FOLDER", type=Path, help="keep the run below this folder: README.md, env.json, raw.csv")
    add("--topic", help="last part of the kept run's name (the model's name)")
    add("--compare", nargs=2, metavar=("BEFORE", "AFTER"), type=Path, help="two kept runs side by side; runs nothing")


def run(args: argparse.Namespace) -> int:
    """Measures and prints; progress goes to standard error."""
    from smepilot import bench
    from smepilot.errors import InvalidParameterError

    if args.compare:
        print(bench.change_table(bench.compare(*map(bench.read_run, args.compare))), end="")
        return 0
    if args.repeats < 1:
        raise InvalidParameterError(f"-r {args.repeats}: at least 1 sample is needed")
    if not args.vs_llama_cpp and (args.busy or args.startup or args.memory):
        raise InvalidParameterError("--busy, --startup and --memory compare engines; add --vs-llama-cpp")
    cases = bench.grid(*_lists(args))
    model, conditions = _model(args), bench.Conditions()
    if args.vs_llama_cpp:
        duels, peer = _versus(args, model, cases)
        rows = [row for duel in duels for row in (duel.ours, duel.theirs)]
        printed, extra = bench.duel_table(duels), {"peer": peer}
    else:
        rows = _alone(args, model, cases)
        printed, extra = bench.render(rows, "table"), {}
    print(printed if args.style == "table" else bench.render(rows, args.style), end="")
    if args.record:
        env = bench.environment() | {"conditions": conditions.finish()} | extra
        folder = bench.write_run(args.record, args.topic or model.stem, rows, env=env, readme=printed)
        _say(f"kept in {folder}")
    return 0


def _lists(args: argparse.Namespace) -> list[list[int]]:
    from smepilot.bench import parse_counts

    named = {"-p": args.prompts, "-n": args.generations, "-d": args.depths, "-b": args.batch}
    return [parse_counts(text, option) for option, text in named.items()]


def _model(args: argparse.Namespace) -> Path:
    from smepilot.bench import synthetic
    from smepilot.cli.render import Bar
    from smepilot.errors import InvalidParameterError
    from smepilot.models import Store

    if (args.model is None) == (args.shape is None):
        raise InvalidParameterError("name either a MODEL or a --shape")
    if args.model is not None:
        return Store().resolve(args.model)
    with Bar("writing random weights") as bar:
        return synthetic(args.shape, args.quant, on_progress=lambda done, total: bar.fraction(done / total))


def _threads(args: argparse.Namespace) -> list[int]:
    from smepilot import bench

    return bench.parse_counts(args.threads, "-t") if args.threads else [bench.usable_cores()]


def _alone(args: argparse.Namespace, model: Path, cases: list[Case]) -> list[Row]:
    from smepilot import bench

    def report(case: Case, threads: int) -> None:
        _say(f"{model.name} {case.name}, {threads} threads")

    return list(
        bench.run(
            model, cases, threads=_threads(args), repeats=args.repeats, prompt_class=args.prompt_class, on_case=report
        )
    )


def _versus(args: argparse.Namespace, model: Path, cases: list[Case]) -> tuple[list[Duel], dict[str, str]]:
    from smepilot import bench

    options = {"pairs": args.repeats, "peer_python": args.peer_python, "prompt_class": args.prompt_class}
    with bench.Versus(model, cores=max(_threads(args)), **options, on_event=_say) as versus:
        duels = [versus.duel(case) for case in cases]
        if args.busy:
            duels += [versus.busy_duel(case, quiet) for case, quiet in zip(cases, list(duels), strict=True)]
        wholes: list[tuple[bool, Callable[[], Duel]]] = [(args.startup, versus.startup), (args.memory, versus.memory)]
        duels += [measure() for wanted, measure in wholes if wanted]
        return duels, versus.about_peer


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
