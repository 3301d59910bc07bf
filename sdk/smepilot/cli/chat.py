# SPDX-License-Identifier: Apache-2.0
"""The chat of `smepilot run`: a line in, a streamed answer out, and commands that begin with a slash.

Ctrl-C ends the answer that is being written; a second one in a row leaves. So does Ctrl-D at the prompt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smepilot.cli.run import print_stats, write
from smepilot.errors import SmePilotError

if TYPE_CHECKING:
    from smepilot.engine import Engine
    from smepilot.session import Session
    from smepilot.types import Sampling

HELP = '''\
  /set NAME VALUE   change temperature, top_k, top_p, min_p, max_tokens, seed, stop, ... or system
  /show             the model, the parameters and the system prompt
  /clear            forget the conversation
  /bye              leave
  """               begin and end a text of several lines
  Ctrl-C            stop the answer; twice: leave'''

FENCE = '"""'
INTERRUPTED = 130


class Chat:
    """One interactive conversation."""

    def __init__(self, engine: Engine, system: str | None, sampling: Sampling, *, stats: bool) -> None:
        self._engine = engine
        self._system = system
        self._stats = stats
        self._session: Session = engine.session(system, **sampling)
        self._read = line_reader()

    def run(self) -> int:
        """Talks until the user leaves; returns the exit code."""
        interrupts = 0
        while interrupts < 2:
            try:
                text = self._input()
                interrupts = 0
                if text.startswith("/"):
                    if not self._command(text):
                        return 0
                elif text.strip():
                    self._say(text)
            except EOFError:
                print()
                return 0
            except SmePilotError as error:
                print(f"error: {error}", file=sys.stderr)
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts == 1:
                    print("(Ctrl-C again or /bye leaves)", file=sys.stderr)
        return INTERRUPTED

    def _input(self) -> str:
        """The next line, or the lines between two fences."""
        line = self._read(">>> ")
        if not line.startswith(FENCE):
            return line
        lines = [line.removeprefix(FENCE)]
        while not lines[-1].rstrip().endswith(FENCE):
            lines.append(self._read("... "))
        lines[-1] = lines[-1].rstrip().removesuffix(FENCE)
        return "\n".join(lines).strip("\n")

    def _say(self, text: str) -> None:
        stream = self._session.stream(text)
        write(stream)
        if self._stats:
            print_stats(self._engine, stream)

    def _command(self, line: str) -> bool:
        """Carries out a command; False: leave."""
        name, _, rest = line[1:].strip().partition(" ")
        if name in ("bye", "exit", "quit"):
            return False
        if name == "clear":
            self._session.reset()
            print("the conversation is forgotten")
        elif name == "set":
            self._set(*rest.strip().partition(" ")[::2])
        elif name == "show":
            self._show()
        else:
            if name not in ("help", "?", ""):
                print(f"no command /{name}")
            print(HELP)
        return True

    def _set(self, name: str, value: str) -> None:
        if name == "system":
            params = self._session.params
            self._session.close()
            self._system = value.strip() or None
            self._session = self._engine.session(self._system)
            self._session.params = params
            print("the conversation begins anew")
        elif hasattr(self._session.params, name):
            change: Any = {name: _parsed(value.strip())}
            self._session.params = self._session.params.with_changes(change)
        else:
            print(f"no parameter {name!r}; /show lists them")

    def _show(self) -> None:
        from dataclasses import asdict

        from smepilot.cli.render import facts, plain

        engine = self._engine
        about = {
            "model": engine.name,
            "context": f"{engine.context_length} tokens",
            "prompts": engine.prompt_class,
        }
        talk = {"system": self._system, "messages": len(self._session.messages)}
        facts(about | {name: plain(value) for name, value in (asdict(self._session.params) | talk).items()})


def _parsed(text: str) -> int | float | str | bool | None:
    """A parameter's value as typed."""
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def line_reader() -> Callable[[str], str]:
    """A function that reads a line with editing and a history that outlives the program where it can be kept."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory

    from smepilot.paths import home

    history: History = InMemoryHistory()
    try:
        home().mkdir(parents=True, exist_ok=True)
        with (home() / "history").open("a"):
            history = FileHistory(home() / "history")
    except OSError:  # a read-only home: chat without
        pass
    session: PromptSession[str] = PromptSession(history=history)
    return session.prompt


def chat(engine: Engine, system: str | None, sampling: Sampling, *, stats: bool) -> int:
    """Chats on the terminal until the user leaves; returns the exit code."""
    print(f"{engine.name}, context {engine.context_length} tokens; /help lists commands, /bye leaves")
    return Chat(engine, system, sampling, stats=stats).run()
