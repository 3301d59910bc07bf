# SPDX-License-Identifier: Apache-2.0
"""Times micro-kernels beside the integer peak of their tier, on one core, and keeps the run.

    python -m tests.bench.kernels [WORD ...] [--pairs N] [--record]

A word selects the kernels whose name contains it. `kernel_rate.c` says what a sample is: the kernel and the peak's loop
one after the other, in time of the thread's own. For products the ratio of a pair is the share of the peak that they
reach; for other kernels it says nothing, and the rate is the figure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from smepilot import _native, bench
from smepilot.bench import report
from smepilot.bench.samples import Summary, pairwise
from smepilot.bench.suite import Row

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "test-plain"  # as `make native-test` configures it

# What a kernel's name begins with: its unit, and the shapes (m, n, k) to time.
FAMILIES: dict[str, tuple[str, tuple[tuple[int, int, int], ...]]] = {
    # Blocks of weights as a step has them, just expanded: they fit the second-level cache. Then whole matrices.
    "sp_gemm_f32_q8r_q8r": (
        "Gop/s",
        ((512, 64, 576), (512, 64, 2048), (512, 64, 3072), (512, 64, 8192), (512, 1536, 2048), (512, 8192, 576)),
    ),
    "sp_gemm_f32_f32_f32": ("Gop/s", ((512, 64, 1), (512, 64, 4), (512, 64, 16), (512, 64, 576))),
    "sp_expand_q8r": ("Gweight/s", ((1, 576, 576), (1, 8192, 2048))),  # from the second-level cache, from beyond it
    "sp_quant_q8r": ("Gvalue/s", ((512, 16, 576), (512, 16, 3072))),
}


@dataclass(frozen=True)
class Timing:
    """One kernel at one shape: its samples and those of the peak, pair by pair."""

    kernel: Row
    peak: Row

    @property
    def ratios(self) -> Summary:
        """Of the pairs, kernel over peak."""
        return pairwise(self.kernel.samples, self.peak.samples)


def build() -> Path:
    """Builds the program that takes the samples."""
    cmake = Path(sys.executable).with_name("cmake")
    if not (BUILD / "CMakeCache.txt").exists():
        sys.exit(f"error: {BUILD} is not configured: make native-test")
    subprocess.run([cmake, "--build", BUILD, "--target", "sp_kernel_rate", "--", "--quiet"], check=True)
    return BUILD / "sp_kernel_rate"


def time(program: Path, name: str, unit: str, shape: tuple[int, int, int], pairs: int) -> Timing:
    """Takes the samples of one kernel at one shape."""
    words = [str(program), name, *map(str, shape), str(pairs)]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    rates, peaks = zip(*([float(word) / 1e9 for word in line.split()] for line in lines), strict=True)
    test = "m{} n{} k{}".format(*shape)
    return Timing(Row("smepilot", name, test, {}, rates, unit), Row("peak", name, test, {}, peaks, "Gop/s"))


def timings(words: list[str], pairs: int) -> Iterator[Timing]:
    """Times what the words select."""
    program = build()
    usable = {tier["name"] for tier in _native.tiers() if tier["supported"] and tier["name"] != "scalar"}
    for kernel in _native.kernels():
        if kernel["tier"] not in usable or (words and not any(word in kernel["name"] for word in words)):
            continue
        for family, (unit, shapes) in FAMILIES.items():
            if kernel["name"].startswith(family):
                for shape in shapes:
                    timing = time(program, kernel["name"], unit, shape, pairs)
                    print(render([timing]).splitlines()[-1], file=sys.stderr, flush=True)
                    yield timing


def render(measured: list[Timing]) -> str:
    """The table: median rate and best, and the pairs' ratio to the peak with its range for what is a product."""
    header = ("kernel", "shape", "median", "best", "unit", "peak", "of the peak")
    body = []
    for timing in measured:
        rate, peak, ratio = timing.kernel.summary, timing.peak.summary, timing.ratios
        share = f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
        body.append(
            [
                timing.kernel.model,
                timing.kernel.test,
                f"{rate.median:.1f}",
                f"{rate.high:.1f}",
                timing.kernel.unit,
                f"{peak.median:.0f}",
                share if "gemm" in timing.kernel.model else "-",
            ]
        )
    return report.markdown(header, body, left=2)


def main() -> int:
    """Times what the command line selects; keeps the run if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kernels", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="*", metavar="WORD", help="only kernels whose name contains one of these")
    parser.add_argument("--pairs", type=int, default=21, help="samples of each kernel and shape (21)")
    parser.add_argument("--record", action="store_true", help="keep the run in tests/bench/runs")
    args = parser.parse_args()
    conditions = bench.Conditions()
    measured = list(timings(args.words, args.pairs))
    if not measured:
        parser.error("no kernel of this machine that can be timed has such a name")
    env = bench.environment() | {"conditions": conditions.finish()}
    text = render(measured)
    print(text)
    if args.record:
        rows = [row for timing in measured for row in (timing.kernel, timing.peak)]
        runs = Path(__file__).parent / "runs"
        folder = bench.write_run(runs, "kernels " + " ".join(args.words), rows, env=env, readme=text, title="kernels")
        print(f"kept in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
