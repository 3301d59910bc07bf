# SPDX-License-Identifier: Apache-2.0
"""The kept tokenizer: equal to the built one, read without the metadata's arrays, and never a reason to fail."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from smepilot.text import Tokenizer, bpe, from_metadata
from smepilot.text.cache import FILE_NAME
from smepilot.weights.gguf import open_gguf
from tests import fetch
from tests.sdk.text.samples import BOTCHAN, TEXTS, gpt2, llama, vocabulary_file


class Untouched(Sequence[Any]):
    """An array of which only the length may be asked."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("the array was read")

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("the array was read")


def closed(meta: dict[str, Any]) -> dict[str, Any]:
    """The metadata with arrays that cannot be read."""
    return {key: Untouched(len(value)) if isinstance(value, list) else value for key, value in meta.items()}


def same(one: Tokenizer, other: Tokenizer) -> bool:
    facts = ("vocab_size", "bos_id", "eos_ids", "add_bos", "bos_token", "eos_token", "space_prefix")
    return (
        all(getattr(one, fact) == getattr(other, fact) for fact in facts)
        and all(one.token_bytes(i) == other.token_bytes(i) for i in range(one.vocab_size))
        and all(one.encode(text) == other.encode(text) for text in TEXTS)
    )


@pytest.mark.parametrize("make", [gpt2, llama])
def test_the_second_time_no_array_is_read(make: Callable[[], dict[str, Any]], tmp_path: Path) -> None:
    built = from_metadata(make(), cache=tmp_path / "new" / "folder")
    assert same(built, from_metadata(closed(make()), cache=tmp_path / "new" / "folder"))
    assert same(built, from_metadata(make()))


@pytest.mark.parametrize("name", ["llama-bpe", "llama-spm"])
def test_real_vocabularies(name: str, tmp_path: Path) -> None:
    with open_gguf(vocabulary_file(name)) as file:
        built = from_metadata(file.metadata, cache=tmp_path)
        assert same(built, from_metadata(file.metadata, cache=tmp_path))
        text = BOTCHAN.read_text()
        assert built.encode(text) == from_metadata(file.metadata, cache=tmp_path).encode(text)


@pytest.mark.parametrize("make", [gpt2, llama])
def test_damage_anywhere_is_repaired(make: Callable[[], dict[str, Any]], tmp_path: Path) -> None:
    built = from_metadata(make(), cache=tmp_path)
    sound = (tmp_path / FILE_NAME).read_bytes()
    damaged = [b"", b"SPTOK", sound[:-1], sound + b"x", sound[::-1], b"\0" * len(sound)]
    damaged += [sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :] for at in range(0, len(sound), 997)]
    for data in damaged:
        (tmp_path / FILE_NAME).write_bytes(data)
        assert same(built, from_metadata(make(), cache=tmp_path))
        assert (tmp_path / FILE_NAME).read_bytes() == sound


@pytest.mark.parametrize(
    "changes", [{"add_bos_token": True}, {"pre": "qwen2"}, {"eos_token_id": 5}, {"token_type": None}]
)
def test_other_metadata_make_it_stale(changes: dict[str, Any], tmp_path: Path) -> None:
    from_metadata(gpt2(), cache=tmp_path)
    assert same(from_metadata(gpt2(**changes), cache=tmp_path), from_metadata(gpt2(**changes)))


def test_another_kind_makes_it_stale(tmp_path: Path) -> None:
    from_metadata(gpt2(), cache=tmp_path)
    assert same(from_metadata(llama(), cache=tmp_path), from_metadata(llama()))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert same(from_metadata(gpt2(), cache=tmp_path / "file"), from_metadata(gpt2()))
    (tmp_path / FILE_NAME).mkdir()
    assert same(from_metadata(gpt2(), cache=tmp_path), from_metadata(gpt2()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", FILE_NAME]


def _build(folder: str) -> None:
    for _ in range(20):
        assert from_metadata(gpt2(), cache=Path(folder)).encode("hello") == [259]


def test_two_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_build, args=(str(tmp_path),)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_importing_the_package_imports_none_of_those_behind_it() -> None:
    code = "import sys, smepilot.text; print(*{'tokenizers', 'sentencepiece', 'jinja2'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_a_warm_start_is_quick(tmp_path: Path) -> None:
    """49,000 tokens from the cache to the first ids, the `tokenizers` package not yet imported: 60 ms of this thread.

    Processor time, as other tests run beside this one; the best of three, each in its own process.
    """
    with open_gguf(fetch.smollm2()) as file:
        from_metadata(file.metadata, cache=tmp_path)
    code = (
        "import sys, time; from pathlib import Path; from smepilot.text import from_metadata;"
        "from smepilot.weights.gguf import open_gguf;"
        "file = open_gguf(Path(sys.argv[1])); start = time.thread_time();"
        "ids = from_metadata(file.metadata, cache=Path(sys.argv[2])).encode('Why is the sky blue?');"
        "print(time.thread_time() - start, len(ids))"
    )
    command = [sys.executable, "-c", code, os.fspath(fetch.smollm2()), os.fspath(tmp_path)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(3)]
    assert min(float(seconds) for seconds, _ in runs) < 0.060


def test_opening_is_a_matter_of_milliseconds(tmp_path: Path) -> None:
    with open_gguf(vocabulary_file("llama-bpe")) as file:
        from_metadata(file.metadata, cache=tmp_path)
        bpe_time = []
        for _ in range(5):
            start = time.thread_time()
            from_metadata(file.metadata, cache=tmp_path)
            bpe_time.append(time.thread_time() - start)
    assert bpe.__name__ in sys.modules
    assert min(bpe_time) < 0.030
