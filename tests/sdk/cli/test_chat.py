# SPDX-License-Identifier: Apache-2.0
"""The chat in a real (pseudo-)terminal: turns, commands, several lines, Ctrl-C once and twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.sdk.cli.terminal import Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a POSIX thing")


def test_a_conversation_with_commands(tiny_llama3: Path) -> None:
    with Terminal("run", tiny_llama3, "--max-tokens", "5", "--temp", "0", "--stats") as terminal:
        terminal.line("Hello")
        terminal.expect(r"answer +5 tokens")
        terminal.line("/set max_tokens 2")
        terminal.line("Again")
        terminal.expect(r"answer +2 tokens")
        terminal.line("/show")
        terminal.expect(r"max_tokens +2")
        terminal.expect(r"messages +4")
        terminal.line("/clear")
        terminal.expect("forgotten")
        terminal.line("/set system Be brief.")
        terminal.expect("anew")
        terminal.line("/show")
        terminal.expect(r"max_tokens +2")
        terminal.expect(r"system +Be brief\.")
        terminal.line("/set temperature hot")
        terminal.expect("error: temperature is 'hot'")
        terminal.line("/set logit_bias 5")
        terminal.expect("error: logit_bias is 5")
        terminal.line("/set colour red")
        terminal.expect("no parameter 'colour'")
        terminal.line("/dance")
        terminal.expect("no command /dance")
        terminal.expect("/bye +leave")
        terminal.line("/bye")
        assert terminal.wait() == 0


def test_a_text_of_several_lines(tiny_llama3: Path) -> None:
    with Terminal("run", tiny_llama3, "--max-tokens", "1", "--stats") as terminal:
        terminal.line('"""one')
        terminal.line("two")
        terminal.line('three"""')
        # "<|im_start|>user\n" + text + "<|im_end|>\n<|im_start|>assistant\n", most letters a token each
        several = int(terminal.expect(r"prompt +\d+ tokens").split()[-2])
        terminal.line("/clear")
        terminal.line("x")
        single = int(terminal.expect(r"prompt +\d+ tokens").split()[-2])
        assert 6 <= several - single <= 12
        terminal.line("/bye")
        assert terminal.wait() == 0


def test_control_d_leaves(tiny_llama3: Path) -> None:
    with Terminal("run", tiny_llama3) as terminal:
        terminal.expect(r">>>\s*$")
        terminal.send("\x04")
        assert terminal.wait() == 0


def test_control_c_stops_the_answer_and_twice_leaves(smollm2: Path) -> None:
    with Terminal("run", smollm2, "--ignore-eos", "--temp", "0") as terminal:
        terminal.line("Why is the sky blue?")
        terminal.expect("The sky")
        terminal.interrupt()
        terminal.expect("Ctrl-C again", timeout=5)
        terminal.line("/show")
        terminal.expect(r"messages +2")
        terminal.expect(r">>>\s*$")
        terminal.send("\x03")
        terminal.expect("Ctrl-C again", timeout=5)
        terminal.expect(r">>>\s*$")
        terminal.send("\x03")
        assert terminal.wait() == 130


def test_control_c_stops_a_single_answer(smollm2: Path) -> None:
    with Terminal("run", smollm2, "Tell a long story.", "--ignore-eos", "--temp", "0") as terminal:
        terminal.expect(r"\w+ \w+")
        terminal.interrupt()
        assert terminal.wait(5) == 130
        assert "Traceback" not in terminal.text


def test_options_that_need_a_prompt_say_so(tiny_llama3: Path) -> None:
    with Terminal("run", tiny_llama3, "--json") as terminal:
        assert terminal.wait() == 2
        terminal.expect("error: --json and --raw need a prompt")


def test_tables_are_drawn_in_a_terminal() -> None:
    with Terminal("list", "--all") as terminal:
        assert terminal.wait() == 0
        terminal.expect("NAME")
        assert "\x1b[" in terminal.text
