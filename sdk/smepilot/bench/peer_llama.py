# SPDX-License-Identifier: Apache-2.0
"""llama.cpp as a benchmark subject, through llama-cpp-python's low-level calls (served by serve.py).

The model is loaded once; a context is made anew only when a setting needs it, because making one costs as much as a
prompt. Batches are filled before the clock starts, logits are made where llama-bench makes them (the last token of
a prompt, every generated token) and left where llama.cpp put them: no copy and no sampling are charged.

Runs under any interpreter that has llama-cpp-python; needs nothing of ours.
"""

from __future__ import annotations

import ctypes
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

import llama_cpp as llama  # type: ignore[import-not-found,unused-ignore]

FTYPE = {"f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "bf16": 32}  # llama_ftype of a whole file
_ROUND = 256  # llama.cpp rounds contexts up to this


def _log(level: int, text: bytes, data: Any) -> None:
    if level == 4:  # errors; the rest would drown them
        sys.stderr.write(text.decode(errors="replace"))


_log_callback = llama.llama_log_callback(_log)  # kept: the library holds no reference


def peak_memory() -> int:
    """Largest resident set of this process so far, bytes.

    Linux carries `ru_maxrss` over from the parent that started the process; VmHWM starts with the program.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text().splitlines() if row.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Subject:
    """One model in llama.cpp and at most one context of it."""

    def __init__(self) -> None:
        """Loads the library, no model."""
        llama.llama_log_set(_log_callback, ctypes.c_void_p(0))
        llama.llama_backend_init()
        self._model: Any = None
        self._context: Any = None
        self._setting: dict[str, Any] = {}
        self._batches: list[Any] = []
        self._tokens: list[int] = []
        self._case: tuple[str, int, int, int] = ("", 0, 0, 0)

    def about(self) -> dict[str, Any]:
        """Name, version and what the build can do."""
        features = llama.llama_print_system_info().decode().strip()
        return {"engine": "llama.cpp", "version": f"llama-cpp-python {llama.__version__}", "features": features}

    def open(self, model: str) -> dict[str, Any]:
        """Maps a GGUF file."""
        self._model = llama.llama_model_load_from_file(model.encode(), llama.llama_model_default_params())
        if not self._model:
            raise RuntimeError(f"llama.cpp cannot load {model}")
        vocabulary = llama.llama_model_get_vocab(self._model)
        return {"vocabulary": llama.llama_vocab_n_tokens(vocabulary)}

    def _configure(self, context: int, sequences: int, setting: dict[str, Any]) -> None:
        wanted = {**setting, "context": context, "sequences": sequences}
        wanted.pop("threads")
        if wanted != self._setting:
            self._release()
            parameters = llama.llama_context_default_params()
            parameters.n_ctx = context * sequences
            parameters.n_batch = parameters.n_ubatch = max(wanted["batch"], sequences)
            parameters.n_seq_max = sequences
            parameters.kv_unified = wanted["unified"]
            parameters.flash_attn_type = int(wanted["flash"])
            parameters.no_perf = True
            self._context = llama.llama_init_from_model(self._model, parameters)
            if not self._context:
                raise RuntimeError(f"llama.cpp cannot make a context of {context} x {sequences} positions")
            self._setting = wanted
        llama.llama_set_n_threads(self._context, setting["threads"], setting["threads"])

    def prepare(self, phase: str, tokens: int, depth: int, sequences: int, seed: int, setting: dict[str, Any]) -> None:
        """Fills the cache to `depth` and warms up; `measure` may then be called any number of times.

        Args:
            phase: "pp" or "tg".
            tokens: Prompt length or steps.
            depth: Positions filled beforehand, per sequence.
            sequences: Sequences in one step.
            seed: Of the random tokens.
            setting: threads; flash (attention); batch (tokens per batch and micro-batch); unified (one cache for all
                sequences).
        """
        self._configure(-(-(depth + tokens) // _ROUND) * _ROUND, sequences, setting)
        self._case = (phase, tokens, depth, sequences)
        size = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self._model))
        self._tokens = random.Random(seed).choices(range(size), k=depth + tokens)
        llama.llama_memory_clear(llama.llama_get_memory(self._context), False)
        for sequence in range(sequences):
            self._batches = self._chunks([(sequence, at, False) for at in range(depth)])
            self._decode()
        if phase == "pp":
            end = depth + tokens
            slots = [(s, at, at == end - 1) for s in range(sequences) for at in range(depth, end)]
        else:
            slots = [(s, depth, True) for s in range(sequences)]
        self._batches = self._chunks(slots)
        self.measure(limit=1.0)

    def _chunks(self, slots: list[tuple[int, int, bool]]) -> list[Any]:
        """Filled batches of (sequence, position, logits wanted)."""
        for batch in self._batches:
            llama.llama_batch_free(batch)
        size = max(self._setting["batch"], self._setting["sequences"])
        batches = []
        for start in range(0, len(slots), size):
            part = slots[start : start + size]
            batch = llama.llama_batch_init(len(part), 0, 1)
            batch.n_tokens = len(part)
            for i, (sequence, position, logits) in enumerate(part):
                batch.token[i] = self._tokens[position]
                batch.pos[i] = position
                batch.n_seq_id[i] = 1
                batch.seq_id[i][0] = sequence
                batch.logits[i] = logits
            batches.append(batch)
        return batches

    def _decode(self) -> None:
        for batch in self._batches:
            status = llama.llama_decode(self._context, batch)
            if status != 0:
                raise RuntimeError(f"llama_decode returned {status}")
        llama.llama_synchronize(self._context)

    def measure(self, limit: float = 1e9) -> dict[str, float]:
        """Times the prepared case once.

        Args:
            limit: Seconds after which generation stops early (a prompt is always finished).

        Returns:
            tokens processed, over all sequences, and seconds.
        """
        phase, tokens, depth, sequences = self._case
        memory = llama.llama_get_memory(self._context)
        for sequence in range(sequences):
            llama.llama_memory_seq_rm(memory, sequence, depth, -1)
        if phase == "pp":
            start = time.perf_counter()
            self._decode()
            return {"tokens": tokens * sequences, "seconds": time.perf_counter() - start}
        batch = self._batches[0]
        done, start, elapsed = 0, time.perf_counter(), 0.0
        while done < tokens and elapsed < limit:
            position = depth + done
            for i in range(sequences):
                batch.token[i] = self._tokens[position]
                batch.pos[i] = position
            self._decode()
            done += 1
            elapsed = time.perf_counter() - start
        return {"tokens": done * sequences, "seconds": elapsed}

    def peak_memory(self) -> int:
        """Largest resident set of this process so far, bytes."""
        return peak_memory()

    def quantise(self, source: str, target: str, kind: str) -> None:
        """Writes `source` in another quantisation, from whatever it has now."""
        parameters = llama.llama_model_quantize_default_params()
        parameters.ftype = FTYPE[kind]
        parameters.allow_requantize = True
        if llama.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(parameters)) != 0:
            raise RuntimeError(f"llama.cpp cannot requantise {source} as {kind}")

    def _release(self) -> None:
        if self._context:
            llama.llama_free(self._context)
            self._context, self._setting = None, {}
