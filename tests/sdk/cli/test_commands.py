# SPDX-License-Identifier: Apache-2.0
"""Commands with pipes: results on standard output, plain; errors in one line; exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import smepilot as sp
from smepilot.cli import COMMANDS
from tests import fetch
from tests.sdk.cli.terminal import COMMAND, smepilot

ANSWER = ("--max-tokens", "5", "--temp", "0")
REPEATED = "lllll"  # how the tiny model goes on after WORDS
WORDS = "Once upon a time there was a small model"


# ---- run


def test_run_answers_a_prompt(tiny_llama3: Path) -> None:
    run = smepilot("run", tiny_llama3, "--raw", WORDS, *ANSWER)
    assert (run.stdout, run.stderr, run.returncode) == (f"{REPEATED}\n", "", 0)


def test_run_takes_options_anywhere_and_joins_words(tiny_llama3: Path) -> None:
    one = smepilot("run", "--seed", "3", tiny_llama3, "--temp", "6", "--top-k", "0", "two", "words", "--json")
    two = smepilot("run", tiny_llama3, "two words", "--json", "--seed", "3", "--temp", "6", "--top-k", "0")
    assert json.loads(one.stdout)["tokens"] == json.loads(two.stdout)["tokens"]


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_run_reads_the_prompt_from_a_pipe(tiny_llama3: Path, arguments: tuple[str, ...]) -> None:
    run = smepilot("run", tiny_llama3, *arguments, "--raw", *ANSWER, stdin=f"{WORDS}\n")
    assert (run.stdout, run.returncode) == (f"{REPEATED}\n", 0)


def test_run_json_is_one_document(tiny_llama3: Path) -> None:
    run = smepilot("run", tiny_llama3, "Hellö 🙂", "--system", "Be brief.", *ANSWER, "--json")
    answer = json.loads(run.stdout)
    assert (answer["finish_reason"], answer["seed"] >= 0) == ("length", True)
    assert answer["usage"]["completion_tokens"] == 5
    assert sum(answer["kernels"].values()) > 0


def test_run_stats_go_to_standard_error(tiny_llama3: Path) -> None:
    run = smepilot("run", tiny_llama3, "--raw", WORDS, *ANSWER, "--stats")
    assert run.stdout == f"{REPEATED}\n"
    for word in ("prompt", "answer", "first token", "peak memory", "sp_gemm"):
        assert word in run.stderr


def test_run_raw_skips_the_template(tiny_llama3: Path) -> None:
    raw = json.loads(smepilot("run", tiny_llama3, "abc", "--raw", "--json", *ANSWER).stdout)
    chat = json.loads(smepilot("run", tiny_llama3, "abc", "--json", *ANSWER).stdout)
    assert raw["usage"]["prompt_tokens"] < 4 < chat["usage"]["prompt_tokens"]


def test_a_path_with_any_letters(tiny_llama3: Path, tmp_path: Path) -> None:
    path = tmp_path / "模型 ünï 🙂.gguf"
    shutil.copy(tiny_llama3, path)
    assert smepilot("run", path, "--raw", WORDS, *ANSWER).stdout == f"{REPEATED}\n"
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert smepilot("run", path, "--raw", WORDS, *ANSWER, environment=environment).stdout == f"{REPEATED}\n"


def test_text_that_the_output_cannot_show_is_replaced(tiny_llama3: Path) -> None:
    options = ("--temp", "8", "--top-k", "0", "--min-p", "0", "--seed", "1", "--max-tokens", "200", "--ignore-eos")
    run = smepilot("run", tiny_llama3, WORDS, *options, environment={"PYTHONIOENCODING": "ascii"})
    assert (run.returncode, run.stderr) == (0, "")
    assert len(run.stdout) > 100


# ---- other commands


def test_perplexity(tiny_llama3: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Once upon a time. " * 20)
    run = smepilot("perplexity", tiny_llama3, text, "--json")
    result = json.loads(run.stdout)
    with sp.Engine.open(tiny_llama3) as engine:
        assert result["value"] == engine.perplexity(text.read_text()).value
    assert "perplexity" in smepilot("perplexity", tiny_llama3, "-", stdin=text.read_text()).stdout


def test_logits(tiny_llama3: Path, tmp_path: Path) -> None:
    out = tmp_path / "logits.of.it"
    assert smepilot("logits", tiny_llama3, "--ids", "1,2,3", "--out", out).returncode == 0
    with np.load(out) as data, sp.Engine.open(tiny_llama3) as engine:
        assert data["ids"].tolist() == [1, 2, 3]
        assert (data["logits"] == engine.logits([1, 2, 3])).all()
    run = smepilot("logits", tiny_llama3, "--text", "abc", "--out", out, "--json")
    assert json.loads(run.stdout)["ids"] == np.load(out)["ids"].tolist()


def test_class_and_role(tmp_path: Path) -> None:
    """`--prompt-class` is what prompts are computed in, `--role` what a text counts as; answers are always grouped."""
    model, text = fetch.tiny_llama3_gguf("Q4_0"), tmp_path / "text.txt"
    text.write_text("Once upon a time. " * 20)
    values, classes = {}, {}
    for prompts in ("grouped", "rowwise"):
        for role in ("prompt", "generated"):
            options = ("--prompt-class", prompts, "--role", role, "--json")
            result = json.loads(smepilot("perplexity", model, text, *options).stdout)
            values[prompts, role], classes[prompts, role] = result["value"], result["class"]
    assert list(classes.values()) == ["grouped", "grouped", "rowwise", "grouped"]
    assert len(set(values.values())) == 2
    assert values["rowwise", "generated"] == values["grouped", "generated"] == values["grouped", "prompt"]
    out = tmp_path / "logits.npz"
    options = ("--prompt-class", "rowwise", "--role", "generated", "--ids", "1,2,3", "--out", out)
    assert smepilot("logits", model, *options).returncode == 0
    with np.load(out) as data, sp.Engine.open(model, prompt_class="grouped") as engine:
        assert (data["logits"] == engine.logits([1, 2, 3])).all()
    answer = json.loads(smepilot("run", model, "Hello", "--json", "--prompt-class", "rowwise", *ANSWER).stdout)
    assert answer["prompt_class"] == "rowwise"
    assert "rowwise" in smepilot("run", model, "Hello", "--stats", "--prompt-class", "rowwise", *ANSWER).stderr


def test_show_tells_what_was_measured(tmp_path: Path) -> None:
    home = {"SMEPILOT_HOME": str(tmp_path)}
    model = fetch.tiny_llama3_gguf("Q4_0")
    assert "not measured yet" in smepilot("show", model, environment=home).stdout
    assert json.loads(smepilot("show", model, "--json", environment=home).stdout)["calibration"] is None
    first = smepilot("run", model, "Hello", *ANSWER, environment=home)
    assert (first.returncode, first.stderr) == (0, "")
    found = json.loads(smepilot("show", model, "--json", environment=home).stdout)["calibration"]
    assert found["default"] in ("grouped", "rowwise")
    assert abs(found["loss"]) < 0.1
    shown = smepilot("show", model, environment=home).stdout
    assert f"{found['default']}; perplexity of rowwise against grouped: {100 * found['loss']:+.2f} %" in shown


def test_doctor_tells_what_is_used() -> None:
    text = smepilot("doctor").stdout
    for word in ("smepilot", "home", "processor", "TIER", "WORKER", "KERNEL"):
        assert word in text
    report = json.loads(smepilot("doctor", "--json", environment={"SMEPILOT_ISA": "scalar"}).stdout)
    assert report["used"] == ["scalar"]
    assert {kernel["tier"] for kernel in report["kernels"] if kernel["chosen"]} == {"scalar"}


def test_list_and_show_without_models(tmp_path: Path, tiny_llama3: Path) -> None:
    home = {"SMEPILOT_HOME": str(tmp_path)}
    assert "no models" in smepilot("list", environment=home).stderr
    assert json.loads(smepilot("list", "--json", environment=home).stdout) == []
    names = [entry["name"] for entry in json.loads(smepilot("list", "--all", "--json", environment=home).stdout)]
    assert "smollm2:135m" in names
    shown = smepilot("show", "smollm2:135m", environment=home)
    assert (shown.returncode, "smepilot pull" in shown.stderr) == (1, True)
    metadata = json.loads(smepilot("show", tiny_llama3, "--json").stdout)["metadata"]
    assert metadata["general.architecture"] == "llama"
    assert "im_start" in smepilot("show", tiny_llama3, "--template").stdout
    missing = smepilot("rm", "smollm2:135m", environment=home)
    assert (missing.returncode, "nothing to remove" in missing.stderr) == (1, True)


def test_piped_output_is_plain() -> None:
    for arguments in (("list", "--all"), ("doctor",), ("--help",)):
        assert "\x1b" not in smepilot(*arguments, environment={"TERM": "xterm", "FORCE_COLOR": "1"}).stdout


# ---- help and errors


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_has_examples(command: str) -> None:
    run = smepilot(command, "--help")
    assert run.returncode == 0
    assert f"examples:\n  smepilot {command}" in run.stdout


def test_help_lists_every_command() -> None:
    run = smepilot("--help")
    assert run.returncode == 0
    assert all(f"  {name} " in run.stdout for name in COMMANDS)
    assert smepilot("--version").stdout == f"smepilot {sp.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, None),
        (("dance",), 2, "no command 'dance'"),
        (("run",), 2, "required"),
        (("run", "{model}", "x", "--dance"), 2, "--dance"),
        (("run", "{model}", "x", "--temp", "hot"), 2, "--temp"),
        (("run", "{model}", "x", "--temp", "-1"), 2, "temperature is -1.0"),
        (("run", "{model}", "x", "--top-p", "2"), 2, "top_p is 2.0"),
        (("run", "{model}", "x", "--threads", "0"), 2, "threads is 0"),
        (("run", "{model}", "x", "--prompt-class", "fast"), 2, "--prompt-class"),
        (("run", "{model}", "x", "--prompt-class", "rowwise"), 2, "no layer of this model is quantised"),
        (("run", "{model}", ""), 2, "prompt is empty"),
        (("run", "{model}"), 2, "prompt is empty"),
        (("run", "{model}", "x" * 5000), 1, "holds 2048"),
        (("run", "{model}", "x", "--ctx", "9999999"), 2, "ctx"),
        (("run", "no/such/file.gguf", "x"), 1, "no such file"),
        (("run", "no-such-model", "x"), 1, "no model is named 'no-such-model'"),
        (("run", "{empty}", "x"), 1, "empty"),
        (("run", "{foreign}", "x"), 1, "foreign"),
        (("run", "{cut}", "x"), 1, "cut"),
        (("run", "{folder}", "x"), 1, None),
        (("pull", "no-such-model"), 1, "no model is named"),
        (("rm", "no-such-model"), 1, "no model is named"),
        (("show", "no-such-model"), 1, "no model is named"),
        (("perplexity", "{model}", "no-such-file"), 1, "no-such-file"),
        (("perplexity", "{model}", "{empty}"), 2, "0 tokens"),
        (("logits", "{model}", "--ids", "1,x", "--out", "o"), 2, "--ids"),
        (("logits", "{model}", "--ids", "1", "--out", "o", "--role", "system"), 2, "--role"),
        (("logits", "{model}", "--ids", "999", "--out", "o"), 2, "token id 999"),
        (("logits", "{model}", "--ids", "1", "--out", "no/such/folder/o"), 1, "no/such/folder"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else None,
)
def test_a_mistake_is_one_line_and_a_code(
    tiny_llama3: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str | None
) -> None:
    (tmp_path / "empty.gguf").touch()
    (tmp_path / "foreign.gguf").write_bytes(b"PK\x03\x04" * 500)
    (tmp_path / "cut.gguf").write_bytes(tiny_llama3.read_bytes()[:100_000])
    (tmp_path / "folder.gguf").mkdir()
    places = {"model": str(tiny_llama3)} | {
        name: str(tmp_path / f"{name}.gguf") for name in ("empty", "foreign", "cut", "folder")
    }
    run = smepilot(*(argument.format(**places) for argument in arguments))
    assert run.returncode == code
    assert "Traceback" not in run.stderr
    if message is not None:
        assert message in run.stderr
        assert "error: " in run.stderr.splitlines()[-1]


def test_debug_shows_the_traceback() -> None:
    for arguments in (("--debug", "run", "no-such-model", "x"), ("run", "no-such-model", "x", "--debug")):
        run = smepilot(*arguments)
        assert run.returncode == 1
        assert "Traceback" in run.stderr
        assert "NotFoundError" in run.stderr


def test_a_reader_that_leaves_ends_the_command_quietly(tiny_llama3: Path) -> None:
    command = [*COMMAND, "run", str(tiny_llama3), "x", "--temp", "6", "--ignore-eos"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        os.read(child.stdout.fileno(), 1)
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(30) == 141
