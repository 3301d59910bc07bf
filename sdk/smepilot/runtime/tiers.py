# SPDX-License-Identifier: Apache-2.0
"""Which instruction-set tiers a run may use, and why it may not use the others.

A tier is used when it was built, when processor and system support it, when `SMEPILOT_ISA` does not forbid it, and, for
the tiers of a matrix unit, when the self-test trusts it (`runtime/trust.py`). Of `SMEPILOT_ISA`:

* a tier's name, such as `avx2` or `neon_i8mm`, allows the tiers up to it, in the order of `smepilot doctor`; asking for
  one that cannot be used is an error that says why;
* a name after a minus, such as `-sme`, forbids that tier and what its family builds on it: `-sme` forbids SME and SME2,
  `-sme2` leaves SME, `-avx512` leaves AVX2. Forbidding what is not there changes nothing.

No tier changes a bit of any result, so this is a matter of speed and trust alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from smepilot import _native
from smepilot.errors import InvalidParameterError
from smepilot.runtime import trust

ISA_VARIABLE = "SMEPILOT_ISA"

# Lowest first: who forbids one forbids those after it. The reference is in no family, it cannot be forbidden.
_FAMILIES = (("avx2", "avx512"), ("neon", "neon_dotprod", "neon_i8mm"), trust.MATRIX)


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier; `reason` says why it is not used, and is None where it is."""

    name: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Tiers:
    """All tiers the engine knows, lowest first, and what the self-test said of those that were put to it."""

    every: tuple[Tier, ...]
    verdicts: tuple[trust.Verdict, ...] = ()

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the tiers that a run may use, lowest first; `scalar` is always there."""
        return tuple(tier.name for tier in self.every if tier.reason is None)

    @property
    def reasons(self) -> dict[str, str]:
        """Why the others are not used, by name."""
        return {tier.name: tier.reason for tier in self.every if tier.reason is not None}

    def without(self, refused: dict[str, str]) -> Tiers:
        """The same with more tiers refused; one that is refused already keeps its reason."""
        every = tuple(Tier(tier.name, tier.reason or refused.get(tier.name)) for tier in self.every)
        return replace(self, every=every)


def tiers(*, retest: bool = False) -> Tiers:
    """The tiers as the machine, `SMEPILOT_ISA` and the self-test have them now.

    Args:
        retest: Run the self-test even where its answer is kept.

    Raises:
        InvalidParameterError: `SMEPILOT_ISA` names a tier that does not exist or cannot be used here.
    """
    there = Tiers(tuple(Tier(each["name"], _absence(each["built"], each["supported"])) for each in _native.tiers()))
    wanted = os.environ.get(ISA_VARIABLE, "")
    allowed = there.without(_forbidden(wanted, [tier.name for tier in there.every]))
    verdicts = trust.verdicts([name for name in allowed.used if name in trust.MATRIX], retest=retest)
    allowed = replace(allowed.without(trust.refusals(verdicts)), verdicts=verdicts)
    if wanted and not wanted.startswith("-") and wanted in allowed.reasons:
        raise InvalidParameterError(
            f"{ISA_VARIABLE}={wanted}: {allowed.reasons[wanted]}; use one of {', '.join(allowed.used)}"
        )
    return allowed


def usable_tiers() -> list[str]:
    """Names of the tiers that a run may use, lowest first; raises as `tiers` does."""
    return list(tiers().used)


def _absence(built: bool, supported: bool) -> str | None:
    return "not built into this library" if not built else None if supported else "not supported by this machine"


def _forbidden(wanted: str, names: list[str]) -> dict[str, str]:
    """What a value of `SMEPILOT_ISA` refuses, with the reason."""
    name = wanted.removeprefix("-")
    if not wanted:
        return {}
    if name not in names:
        raise InvalidParameterError(f"{ISA_VARIABLE}={wanted}: there is no such tier; use one of {', '.join(names)}")
    reason = f"forbidden by {ISA_VARIABLE}={wanted}"
    if not wanted.startswith("-"):
        return dict.fromkeys(names[names.index(name) + 1 :], reason)
    for family in _FAMILIES:
        if name in family:
            return dict.fromkeys(family[family.index(name) :], reason)
    raise InvalidParameterError(f"{ISA_VARIABLE}={wanted}: {name} is what everything else falls back to")
