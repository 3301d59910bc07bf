# SPDX-License-Identifier: Apache-2.0
"""What one compiler lacks of three systems: headers and a library to link against, for each, in build/cross.

clang compiles for arm64 wherever it runs; what it has not got is the other systems' libraries. None of them has to be
there to link against: a linker wants to know which names a library has, no more. So each system gets a folder with

* ``linux``: glibc's headers and stand-ins for its libraries as they were in version 2.28, which manylinux_2_28 names.
  Both come from the `ziglang` package, whose purpose they are: it knows which symbol glibc had since when. A stand-in
  built from today's glibc would not do, for it would promise symbols of today.
* ``macos``: Apple's published headers and the list of libSystem's symbols, from the same package. Its list names the
  architectures of Apple's own binaries (arm64e); ours is arm64, which finds the same names.
* ``android``: nobody packs bionic's headers, so `bionic.h.in` declares the part of it that the engine uses, and a
  stand-in for libc.so is made that has those functions and no others. With the NDK at hand none of this is needed.

and for the first two ``python``: CPython's headers, which are the same everywhere but for pyconfig.h.

    python native/cross/sysroots.py build/cross 3.11
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
GLIBC = "2.28"

# What Debian's pyconfig.h claims and macOS has not, as far as Python's headers ask.
LINUX_ONLY = ("HAVE_ENDIAN_H", "HAVE_GETRANDOM_SYSCALL", "HAVE_LINUX_TIPC_H", "HAVE_SYS_RANDOM_H", "HAVE_STD_ATOMIC")

SECTION = re.compile(r"^// <([a-z/]+\.h)>", re.MULTILINE)
DECLARED = re.compile(r"^(?!typedef|static)\w[\w ]* \**(\w+)\(.*\);$", re.MULTILINE)


def fresh(folder: Path) -> Path:
    """Return the folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def linux(cross: Path, zig: Path) -> None:
    """Let zig link an empty library, which makes it build the stand-ins, and take those."""
    target = fresh(cross / "linux")
    lib, include = fresh(target / "lib"), target / "include"
    for part in ("any-linux-any", "aarch64-linux-any", "generic-glibc", "aarch64-linux-gnu"):
        shutil.copytree(zig / "lib/libc/include" / part, include, dirs_exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cross) as name:
        work = Path(name)
        (work / "empty.c").touch()
        cache = {"ZIG_GLOBAL_CACHE_DIR": name, "ZIG_LOCAL_CACHE_DIR": name}
        command = [sys.executable, "-m", "ziglang", "cc", "-O2", "-target", f"aarch64-linux-gnu.{GLIBC}", "-shared"]
        search = {"PYTHONPATH": str(zig.parent)}
        subprocess.run(
            [*command, "empty.c", "-o", "empty.so"], cwd=work, env={**os.environ, **cache, **search}, check=True
        )
        for library in ("libc.so.6", "libm.so.6", "libpthread.so.0"):
            (found,) = work.glob(f"o/*/{library}")
            shutil.copy(found, lib / library.rpartition(".")[0])


def macos(cross: Path, zig: Path) -> None:
    """Lay out what the compiler and the linker look for in an SDK of macOS."""
    target = fresh(cross / "macos")
    shutil.copytree(zig / "lib/libc/include/any-darwin-any", target / "usr/include")
    lib = fresh(target / "usr/lib")
    symbols = (zig / "lib/libc/darwin/libSystem.tbd").read_text()
    symbols = re.sub(r"arm64e\.x1-mac\w+,?\s*", "", symbols).replace("arm64e-mac", "arm64-mac")
    (lib / "libSystem.tbd").write_text(re.sub(r",\s*\]", " ]", symbols))
    version = json.loads((zig / "lib/libc/darwin/SDKSettings.json").read_text())["Version"]
    (target / "SDKSettings.json").write_text(json.dumps({"Version": version, "MaximumDeploymentTarget": version}))


def android(cross: Path, clang: Path) -> None:
    """Give bionic.h the names it stands for, and link a library that has what it declares."""
    target = fresh(cross / "android")
    include, lib = fresh(target / "include"), fresh(target / "lib")
    text = (HERE / "bionic.h.in").read_text()
    (include / "bionic.h").write_text(text)
    for name in SECTION.findall(text):
        (include / name).parent.mkdir(exist_ok=True)
        (include / name).write_text("#include <bionic.h>\n")
    stubs = "".join(f"void {name}(void) {{}}\n" for name in DECLARED.findall(text))
    command = [clang, "--target=aarch64-linux-android24", "-w", "-fno-builtin", "-nostdlib", "-shared", "-x", "c", "-"]
    linker = [f"--ld-path={clang.parent / 'ld.lld'}", "-Wl,-soname,libc.so", "-o", lib / "libc.so"]
    subprocess.run([*command, *linker], input=stubs, text=True, check=True)
    (lib / "libm.a").write_bytes(b"!<arch>\n")  # nothing of it is used


def python_headers(cross: Path, version: str) -> None:
    """Copy the headers of Debian's Python, each system with a pyconfig.h of its own."""
    debian = cross / f"debian-{version}" / "usr/include"
    config = (debian / "aarch64-linux-gnu" / f"python{version}" / "pyconfig.h").read_text()
    without = "".join(f"#undef {name}\n" for name in LINUX_ONLY)
    for system, text in (("linux", config), ("macos", config + without)):
        include = cross / system / "python"
        shutil.rmtree(include, ignore_errors=True)
        shutil.copytree(debian / f"python{version}", include)
        (include / "pyconfig.h").write_text(text)


def main(cross: Path, version: str) -> None:
    """Make all of it below `cross`."""
    zig = cross / "zig" / "ziglang"
    linux(cross, zig)
    macos(cross, zig)
    android(cross, cross / "bin" / "clang")
    python_headers(cross, version)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2])
