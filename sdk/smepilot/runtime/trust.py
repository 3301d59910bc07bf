# SPDX-License-Identifier: Apache-2.0
"""Whether a matrix unit's kernels are to be trusted on this machine, found out once and kept.

A system may advertise SME and let it trap (virtual machines, phones that keep the unit for themselves); a chip may give
wrong bits now and then. So before the first use, the kernels of each matrix tier compute known products in child
processes (native/probe/selftest.h). That takes some ten milliseconds, and its answer does not change while build and
machine stay what they are, so it is kept below `home()/cache/selftest`, bad ones too: `smepilot doctor --retest` asks
anew. What was not conclusive, because a busy machine did not finish in time, holds for this process alone.

What has not been proven right is not used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from smepilot import _native
from smepilot.paths import home

log = logging.getLogger(__name__)

MATRIX = ("sme", "sme2")
"""Tiers of a matrix unit, lowest first."""

_CONCLUSIVE = ("right", "wrong bits", "trapped")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the self-test found of one tier, as `_native.selftest` says it; `when` is seconds since 1970."""

    tier: str
    trust: str
    kernel: str | None
    signal: int | None
    cpu: int | None
    svl: int | None
    calls: int
    interruptions: int
    seconds: float
    when: float

    @property
    def reason(self) -> str | None:
        """Why the tier is not trusted, in words; None where it is."""
        if self.trust == "right":
            return None
        if self.trust == "untested":
            return "could not be self-tested: the system allows no child process"
        kind = "" if self.signal is None else f" ({_signal_name(self.signal)})"
        kernel = "" if self.kernel is None else f" in {self.kernel}"
        cpu = "" if self.cpu is None else f" on CPU {self.cpu}"
        return f"self-test failed: {self.trust}{kind}{kernel}{cpu}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def refusals(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """The tiers that verdicts rule out, with the reason.

    Wrong bits cast doubt on the unit, so they rule out all of its tiers. Anything else is about one tier's
    instructions: that one and those that build on it.
    """
    refused: dict[str, str] = {}
    for verdict in verdicts:
        if verdict.reason is None:
            continue
        first = 0 if verdict.trust == "wrong bits" else MATRIX.index(verdict.tier)
        for tier in MATRIX[first:]:
            own = tier == verdict.tier
            refused.setdefault(tier, verdict.reason if own else f"{verdict.tier}: {verdict.reason}")
    return refused


_lock = threading.Lock()
_known: dict[tuple[str, ...], tuple[Verdict, ...]] = {}  # of this process


def verdicts(tiers: Sequence[str], *, retest: bool = False) -> tuple[Verdict, ...]:
    """The verdict on each of these matrix tiers: kept from before, or found out now.

    Args:
        tiers: Names out of MATRIX that are built and supported.
        retest: Ask the machine, whatever is kept.
    """
    wanted = tuple(tiers)
    with _lock:
        if wanted not in _known or retest:
            _known[wanted] = _find_out(wanted, retest)
            for tier, reason in refusals(_known[wanted]).items():
                log.warning("%s is not used: %s", tier, reason)
        return _known[wanted]


def _find_out(tiers: tuple[str, ...], retest: bool) -> tuple[Verdict, ...]:
    if not tiers:
        return ()
    key = _key()
    kept = {} if retest or not key["build"] else _read(key)
    found = {tier: kept[tier] if tier in kept else _test(tier) for tier in tiers}
    if key["build"] and any(tier not in kept for tier in tiers):
        _write(key, {**kept, **found})
    return tuple(found.values())


def _test(tier: str) -> Verdict:
    return Verdict(tier=tier, when=time.time(), **_native.selftest(tier))


# ---- keeping


def _key() -> dict[str, Any]:
    """What an answer depends on: this build, this processor, this system. A firmware's version is in the kernel's."""
    info = _native.cpu_info()
    return {
        "build": _build(),
        "processor": [info["brand"], info["midr"], info["svl"]],
        "features": sorted(name for name, there in info["features"].items() if there),
        "cpus": info["allowed"],
        "system": [platform.system(), platform.release(), platform.version()],
    }


def _build() -> str:
    """The hash of the extension's file; empty where it is no file of its own (an app that links it in)."""
    try:
        return hashlib.sha256(Path(getattr(_native._core, "__file__", "")).read_bytes()).hexdigest()
    except OSError:
        return ""


def _path(key: dict[str, Any]) -> Path:
    """Where answers to `key` are kept: by all of it but the CPUs, which a file lists."""
    text = json.dumps({name: value for name, value in key.items() if name != "cpus"}, sort_keys=True)
    return home() / "cache" / "selftest" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _read(key: dict[str, Any]) -> dict[str, Verdict]:
    """The kept verdicts; none where the file is missing, damaged, or from fewer CPUs than this process may use."""
    try:
        document = json.loads(_path(key).read_text())
        if not set(key["cpus"]) <= set(document["key"]["cpus"]):
            return {}
        each = [Verdict(**fields) for fields in document["verdicts"]]
        return {verdict.tier: verdict for verdict in each if verdict.trust in _CONCLUSIVE}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        log.debug("the kept self-test cannot be read, it is made anew: %s", error)
        return {}


def _write(key: dict[str, Any], verdicts: dict[str, Verdict]) -> None:
    """Keeps what is conclusive; a disk that takes nothing only costs a test at the next start."""
    path = _path(key)
    document = {"key": key, "verdicts": [asdict(each) for each in verdicts.values() if each.trust in _CONCLUSIVE]}
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(document, indent=1))
        os.replace(partial, path)
    except OSError as error:
        log.debug("the self-test's answer is not kept: %s", error)
