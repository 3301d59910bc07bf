# SPDX-License-Identifier: Apache-2.0
"""`smepilot bench` as a command."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.sdk.cli.terminal import smepilot

QUICK = ("-p", "16", "-n", "4", "-t", "1", "-r", "2")


def test_table(tiny_llama3: Path) -> None:
    done = smepilot("bench", tiny_llama3, *QUICK)
    assert done.returncode == 0
    header, _, prompt, generation = done.stdout.splitlines()
    assert header.split()[1:4] == ["model", "|", "test"]
    assert "| pp16 |" in prompt
    assert "| tg4  |" in generation
    assert "pp16, 1 threads" in done.stderr


def test_json_and_csv(tiny_llama3: Path) -> None:
    rows = json.loads(smepilot("bench", tiny_llama3, *QUICK, "--json").stdout)
    assert [row["test"] for row in rows] == ["pp16", "tg4"]
    lines = list(csv.DictReader(io.StringIO(smepilot("bench", tiny_llama3, *QUICK, "-o", "csv").stdout)))
    assert [(line["test"], line["sample"]) for line in lines] == [
        ("pp16", "0"),
        ("pp16", "1"),
        ("tg4", "0"),
        ("tg4", "1"),
    ]


def test_a_kept_run_compares_with_itself(tiny_llama3: Path, tmp_path: Path) -> None:
    done = smepilot("bench", tiny_llama3, *QUICK, "--record", tmp_path, "--topic", "tiny")
    (folder,) = tmp_path.iterdir()
    assert f"kept in {folder}" in done.stderr
    assert done.stdout in (folder / "README.md").read_text()
    compared = smepilot("bench", "--compare", folder, folder)
    assert compared.returncode == 0
    assert compared.stdout.count("no difference") == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "either a MODEL or a --shape"),
        (("m.gguf", "--shape", "llama-3.2-1b"), "either a MODEL or a --shape"),
        (("--shape", "llama-9"), "llama-3.2-1b"),
        (("--shape", "llama-3.2-1b", "--quant", "q9"), "q4_0"),
        (("m.gguf", "-p", "x"), "-p x: not a list of numbers"),
        (("m.gguf", "-p", "0", "-n", "0"), "nothing to measure"),
        (("m.gguf", "-r", "0"), "at least 1 sample"),
        (("m.gguf", "-t", "0", "-d", "0-1000000"), "more than"),
        (("m.gguf", "--memory"), "add --vs-llama-cpp"),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], reason: str) -> None:
    done = smepilot("bench", *arguments)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_peer_that_is_not_there_is_named(tiny_llama3: Path) -> None:
    done = smepilot("bench", tiny_llama3, *QUICK, "--vs-llama-cpp", "--peer-python", "/nonexistent/python")
    assert done.returncode == 1
    assert "/nonexistent/python: cannot be started" in done.stderr
