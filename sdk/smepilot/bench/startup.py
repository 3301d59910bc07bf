# SPDX-License-Identifier: Apache-2.0
"""From the start of a process to the first word of its answer, as a user of either Python package would write it.

The clock starts before the interpreter is launched and stops at the first line on its standard output. Files are in
the page cache and our packed weights on disk: run once before timing.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from smepilot.errors import RuntimeFault
from smepilot.types import PromptClassChoice

# 32 tokens for SmolLM2's tokenizer.
PROMPT = (
    "The sun had set behind the hills, and the last boats were coming home across the bay. "
    "On the pier an old man was waiting for his son to return"
)
CONTEXT = 2048

_OURS = """
import json, sys
import smepilot
setting = json.loads(sys.argv[3])
engine = smepilot.Engine.open(sys.argv[1], **setting)
for chunk in engine.stream(sys.argv[2], max_tokens=1, temperature=0.0, ignore_eos=True):
    print(chunk.text, flush=True)
print(flush=True)  # a token without text was generated as well
"""

_LLAMA = """
import json, sys
import llama_cpp
setting = json.loads(sys.argv[3])
engine = llama_cpp.Llama(sys.argv[1], verbose=False, **setting)
for chunk in engine.create_completion(sys.argv[2], max_tokens=1, temperature=0.0, stream=True):
    print(chunk["choices"][0]["text"], flush=True)
print(flush=True)
"""


def first_token(python: str, program: str, model: Path, setting: dict[str, Any]) -> float:
    """Seconds from launching `program` to its first line.

    Raises:
        RuntimeFault: The program ended without printing.
    """
    command = [python, "-c", program, str(model), PROMPT, json.dumps(setting)]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - start
        process.stdout.read()
    if not line:
        raise RuntimeFault(f"{model.name}: {Path(python).name} ended with status {process.returncode} before a token")
    return seconds


def ours(python: str, model: Path, prompt_class: PromptClassChoice = "auto") -> float:
    """Seconds to our first token, with our defaults."""
    return first_token(python, _OURS, model, {"ctx": CONTEXT, "prompt_class": prompt_class})


def llama(python: str, model: Path, setting: dict[str, Any]) -> float:
    """Seconds to llama-cpp-python's first token; `setting` holds threads and flash."""
    threads = setting["threads"]
    keywords = {"n_ctx": CONTEXT, "n_threads": threads, "n_threads_batch": threads, "flash_attn": setting["flash"]}
    return first_token(python, _LLAMA, model, keywords)
