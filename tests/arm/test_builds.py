# SPDX-License-Identifier: Apache-2.0
"""What was built for Arm loads where it should: tags, formats, and what each file asks of its system."""

from __future__ import annotations

import re
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from tests.arm.binary import extension, tool, wheel
from tests.arm.processors import CP, CROSS
from tests.conftest import ROOT

LINUX, MACOS = "manylinux_2_28_aarch64", "macosx_13_0_arm64"
BIONIC = ROOT / "native" / "cross" / "bionic.h.in"
ANDROID = CROSS / "android-arm64" / "libsmepilot.so"


def needed(library: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", tool("llvm-readelf", "-d", library)))


def undefined(library: Path) -> set[str]:
    return {line.split()[-1] for line in tool("llvm-nm", "-D", "--undefined-only", library).splitlines()}


def alignments(library: Path) -> set[int]:
    return {int(x, 16) for x in re.findall(r"^ +LOAD .* (0x[0-9a-f]+)$", tool("llvm-readelf", "-lW", library), re.M)}


@pytest.mark.parametrize(("platform", "suffix"), [(LINUX, "aarch64-linux-gnu"), (MACOS, "darwin")])
def test_wheel_says_what_it_is(platform: str, suffix: str, tmp_path: Path) -> None:
    path = wheel(platform)
    with zipfile.ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        said = HeaderParser().parsestr(archive.read(name).decode())
    assert said["Tag"] == f"{CP}-{CP}-{platform}"
    assert said["Root-Is-Purelib"] == "false"
    assert extension(path, tmp_path).name == f"_core.cpython-{CP[2:]}-{suffix}.so"


def test_linux_wheel_needs_glibc_2_28_and_nothing_else(tmp_path: Path) -> None:
    library = extension(wheel(LINUX), tmp_path)
    assert needed(library) <= {"libc.so.6", "libm.so.6", "libpthread.so.0"}
    names = {name for name in undefined(library) if not name.startswith(("Py", "_Py"))}
    versions = {name: re.fullmatch(r"\w+@GLIBC_2\.(\d+)", name) for name in names}
    assert not [name for name, version in versions.items() if not version or int(version[1]) > 28]
    assert alignments(library) == {0x10000}, "kernels with pages of 64 KiB exist"
    assert tool("llvm-nm", "-D", "--defined-only", library).split()[2::3] == ["PyInit__core"]


def test_macos_wheel_is_a_signed_bundle_over_libsystem(tmp_path: Path) -> None:
    library = extension(wheel(MACOS), tmp_path)
    header = tool("llvm-otool", "-hv", library).splitlines()[-1].split()
    assert {"MH_MAGIC_64", "ARM64", "BUNDLE", "NOUNDEFS", "DYLDLINK", "TWOLEVEL"} <= set(header)
    libraries = [line.split()[0] for line in tool("llvm-otool", "-L", library).splitlines()[1:]]
    assert libraries == ["/usr/lib/libSystem.B.dylib"]
    commands = tool("llvm-otool", "-l", library)
    assert re.search(r"cmd LC_BUILD_VERSION\n.*\n +platform (1|macos)\n.*\n +minos 13\.0\n", commands)
    assert "LC_CODE_SIGNATURE" in commands, "arm64 Macs load nothing unsigned"
    assert "LC_RPATH" not in commands
    # Bound to a library, or left to the process, which has Python's names and no others of use.
    flat = re.findall(r"undefined.*external (\S+) \(dynamically looked up\)", tool("llvm-nm", "-m", library))
    assert flat
    assert not [name for name in flat if not name.startswith(("_Py", "__Py"))]
    assert tool("llvm-nm", "-gU", library).split()[2::3] == ["_PyInit__core"]


def test_android_library_fits_pages_of_16_kib_and_needs_libc_alone() -> None:
    assert alignments(ANDROID) == {0x4000}
    assert needed(ANDROID) == {"libc.so"}
    assert "[libsmepilot.so]" in tool("llvm-readelf", "-d", ANDROID)
    assert "TEXTREL" not in tool("llvm-readelf", "-d", ANDROID)
    declared = set(re.findall(r"\b(\w+)\(.*\);$", BIONIC.read_text(), re.M))
    assert undefined(ANDROID) <= declared
    shown = set(tool("llvm-nm", "-D", "--defined-only", ANDROID).split()[2::3])
    assert {"sp_program_create", "sp_pool_create", "sp_cpu_detect"} <= shown
    assert not [name for name in shown if not name.startswith("sp_")]
