# SPDX-License-Identifier: Apache-2.0
"""Conversations to text, by the template that the model's file carries.

A file's template is a Jinja program; it runs in the sandbox of sandbox.py, is compiled when the first conversation is
rendered, and may write BOS itself: `Tokenizer.encode` sees to it that BOS is there exactly once, so a rendered prompt
is encoded with the defaults of `encode`.

Without a template in the file the fallback is ChatML where the vocabulary has ``<|im_start|>``, and otherwise plain
roles, which a base model can continue::

    {system}

    User: {question}
    Assistant: {answer}
    User: {question}
    Assistant:
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from smepilot.errors import TemplateError
from smepilot.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from jinja2 import Template

_KEY = "tokenizer.chat_template"
_CODE_NAME = "<template>"  # what jinja calls code that came from a string


class ChatTemplate:
    """Renders messages to the text a model expects.

    Attributes:
        source: the Jinja program; None where the fallback is used.
    """

    def __init__(self, source: str | None, *, bos_token: str, eos_token: str, chatml: bool = False) -> None:
        """Keeps the template; nothing is parsed yet.

        Args:
            source: Jinja program, or None for the fallback.
            bos_token: text of the BOS token, which the template may write.
            eos_token: text of the EOS token.
            chatml: the fallback is ChatML.
        """
        self.source = source
        self._tokens = {"bos_token": bos_token, "eos_token": eos_token}
        self._chatml = chatml
        self._compiled: Template | None = None

    @classmethod
    def from_metadata(cls, meta: Mapping[str, Any], tokenizer: Tokenizer) -> ChatTemplate:
        """The template of a model file, or the fallback that suits its vocabulary."""
        source = meta.get(_KEY)
        if source is not None and not isinstance(source, str):
            raise TemplateError(f"{_KEY} is {type(source).__name__}, not text: correct this key in the file")
        chatml = tokenizer.find("<|im_start|>") is not None
        tokens = {"bos_token": tokenizer.bos_token, "eos_token": tokenizer.eos_token}
        return cls(source or None, **tokens, chatml=chatml)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Any] | None = None,
        **extra: Any,
    ) -> str:
        """The text of a conversation.

        Args:
            messages: as in the OpenAI API: ``role`` and ``content``, where content made of text parts counts as its
                text; other keys reach the template as they are.
            add_generation_prompt: end with the opening of the assistant's next message.
            tools: JSON schemas of functions, for templates that know tools.
            extra: further variables for the template (``enable_thinking`` …).

        Raises:
            TemplateError: the template does not parse, refuses the conversation, fails, or runs beyond its bounds; the
                message names its line.
        """
        plain = [_plain(message) for message in messages]
        if self.source is None:
            fallback = _chatml if self._chatml else _roles
            return "".join(fallback(plain, add_generation_prompt))
        variables = {**self._tokens, "add_generation_prompt": add_generation_prompt, "tools": tools, **extra}
        return self._run(self.source, {**variables, "messages": plain})

    def _run(self, source: str, variables: dict[str, Any]) -> str:
        from smepilot.text import budget

        try:
            if self._compiled is None:
                self._compiled = _compile(source)
            with budget.running():
                return budget.gather(self._compiled.generate(variables))
        except Exception as error:  # whatever a foreign program runs into
            raise TemplateError(_explain(error)) from error


def _compile(source: str) -> Template:
    from smepilot.text.sandbox import TemplateEnvironment

    return TemplateEnvironment().from_string(source)


def _explain(error: Exception) -> str:
    """One line that says where in the template it went wrong, and what."""
    line = getattr(error, "lineno", None)
    if line is None:
        lines = [at for frame, at in walk_tb(error.__traceback__) if frame.f_code.co_filename == _CODE_NAME]
        line = lines[-1] if lines else None
    what = str(error) or type(error).__name__
    if isinstance(error, RecursionError):
        what = "it calls itself for ever"
    place = f"chat template, line {line}" if line is not None else "chat template"
    return f"{place}: {' '.join(what.split())}"


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as a dictionary; a list of text parts becomes one text."""
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(part, Mapping) and part.get("type") == "text" for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
        return {**message, "content": content}
    return dict(message)


def _chatml(messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool) -> Iterator[str]:
    for message in messages:
        yield f"<|im_start|>{message.get('role')}\n{message.get('content') or ''}<|im_end|>\n"
    if add_generation_prompt:
        yield "<|im_start|>assistant\n"


def _roles(messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool) -> Iterator[str]:
    for message in messages:
        role, content = str(message.get("role")), message.get("content") or ""
        yield f"{content}\n\n" if role == "system" else f"{role.capitalize()}: {content}\n"
    if add_generation_prompt:
        yield "Assistant:"
