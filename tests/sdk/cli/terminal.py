# SPDX-License-Identifier: Apache-2.0
"""Runs the command line: as a child process with pipes, or in a pseudo-terminal that a test talks to."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

COMMAND = [sys.executable, "-m", "smepilot"]
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07|[=>])")


def smepilot(
    *arguments: str | Path, stdin: str | bytes | None = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `smepilot ARGUMENTS` with pipes; returns what it wrote and its exit code."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=data,
        capture_output=True,
        env=os.environ | (environment or {}),
        timeout=120,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class Terminal:
    """`smepilot ARGUMENTS` in a pseudo-terminal: its standard input, output and error."""

    def __init__(self, *arguments: str | Path) -> None:
        self._master, child = os.openpty()
        environment = os.environ | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "100"}
        command = [*COMMAND, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True
        )
        os.close(child)
        self.text = ""
        self._seen = 0

    def expect(self, pattern: str, timeout: float = 60) -> str:
        """Waits until the output since the last match has `pattern`; returns the output up to its end."""
        deadline = time.monotonic() + timeout
        while True:
            plain = ESCAPES.sub("", self.text)
            found = re.compile(pattern).search(plain, self._seen)
            if found:
                before = plain[self._seen : found.end()]
                self._seen = found.end()
                return before
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} did not come; the terminal shows {plain[-500:]!r}"
            if select.select([self._master], [], [], left)[0]:
                self.text += self._read()

    def _read(self) -> str:
        try:
            return os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:  # the child has ended
            time.sleep(0.01)
            return ""

    def send(self, text: str) -> None:
        """Types `text`."""
        os.write(self._master, text.encode())

    def line(self, text: str) -> None:
        """Types a line at the prompt."""
        self.expect(r"(>>>|\.\.\.)\s*$")
        self.send(text + "\r")

    def interrupt(self) -> None:
        """Sends SIGINT, as Ctrl-C does while the terminal is not being read."""
        self.process.send_signal(2)

    def wait(self, timeout: float = 30) -> int:
        """Waits for the end; returns the exit code."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self._master], [], [], 0.05)[0]:
                self.text += self._read()
        return self.process.wait(1)

    def __enter__(self) -> Self:
        """The terminal itself."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Ends the child."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)
