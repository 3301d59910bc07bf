# SPDX-License-Identifier: Apache-2.0
"""What users get: the wheel works in a fresh environment away from the checkout, and the sdist holds what builds it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command to success, away from this checkout and its environment, and return its output."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built wheel. Its build tree is its own: the one in the checkout serves other tests meanwhile."""
    folder = tmp_path_factory.mktemp("wheel")
    build = f"-Cbuild-dir={folder / 'build'}"
    run(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", build, "-w", folder, ROOT, cwd=folder
    )
    (path,) = folder.glob("smepilot-*.whl")
    return path


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the scripts folder of a new environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    scripts = folder / "venv" / "bin"
    run(scripts / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return scripts


def test_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"smepilot"}
    assert "smepilot/py.typed" in names
    assert "smepilot/models/catalog.toml" in names
    assert any(name.startswith("smepilot/_native/_core.") and name.endswith(".so") for name in names)
    assert not [name for name in names if name.endswith((".pyx", ".pxd", ".pxi", ".c", ".h"))]


def test_answers(fresh: Path, tiny_llama3: Path, tmp_path: Path) -> None:
    program = (
        "import smepilot, sys; engine = smepilot.Engine.open(sys.argv[1]);"
        "print(len(engine.complete('The cat', max_tokens=5, temperature=0, ignore_eos=True).tokens))"
    )
    assert run(fresh / "python", "-c", program, tiny_llama3, cwd=tmp_path) == "5\n"
    assert run(fresh / "smepilot", "run", tiny_llama3, "hello", "--max-tokens", "3", cwd=tmp_path)
    assert "avx" in run(fresh / "smepilot", "doctor", cwd=tmp_path).lower() or os.uname().machine != "x86_64"


def test_exports_one_symbol(wheel: Path, tmp_path: Path) -> None:
    """The extension shows the dynamic linker its init function alone: no symbol of ours can meet another library's."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if "_core" in name and name.endswith(".so")]
        library = archive.extract(name, tmp_path)
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=False)
    if listing.returncode != 0 or sys.platform != "linux":
        pytest.skip("nm is not here, or lists otherwise")
    assert [line.split()[-1] for line in listing.stdout.splitlines()] == ["PyInit__core"]


def test_sdist_builds(tmp_path: Path) -> None:
    program = "from scikit_build_core.build import build_sdist; import sys; print(build_sdist(sys.argv[1]))"
    name = run(sys.executable, "-c", program, tmp_path, cwd=ROOT).splitlines()[-1]
    with tarfile.open(tmp_path / name) as archive:
        names = {member.name.partition("/")[2] for member in archive}
    assert {"native/CMakeLists.txt", "native/base/status.c", "sdk/smepilot/_native/_core.pyx", "LICENSE"} <= names
    assert not [name for name in names if name.startswith(("build/", ".venv/"))]
