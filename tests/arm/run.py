# SPDX-License-Identifier: Apache-2.0
"""Judges the builds for Arm: what they are made of, then what they do on emulated processors.

    python -m tests.arm.run            # what `make test-arm` does once everything is built and fetched
    python -m tests.arm.run m4 a53     # on these processors alone

On each processor two programs run: the C tests, which are all but the engine's surface, and an arm64 Python that has
the aarch64 wheel installed, with tests of that surface and of whole models' bits. Where the emulated vectors are longer
or shorter than any machine's, the C tests of kernels have to do. As many processors are emulated at once as there are
cores; each ends in one line, with the sum of its tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests import fetch
from tests.arm import smollm2
from tests.arm.binary import wheel
from tests.arm.processors import CROSS, DEBIAN, PROCESSORS, PYTHON, Processor
from tests.conftest import ROOT
from tests.sdk.runtime import golden

SP_TEST = CROSS / "test-arm64" / "sp_test"
GUEST = CROSS / "guest"
GUEST_TESTS = (
    "tests/arm/guest",
    "tests/sdk/runtime/test_bits.py::test_golden_hashes",
    "tests/sdk/runtime/test_calibrate.py::test_golden",
)
KERNELS = ("kernel_", "gemm_", "sme_")
LIMIT = 900  # seconds for one program; a hang is a failure

Outcome = Counter[str]


def install() -> None:
    """Lay out the aarch64 wheel for the emulated Python, and fetch the models that its tests read."""
    shutil.rmtree(GUEST, ignore_errors=True)
    with zipfile.ZipFile(wheel("manylinux")) as archive:
        archive.extractall(GUEST)
    shutil.rmtree(smollm2.PACKED, ignore_errors=True)
    for prompt_class in smollm2.CLASSES:
        smollm2.opened(prompt_class, threads=os.cpu_count() or 1).close()
    for dtype in golden.FORMATS:
        fetch.tiny_llama3_gguf(dtype)


def run(command: list[str], environment: dict[str, str]) -> tuple[bool, str]:
    """Run a program; return whether it ended well, and what it printed."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired as error:
        return False, f"no end after {LIMIT} s\n{error.output}"
    return done.returncode == 0, f"{done.stdout}{done.stderr}\n(exit status {done.returncode})"


def counted(output: str) -> Outcome:
    """The numbers of the last line that sums up tests, C's and pytest's alike."""
    sums = [line for line in output.splitlines() if re.search(r"\d+ (passed|failed)", line)]
    return Counter(
        {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", sums[-1] if sums else "")}
    )


def c_tests(processor: Processor) -> tuple[Outcome, list[str]]:
    """Run the C tests; return the sum and what went wrong."""
    _, tiers = run(processor.command(SP_TEST, "--tiers"), {})
    if tuple(tiers.split("\n(")[0].split()) != processor.tiers:
        return Counter(failed=1), [f"tiers are not {' '.join(processor.tiers)}:\n{tiers}"]
    total, faults = Outcome(), []
    for word in KERNELS if processor.kernels_alone else ("",):
        good, output = run(processor.command(SP_TEST, *filter(None, [word])), {})
        total += counted(output)
        if not good:
            faults.append(output)
    return total, faults


def python_tests(processor: Processor) -> tuple[Outcome, list[str]]:
    """Run the guest's tests in arm64 Python; return the sum and what went wrong."""
    environment = {
        "HOME": os.environ.get("HOME", "/"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{GUEST}:{CROSS}/site-{PYTHON}",
        "SMEPILOT_TEST_ARM": ",".join(processor.tiers),
        "SMEPILOT_TEST_CACHE": str(fetch.cache()),
        "OPENBLAS_CORETYPE": "ARMV8",  # left to itself, NumPy's library takes instructions that the processor lacks
    }
    python = f"{DEBIAN}/usr/bin/python{PYTHON}"
    # Golden hashes of each tier are for the processor whose best it is; a matrix unit's first version is on each.
    best = "sme" if "sme" in processor.tiers else processor.tiers[-1]
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"guest or {best}", *GUEST_TESTS]
    good, output = run(processor.command(python, *pytest), environment)
    return counted(output), [] if good else [output]


def judge(processor: Processor) -> bool:
    """Run everything on one processor and print its lines; return whether all was well."""
    began = time.monotonic()
    total, faults = c_tests(processor)
    middle = time.monotonic()
    if not processor.kernels_alone:
        more, worse = python_tests(processor)
        total, faults = total + more, faults + worse
    ended = time.monotonic()
    lines = [f"==== {processor.name}, {text[-6000:]}" for text in faults]
    lines.append(f"{processor.name}: C {middle - began:.0f} s, Python {ended - middle:.0f} s ({processor.cpu})")
    failed = total["failed"] + total["error"]
    if faults and not failed:
        failed = 1  # it crashed, hung, or ended before it could say
    lines.append(f"{processor.name}: {total['passed']} passed, {failed} failed, {total['skipped']} skipped")
    print("\n".join(lines), flush=True)
    return not faults


def main(names: list[str]) -> int:
    """Judge the named processors, or the builds themselves and then all of them."""
    unknown = set(names) - {processor.name for processor in PROCESSORS}
    if unknown:
        print(f"no such processor: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    good = True
    if not names:
        tests = sorted(map(str, (ROOT / "tests" / "arm").glob("test_*.py")))
        environment = {**os.environ, "SMEPILOT_TEST_ARM": "builds"}
        good = subprocess.run([sys.executable, "-m", "pytest", "-q", *tests], cwd=ROOT, env=environment).returncode == 0
    install()
    chosen = [processor for processor in PROCESSORS if not names or processor.name in names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return 0 if all(list(pool.map(judge, chosen))) and good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
