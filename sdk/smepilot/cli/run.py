# SPDX-License-Identifier: Apache-2.0
"""`smepilot run`: one answer for a prompt or for what is piped in, else a chat."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from smepilot.cli.options import add_engine_options, add_sampling_options, open_engine, sampling

if TYPE_CHECKING:
    from smepilot.engine import Engine
    from smepilot.stream import Stream

EXAMPLES = """\
  smepilot run smollm2:135m                                chat; /help lists commands
  smepilot run smollm2:135m "Why is the sky blue?"         one answer
  cat mail.txt | smepilot run smollm2:135m                 the prompt from a pipe
  smepilot run model.gguf --raw "Once upon a" --temp 0     continue a text, no chat template
  smepilot run smollm2:135m "Hi" --json                    answer and usage as JSON"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares arguments and options."""
    add_engine_options(parser)
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help="what to say; `-` reads standard input")
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    parser.add_argument("--raw", action="store_true", help="continue the prompt as it is, without the chat template")
    parser.add_argument("--json", action="store_true", help="print one JSON document when the answer has ended")
    parser.add_argument("--stats", action="store_true", help="print usage and executed kernels to standard error")
    add_sampling_options(parser)


def run(args: argparse.Namespace) -> int:
    """Answers, or chats when there is a terminal and no prompt."""
    from smepilot.errors import InvalidParameterError
    from smepilot.types import GenerateParams

    GenerateParams(**sampling(args))  # a wrong value is an error before the model is opened
    if args.prompt and args.prompt != ["-"]:
        prompt = " ".join(args.prompt)
    elif args.prompt or not sys.stdin.isatty():
        prompt = sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
    elif args.json or args.raw:
        raise InvalidParameterError("--json and --raw need a prompt")
    else:
        from smepilot.cli.chat import chat

        with open_engine(args) as engine:
            return chat(engine, args.system, sampling(args), stats=args.stats)
    if not prompt:
        raise InvalidParameterError("the prompt is empty; give some text")
    with open_engine(args) as engine:
        return _answer(engine, args, prompt)


def _answer(engine: Engine, args: argparse.Namespace, prompt: str) -> int:
    with _start(engine, args, prompt) as stream:
        if args.json:
            stream.result()
        else:
            write(stream)
    completion = stream.completion
    assert completion is not None
    if args.json:
        from smepilot.cli.render import print_json

        print_json(
            {"model": engine.name, "prompt_class": engine.prompt_class}
            | completion.as_dict()
            | {"kernels": engine.kernel_counts()}
        )
    elif args.stats:
        print_stats(engine, stream)
    return 0


def _start(engine: Engine, args: argparse.Namespace, prompt: str) -> Stream:
    options = sampling(args)
    if args.raw:
        return engine.stream(prompt, **options)
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    if args.system is not None:
        messages.insert(0, {"role": "system", "content": args.system})
    return engine.stream(messages=messages, **options)


def write(stream: Stream) -> None:
    """Writes an answer to standard output as it comes, and ends the line."""
    try:
        for chunk in stream:
            sys.stdout.write(chunk.text)
            sys.stdout.flush()
    finally:
        stream.close()
        sys.stdout.write("\n")
        sys.stdout.flush()


def print_stats(engine: Engine, stream: Stream) -> None:
    """Usage of an answer and the kernels executed so far, on standard error."""
    from smepilot.cli.render import facts, usage_facts

    completion = stream.completion
    if completion is not None:
        counts = {name: str(count) for name, count in engine.kernel_counts().items()}
        print(file=sys.stderr)
        facts(
            usage_facts(completion.usage) | {"prompts": engine.prompt_class, "seed": str(completion.seed)}, sys.stderr
        )
        print("kernels executed", file=sys.stderr)
        facts(counts, sys.stderr)
