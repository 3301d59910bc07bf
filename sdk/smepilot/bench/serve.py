# SPDX-License-Identifier: Apache-2.0
"""Serves one engine to the benchmark over pipes: `python serve.py FILE`.

FILE defines a class `Subject`; each request line `{"call": name, "with": {...}}` on standard input calls that method,
and one line `{"result": ...}` or `{"error": text}` answers it. Engines run in processes of their own so that neither
sees the other's threads, memory or caches, and so that one interpreter may carry a package that the other lacks:
therefore this file and the peers' use the standard library alone and are started by path, not imported.

The real standard output is kept for answers; whatever the engine prints goes to standard error.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any, TextIO


def load(path: str) -> Any:
    """Makes the `Subject` that the file at `path` defines."""
    spec = importlib.util.spec_from_file_location("bench_subject", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.Subject()


def answer(subject: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Calls one method and wraps what it returns, or the error it raised."""
    try:
        return {"result": getattr(subject, request["call"])(**request["with"])}
    except Exception as error:  # an engine's failure is an answer, not the end of the process
        return {"error": f"{type(error).__name__}: {error}"}


def serve(subject: Any, requests: TextIO, answers: TextIO) -> None:
    """Answers until the requests end."""
    for line in requests:
        answers.write(json.dumps(answer(subject, json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    """Starts serving the file named on the command line."""
    sys.path.pop(0)  # this folder: its modules must not shadow what the engine imports
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(load(sys.argv[1]), sys.stdin, answers)


if __name__ == "__main__":
    main()
