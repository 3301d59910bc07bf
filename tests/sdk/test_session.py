# SPDX-License-Identifier: Apache-2.0
"""Conversations: only new tokens are processed, and what is kept never changes what is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import smepilot as sp

VARIED: Any = {"temperature": 6.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 4}


@pytest.fixture(scope="module")
def engine(tiny_llama3: Path) -> Iterator[sp.Engine]:
    with sp.Engine.open(tiny_llama3, threads=1, ctx=1024) as engine:
        yield engine


def chatml(*turns: tuple[str, str]) -> str:
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns) + "<|im_start|>assistant\n"


def test_a_turn_processes_only_what_is_new(engine: sp.Engine) -> None:
    with engine.session("Be brief.", **VARIED) as chat:
        first = chat.send("Hello", max_tokens=20)
        second = chat.send("And now?", max_tokens=20)
    assert first.usage.cached_tokens == 0
    assert first.usage.prompt_tokens == len(engine.tokenize(chatml(("system", "Be brief."), ("user", "Hello"))))
    # All but the last token drawn, which was never computed.
    assert second.usage.cached_tokens == first.usage.prompt_tokens + 19
    assert [message["role"] for message in chat.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert chat.last == second
    assert chat.messages[2]["content"] == first.text


def test_what_was_generated_stays_the_tokens_it_was(engine: sp.Engine) -> None:
    with engine.session(**VARIED) as chat:
        first = chat.send("Hello", max_tokens=20)
        tokens = engine.tokenize(chatml(("user", "Hello"))) + list(first.tokens)
        tokens += engine.tokenize("<|im_end|>\n" + chatml(("user", "Go on")), add_special=False)
        second = chat.send("Go on", max_tokens=20)
    assert second.usage.prompt_tokens == len(tokens)
    assert second.tokens == engine.complete(tokens, max_tokens=20, **VARIED).tokens


def test_a_conversation_whose_pages_were_taken_says_the_same(tiny_llama3: Path) -> None:
    texts = []
    for disturb in (False, True):
        with sp.Engine.open(tiny_llama3, threads=1, ctx=512, pages=8) as engine, engine.session(**VARIED) as chat:
            chat.send("Hello", max_tokens=60)
            if disturb:
                engine.complete([3] * 500, max_tokens=1)
            texts.append(chat.send("Go on", max_tokens=60).text)
            assert chat.last is not None
            assert (chat.last.usage.cached_tokens == 0) == disturb
    assert texts[0] == texts[1]


def test_a_stop_string_leaves_a_sound_history(engine: sp.Engine) -> None:
    with engine.session(**VARIED) as chat:
        free = chat.send("Hello", max_tokens=60).text
        at = next(i for i in range(6, len(free)) if "\ufffd" not in free[i : i + 3])
        chat.reset()
        cut = chat.send("Hello", max_tokens=60, stop=free[at : at + 3])
        assert cut.finish_reason == "stop"
        assert chat.messages[-1]["content"] == cut.text
        assert free.startswith(cut.text)
        rest = chat.send("Go on", max_tokens=10)
        history = chatml(("user", "Hello"), ("assistant", cut.text), ("user", "Go on"))
        prompt = chat._tokens[: rest.usage.prompt_tokens]
        assert engine.detokenize(prompt, skip_special=False) == history


def test_a_template_that_changes_the_past_keeps_the_common_prefix(engine: sp.Engine, monkeypatch: Any) -> None:
    def trimmed(messages: Any) -> str:
        return chatml(*((m["role"], f"{m['role']}: {m['content']}") for m in messages))

    monkeypatch.setattr(engine._prompter, "render", trimmed)
    with engine.session(**VARIED) as chat:
        first = chat.send("Hello", max_tokens=10)
        second = chat.send("Go on", max_tokens=10)
        expected = engine.complete(trimmed(chat.messages[:-1]), max_tokens=10, **VARIED)
    assert second.usage.cached_tokens == first.usage.prompt_tokens
    assert second.tokens == expected.tokens


def test_a_full_context_says_both_numbers_and_leaves_the_session_usable(tiny_llama3: Path) -> None:
    with sp.Engine.open(tiny_llama3, threads=1, ctx=128) as engine, engine.session(**VARIED) as chat:
        chat.send("Hello", max_tokens=20)
        before = list(chat.messages)
        with pytest.raises(sp.ContextLengthError, match=r"has \d+ tokens.*holds 128"):
            chat.send("x" * 200)
        assert chat.messages == before
        assert chat.send("Go on", max_tokens=3).usage.cached_tokens > 0
        filled = chat.send("On", ignore_eos=True)
        assert filled.finish_reason == "length"
        with pytest.raises(sp.ContextLengthError):
            chat.send("And?")
        chat.reset()
        assert chat.send("Hello", max_tokens=3).usage.completion_tokens == 3


def test_a_cancelled_answer_is_history_if_anything_was_said(engine: sp.Engine) -> None:
    with engine.session(**VARIED, ignore_eos=True) as chat:
        stream = chat.stream("Hello")
        next(stream)
        stream.cancel()
        partial = stream.result()
        assert partial.finish_reason == "cancelled"
        assert chat.messages[-1]["content"] == partial.text
        assert chat.send("Go on", max_tokens=3).finish_reason == "length"
        count = len(chat.messages)
        chat.stream("Too early").close()
        assert len(chat.messages) in (count, count + 2)


def test_a_second_turn_at_once_is_refused(engine: sp.Engine) -> None:
    with engine.session(**VARIED, ignore_eos=True) as chat:
        with chat.stream("Hello") as stream:
            next(stream)
            with pytest.raises(sp.RequestError, match="already"):
                chat.send("Me too")
        assert chat.send("Now", max_tokens=2).usage.completion_tokens == 2


def test_a_refused_turn_does_not_block_the_session(engine: sp.Engine) -> None:
    with engine.session(**VARIED) as chat:
        with pytest.raises(sp.InvalidParameterError):
            chat.send("Hello", top_p=7)
        with pytest.raises(TypeError):
            chat.send("Hello", toppp=7)  # type: ignore[call-arg]
        assert chat.send("Hello", max_tokens=2).usage.completion_tokens == 2


def test_sessions_side_by_side(engine: sp.Engine) -> None:
    def talk(number: int) -> list[str]:
        with engine.session(f"You are number {number}.", **VARIED) as chat:
            return [chat.send(text, max_tokens=15).text for text in ("Hello", "Go on", "And?")]

    alone = [talk(number) for number in range(4)]
    together: dict[int, list[str]] = {}
    threads = [threading.Thread(target=lambda n=n: together.update({n: talk(n)})) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [together[number] for number in range(4)] == alone


def test_closing_gives_the_pages_back(engine: sp.Engine) -> None:
    chat = engine.session(**VARIED, ignore_eos=True)
    chat.send("Hello", max_tokens=3)
    stream = chat.stream("Go on")
    next(stream)
    chat.close()
    chat.close()
    assert stream.result().finish_reason == "cancelled"
    engine.complete("x", max_tokens=1)
    assert chat._sequence.pages == 0
    with pytest.raises(sp.ClosedError, match="session is closed"):
        chat.send("Hello")
