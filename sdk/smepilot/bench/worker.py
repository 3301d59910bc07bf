# SPDX-License-Identifier: Apache-2.0
"""The benchmark's end of the pipe: an engine in a process of its own (see serve.py for the protocol).

Calls are strictly one after the other, so only one worker is ever busy; an idle one waits in a read.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from smepilot.errors import RuntimeFault

_SERVE = Path(__file__).with_name("serve.py")
_TAIL = 2000  # characters of a dead worker's standard error that an error message quotes


class Worker:
    """A process that serves the `Subject` of one file."""

    def __init__(self, subject: Path, *, python: str | None = None) -> None:
        """Starts the process.

        Args:
            subject: File that defines the `Subject` class.
            python: Interpreter to run it; None for this one.
        """
        self.subject = subject
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        command = [python or sys.executable, str(_SERVE), str(subject)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, encoding="utf-8"
            )
        except OSError as error:
            self._log.close()
            raise RuntimeFault(
                f"{command[0]}: cannot be started ({error.strerror}); name a Python interpreter"
            ) from None

    def about(self) -> dict[str, Any]:
        """The engine's name, version and features."""
        return dict(self._request("about"))

    def open(self, *, model: str) -> dict[str, Any]:
        """Loads a model file."""
        return dict(self._request("open", model=model))

    def prepare(self, **case: Any) -> None:
        """Readies a case; the arguments are those of every subject's `prepare`."""
        self._request("prepare", **case)

    def measure(self, *, limit: float = 1e9) -> dict[str, float]:
        """Times the prepared case once: tokens and seconds."""
        return dict(self._request("measure", limit=limit))

    def ran(self) -> str:
        """The precision class of the latest sample; ours alone can say."""
        return str(self._request("ran"))

    def peak_memory(self) -> int:
        """Largest resident set of the process so far, bytes."""
        return int(self._request("peak_memory"))

    def quantise(self, *, source: Path, target: Path, kind: str) -> None:
        """Has llama.cpp write `source` in another quantisation."""
        self._request("quantise", source=str(source), target=str(target), kind=kind)

    def _request(self, call: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"call": call, "with": arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeFault(f"{self.subject.name} died during {call}: {self._last_words()}")
        reply = json.loads(line)
        if "error" in reply:
            raise RuntimeFault(f"{self.subject.name} failed in {call}: {reply['error']}")
        return reply["result"]

    def _last_words(self) -> str:
        status = self._process.wait()
        self._log.seek(0)
        text = self._log.read().decode(errors="replace").strip()
        return f"exit status {status}, {text[-_TAIL:].splitlines()[-1] if text else 'nothing on standard error'}"

    def close(self) -> None:
        """Ends the process; closing twice is allowed."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()  # end of requests
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Worker:
        """The worker itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes."""
        self.close()
