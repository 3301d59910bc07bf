# SPDX-License-Identifier: Apache-2.0
"""Which tiers a run may use: what the machine has, what SMEPILOT_ISA leaves of it, what the self-test trusts.

The machines here are made up, from what `_native.tiers` would say on them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from smepilot import _native
from smepilot.errors import InvalidParameterError
from smepilot.runtime import trust
from smepilot.runtime.sampler import Sampler
from smepilot.runtime.tiers import tiers, usable_tiers
from smepilot.types import GenerateParams
from tests.sdk.runtime.machines import NAMES, machine, verdict

Isa = Callable[[str], None]

X86 = ("avx2", "avx512")
M4 = ("neon", "neon_dotprod", "neon_i8mm", "sme", "sme2")
SME1 = M4[:-1]


@pytest.fixture
def isa(monkeypatch: pytest.MonkeyPatch) -> Isa:
    """Sets SMEPILOT_ISA."""
    return lambda value: monkeypatch.setenv("SMEPILOT_ISA", value)


def test_all_that_is_there_is_used_and_the_rest_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, built=M4, supported=SME1)
    found = tiers()
    assert found.used == ("scalar", *SME1)
    assert found.reasons == {
        "avx2": "not built into this library",
        "avx512": "not built into this library",
        "sme2": "not supported by this machine",
    }
    assert [tier.name for tier in found.every] == list(NAMES)
    assert hash(found) == hash(tiers())


@pytest.mark.parametrize(
    ("value", "used"),
    [
        ("scalar", ()),
        ("neon", ("neon",)),
        ("neon_i8mm", ("neon", "neon_dotprod", "neon_i8mm")),
        ("sme", SME1),
        ("sme2", M4),
        ("", M4),
        ("-sme", ("neon", "neon_dotprod", "neon_i8mm")),
        ("-sme2", SME1),
        ("-neon_dotprod", ("neon", "sme", "sme2")),
        ("-neon", ("sme", "sme2")),
        ("-avx2", M4),  # what is not there can be forbidden all the same
    ],
)
def test_isa_forces_and_forbids(value: str, used: tuple[str, ...], isa: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, built=M4, supported=M4)
    isa(value)
    found = tiers()
    assert found.used == ("scalar", *used)
    for name in set(M4) - set(used):
        assert found.reasons[name] == f"forbidden by SMEPILOT_ISA={value}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("sme", "SMEPILOT_ISA=sme: not built into this library; use one of scalar, avx2$"),
        ("avx512", "SMEPILOT_ISA=avx512: not supported by this machine; use one of scalar, avx2$"),
        ("AVX2", "SMEPILOT_ISA=AVX2: there is no such tier; use one of scalar, avx2, avx512, neon"),
        ("-avx", "SMEPILOT_ISA=-avx: there is no such tier"),
        ("-", "SMEPILOT_ISA=-: there is no such tier"),
        ("-scalar", "SMEPILOT_ISA=-scalar: scalar is what everything else falls back to"),
    ],
)
def test_isa_that_cannot_be_had(value: str, message: str, isa: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, built=X86, supported=("avx2",))
    isa(value)
    with pytest.raises(InvalidParameterError, match=message):
        tiers()


# ---- the self-test's part


def test_trap1_sme_without_sme2_is_tested_and_used_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = machine(monkeypatch, built=M4, supported=SME1)
    assert usable_tiers() == ["scalar", *SME1]
    assert asked == ["sme"]


def test_trap2_what_traps_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(
        monkeypatch, built=M4, supported=M4, verdicts=[verdict("sme2", "trapped", signal=4, kernel="sp_gemm_x_sme2")]
    )
    found = tiers()
    assert found.used == ("scalar", *SME1)
    assert found.reasons["sme2"] == "self-test failed: trapped (SIGILL) in sp_gemm_x_sme2"


def test_trap2_what_builds_on_what_traps_is_not_used_either(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, built=M4, supported=M4, verdicts=[verdict("sme", "trapped", signal=4)])
    found = tiers()
    assert found.used == ("scalar", "neon", "neon_dotprod", "neon_i8mm")
    assert found.reasons["sme2"] == "sme: self-test failed: trapped (SIGILL)"


@pytest.mark.parametrize("tier", trust.MATRIX)
def test_trap3_wrong_bits_rule_out_the_unit(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, built=M4, supported=M4, verdicts=[verdict(tier, "wrong bits", kernel="sp_k", cpu=3)])
    found = tiers()
    assert found.used == ("scalar", "neon", "neon_dotprod", "neon_i8mm")
    assert found.reasons[tier] == "self-test failed: wrong bits in sp_k on CPU 3"


@pytest.mark.parametrize("trouble", ["timed out", "untested"])
def test_what_is_not_proven_right_is_not_used(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, built=M4, supported=SME1, verdicts=[verdict("sme", trouble)])
    assert "sme" not in usable_tiers()


def test_forcing_what_failed_is_an_error_with_the_reason(isa: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, built=M4, supported=M4, verdicts=[verdict("sme", "wrong bits")])
    isa("sme2")
    with pytest.raises(InvalidParameterError, match="SMEPILOT_ISA=sme2: sme: self-test failed: wrong bits; use one of"):
        tiers()


@pytest.mark.parametrize("value", ["-sme", "neon_i8mm"])
def test_what_is_forbidden_is_not_even_tested(value: str, isa: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = machine(monkeypatch, built=M4, supported=M4)
    isa(value)
    assert tiers().verdicts == ()
    assert asked == []


# ---- who heeds it


def test_sampler_heeds_isa(isa: Isa, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    heard: list[object] = []
    isa("scalar")

    def sample(row: object, **named: object) -> int:
        heard.append(named["tiers"])
        return 0

    sampler = Sampler(GenerateParams(), 8, frozenset())
    monkeypatch.setattr(_native, "sample", sample)
    sampler.draw(np.zeros(8, np.float32), [1], [])
    assert heard == [["scalar"]]
