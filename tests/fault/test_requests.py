# SPDX-License-Identifier: Apache-2.0
"""What happens to requests when things end badly: interpreters that leave, forks, signals, models that go wrong.

Each case runs in a process of its own, so that a crash or a hang is a failed test and not the end of the run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import smepilot as sp

OPEN = "import sys, os, threading, time, smepilot as sp; engine = sp.Engine.open(sys.argv[1], threads=2)\n"
FOREVER = "ignore_eos=True, temperature=6"


def program(model: Path, text: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a Python program that has an engine open; a hang is a failure."""
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", OPEN + text, str(model)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "sys.exit(0)",
        "engine.close()",
        "del engine, stream",
        "stream.close(); del engine",
        "next(stream)",
        "threading.Thread(target=lambda: list(stream), daemon=True).start(); time.sleep(0.05)",
        "threading.Thread(target=engine.complete, args=('x',), kwargs={'max_tokens': 50}).start()",
        "engine.cancel()",
        "import gc; engine.me = engine; stream.me = engine; del engine, stream; gc.collect()",
    ],
)
def test_an_interpreter_that_leaves_in_the_middle_ends_at_once(smollm2: Path, ending: str) -> None:
    text = f"stream = engine.stream('Once', {FOREVER})\nnext(stream)\n{ending}\n"
    began = time.perf_counter()
    done = program(smollm2, text)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    assert time.perf_counter() - began < 30


def test_an_interpreter_that_leaves_in_a_long_prefill(smollm2: Path) -> None:
    done = program(smollm2, "stream = engine.stream([5] * 6000, max_tokens=1); time.sleep(0.1)")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_error_of_the_caller_does_not_hang_the_exit(smollm2: Path) -> None:
    done = program(smollm2, f"for chunk in engine.stream('Once', {FOREVER}): raise SystemExit(7)")
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is a POSIX call")
def test_a_fork_gets_an_error_and_may_open_an_engine_of_its_own(tiny_llama3: Path) -> None:
    text = f"""
stream = engine.stream('Once', {FOREVER})
next(stream)
child = os.fork()
if child == 0:
    for use in (lambda: next(stream), lambda: engine.complete('x'), lambda: engine.logits([1]), stream.cancel,
                stream.close, engine.cancel, engine.close):
        try:
            use()
        except sp.ClosedError as error:
            assert 'fork' in str(error)
    with sp.Engine.open(sys.argv[1], threads=2) as own:
        print(len(own.complete('x', max_tokens=5, ignore_eos=True).tokens), flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
stream.close()
print(len(engine.complete('x', max_tokens=4, ignore_eos=True).tokens))
"""
    done = program(tiny_llama3, text)
    assert (done.stderr, done.stdout, done.returncode) == ("", "5\n4\n", 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a POSIX thing")
@pytest.mark.parametrize(
    "text",
    [
        f"print('now', flush=True)\nfor chunk in engine.stream('Once', {FOREVER}): pass",
        f"print('now', flush=True)\nengine.complete('Once', {FOREVER})",
        "print('now', flush=True)\nengine.complete([5] * 8000, max_tokens=1)",
        "print('now', flush=True)\nengine.logits([5] * 4000)",
        "print('now', flush=True)\nengine.perplexity([5] * 20000)",
    ],
)
def test_control_c_reaches_whoever_waits(smollm2: Path, text: str) -> None:
    after = "\nexcept KeyboardInterrupt:\n    print(len(engine.complete('x', max_tokens=3, ignore_eos=True).tokens))"
    body = "try:\n    " + text.replace("\n", "\n    ") + after
    command = [sys.executable, "-c", OPEN + body, str(smollm2)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "now\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
    assert (out, err, child.returncode) == ("3\n", "", 0)


def test_a_model_that_computes_nan_is_reported(tiny_llama3: Path, tmp_path: Path) -> None:
    """NaN in one row of the embedding: requests with that token fail, others do not notice."""
    path = tmp_path / "nan.gguf"
    content = bytearray(tiny_llama3.read_bytes())
    from smepilot.weights.gguf import open_gguf

    with open_gguf(tiny_llama3) as source:
        info = source.tensors["token_embd.weight"]
    row = info.offset + 77 * info.shape[1] * 4
    content[row : row + 4] = np.float32(np.nan).tobytes()
    path.write_bytes(content)
    with sp.Engine.open(path, threads=2, ctx=256) as engine:
        # The embedding is also the output matrix, so that token's logit is NaN for everybody.
        with pytest.raises(sp.NumericError, match="logits"):
            engine.complete("hello", max_tokens=3)
        with engine.session() as chat:
            for _ in range(2):
                with pytest.raises(sp.NumericError):
                    chat.send("hello")
                assert chat.messages == []
        assert np.isnan(engine.logits([1, 2])[:, 77]).all()
        assert engine._runner.kv.free == engine._runner.kv.total


def test_many_requests_cancelled_at_random_leave_nothing_behind(tiny_llama3: Path) -> None:
    random = np.random.default_rng(5)
    with sp.Engine.open(tiny_llama3, threads=2, ctx=512, pages=24, max_batch=64) as engine:
        expected = engine.complete("steady", max_tokens=300, seed=1, temperature=6, ignore_eos=True).tokens
        steady = engine.stream("steady", max_tokens=300, seed=1, temperature=6, ignore_eos=True)
        for _ in range(60):
            stream = engine.stream([7] * int(random.integers(1, 400)), ignore_eos=True)
            time.sleep(float(random.random()) * 0.004)
            (stream.cancel if random.random() < 0.5 else stream.close)()
        assert steady.result().tokens == expected
        engine.complete("x", max_tokens=1)
        assert engine._runner.kv.free == engine._runner.kv.total
