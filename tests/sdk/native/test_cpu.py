# SPDX-License-Identifier: Apache-2.0
"""What the extension says of this machine, against what Linux says of it. Recorded machines are tested in C."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

from smepilot import _native

linux = pytest.mark.skipif(sys.platform != "linux", reason="compares with /proc and the scheduler")


def test_counts_agree_with_each_other():
    info = _native.cpu_info()
    clusters = info["clusters"]
    assert 1 <= info["usable"] <= info["cores"] <= info["cpus"]
    assert sum(cluster["cores"] for cluster in clusters) == info["cores"]
    assert sum(cluster["usable"] for cluster in clusters) >= info["usable"]
    assert info["cpus"] <= info["cores"] * info["smt"]
    assert info["quota"] is None or info["quota"] > 0
    for cluster in clusters:
        for cache in (cluster["l1d"], cluster["l2"], cluster["l3"]):
            assert cache is None or (cache["bytes"] > 0 and cache["sharers"] >= 1)


def test_architecture_is_pythons():
    names = {"x86_64": "x86_64", "AMD64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
    assert _native.cpu_info()["arch"] == names.get(platform.machine(), "other")


@linux
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names of x86 flags")
def test_x86_features_are_the_kernels():
    text = Path("/proc/cpuinfo").read_text()
    flags = set(next(line for line in text.splitlines() if line.startswith("flags")).split())
    renamed = {"avx512vnni": "avx512_vnni"}
    features = _native.cpu_info()["features"]
    for name in ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni"):
        assert features[name] == (renamed.get(name, name) in flags), name
    assert not features["neon"]
    assert not features["sme"]


@linux
def test_usable_follows_the_affinity():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        info = _native.cpu_info()
        assert info["usable"] == 1
        assert sum(cluster["usable"] for cluster in info["clusters"]) == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert _native.cpu_info()["usable"] <= len(allowed)
