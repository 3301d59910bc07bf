# SPDX-License-Identifier: Apache-2.0
"""Chat templates: those of some seventy models, what they use of Jinja, and what happens where there is none."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import jinja2
import pytest
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from smepilot.errors import TemplateError
from smepilot.text import ChatTemplate, from_metadata
from smepilot.text.sandbox import GenerationExtension
from tests import fetch
from tests.sdk.text.samples import gpt2, llama

CHAT = [
    {"role": "user", "content": "Hi <b>there</b> ü"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Why is the sky blue?"},
]
SYSTEM = {"role": "system", "content": "You are terse."}
CITY = {"type": "string", "description": "Its name"}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": CITY}, "required": ["city"]},
    },
}
# These are for conversations with tools only, and iterate over them; the last wants variables of its own.
NEED_TOOLS = {
    "CohereForAI-c4ai-command-r-plus-tool_use.jinja",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja",
}
NEED_MORE = {"fireworks-ai-llama-3-firefunction-v2.jinja": {"functions": "[]", "datetime": "now"}}
NO_SYSTEM = {"google-gemma-2-2b-it.jinja"}


def render(source: str, messages: list[dict[str, Any]] = CHAT, **variables: Any) -> str:
    return ChatTemplate(source, bos_token="<s>", eos_token="</s>").render(messages, **variables)


def as_hugging_face(source: str, messages: list[dict[str, Any]], tools: list[Any] | None, **extra: Any) -> str:
    """The same by an environment that is set up as `transformers` does, without our bounds."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, GenerationExtension]
    )
    environment.filters["tojson"] = lambda value, ensure_ascii=False, indent=None, separators=None, sort_keys=False: (
        json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    )
    environment.filters["from_json"] = json.loads
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    environment.globals["raise_exception"] = lambda message: (_ for _ in ()).throw(jinja2.TemplateError(message))
    variables = {"messages": messages, "tools": tools, "add_generation_prompt": True, **extra}
    return environment.from_string(source).render(variables, bos_token="<s>", eos_token="</s>")


def test_the_templates_of_many_models() -> None:
    paths = sorted((fetch.llama_cpp_sdist() / "templates").glob("*.jinja"))
    assert len(paths) >= 60
    for path in paths:
        source, extra = path.read_text(), NEED_MORE.get(path.name, {})
        for messages in [CHAT] if path.name in NO_SYSTEM else [CHAT, [SYSTEM, *CHAT]]:
            tools = [TOOL] if path.name in NEED_TOOLS else None
            text = render(source, messages, tools=tools, **extra)
            assert "Why is the sky blue?" in text, path.name
            assert text == as_hugging_face(source, messages, tools, **extra), path.name


@pytest.mark.parametrize("name", ["Qwen-Qwen3-0.6B", "meta-llama-Llama-3.2-3B-Instruct", "Qwen-Qwen2.5-7B-Instruct"])
def test_tools(name: str) -> None:
    source = (fetch.llama_cpp_sdist() / "templates" / f"{name}.jinja").read_text()
    text = render(source, tools=[TOOL])
    assert '"name": "weather"' in text
    assert text == as_hugging_face(source, CHAT, [TOOL])


def test_switches_of_a_template_are_passed_on() -> None:
    source = (fetch.llama_cpp_sdist() / "templates" / "Qwen-Qwen3-0.6B.jinja").read_text()
    assert render(source, enable_thinking=False).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert render(source).endswith("<|im_start|>assistant\n")
    assert render(source, add_generation_prompt=False).endswith("blue?<|im_end|>\n")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% for m in messages %}{% if loop.index == 2 %}{% break %}{% endif %}{{ m.role }}{% endfor %}", "user"),
        ("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role[0] }}{% endfor %}", "au"),
        ("{% generation %}{{ messages[1].content }}{% endgeneration %}", "Hello."),
        ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "3"),
        ("{{ {'a': '<é>'} | tojson }}", '{"a": "<é>"}'),
        ("{{ {'b': 1, 'a': [2]} | tojson(indent=2) }}", '{\n  "b": 1,\n  "a": [\n    2\n  ]\n}'),
        ("{{ {'b': 1, 'a': 2} | tojson(separators=(',', ':'), sort_keys=true) }}", '{"a":2,"b":1}'),
        ("{{ 'a</think>b'.split('</think>')[-1].lstrip('\\n') }}", "b"),
        ("{{ messages | rejectattr('role', 'equalto', 'user') | map(attribute='role') | join(', ') }}", "assistant"),
        ("{{ messages | join('-', attribute='role') }}", "user-assistant-user"),
        ("{% if true %}\n  x\n  {%- endif %}\n", "  x"),
        ("{{ bos_token ~ 1 ~ none ~ eos_token }}", "<s>1None</s>"),
        ("{{ undefined_thing }}{{ undefined_thing is defined }}", "False"),
        (
            "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}",
            "1/3False 2/3False 3/3True ",
        ),
        ("{% for a in [[1, [2]], [3]] recursive %}{{ a if a is number else loop(a) }}{% endfor %}", "123"),
        ("{% for m in messages if m.role == 'x' %}y{% else %}none{% endfor %}", "none"),
        ("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f('a') + f('b') }}", "<a><b>"),
        ("{{ '%s=%d' % ('a', 1) }} {{ '{}:{:>3}'.format(1, 2) }} {{ 'ab' * 2 }} {{ 2 ** 10 }}", "a=1 1:  2 abab 1024"),
        ("{{ 'a b'.replace(' ', '_').title() }} {{ ' x '|trim }} {{ 'x\ny'|indent(2) }}", "A_B x x\n  y"),
    ],
)
def test_what_templates_use_of_jinja(source: str, text: str) -> None:
    assert render(source) == text


def test_the_date() -> None:
    assert render("{{ strftime_now('%Y') }}") in {str(datetime.now().year), str(datetime.now().year - 1)}


def test_content_made_of_text_parts() -> None:
    parts = [{"type": "text", "text": "Why is "}, {"type": "text", "text": "the sky blue?"}]
    assert render("{{ messages[0].content }}", [{"role": "user", "content": parts}]) == "Why is the sky blue?"


def test_messages_are_not_changed() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    render("{{ messages[0].content }}", messages)
    assert messages == [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("a\nb\n{% if %}", "chat template, line 3: Expected an expression"),
        ("\n\n{{ messages[0].foo.bar }}", "chat template, line 3: 'dict object' has no attribute 'foo'"),
        ("\n{{ raise_exception('Roles must\nalternate') }}", "chat template, line 2: Roles must alternate"),
        ("{% for m in messages %}\n{{ m.content + 1 }}{% endfor %}", "chat template, line 2: can only concatenate str"),
        ("{{ messages.append(1) }}", "chat template, line 1: access to attribute 'append' of 'list' object is unsafe"),
        ("{{ ''.__class__.__mro__ }}", "chat template, line 1: access to attribute '__class__'"),
        ("{{ 'abc' | xml }}", "chat template, line 1: No filter named 'xml'"),
        ("{% include 'other' %}", "chat template, line 1: no loader for this environment"),
    ],
)
def test_errors_name_the_line(source: str, says: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(source)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_bos_written_by_the_template_is_not_doubled() -> None:
    source = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
    subject = from_metadata({**llama(), "tokenizer.chat_template": source})
    template = ChatTemplate.from_metadata({**llama(), "tokenizer.chat_template": source}, subject)
    ids = subject.encode(template.render([{"role": "user", "content": "abc"}]))
    assert ids == [1, 267]


def test_without_a_template_the_vocabulary_decides() -> None:
    chatml = ChatTemplate.from_metadata(gpt2(), from_metadata(gpt2()))
    assert chatml.source is None
    assert chatml.render([SYSTEM, CHAT[2]]) == (
        "<|im_start|>system\nYou are terse.<|im_end|>\n<|im_start|>user\nWhy is the sky blue?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    roles = ChatTemplate.from_metadata(llama(), from_metadata(llama()))
    assert roles.render([SYSTEM, *CHAT[1:]]) == (
        "You are terse.\n\nAssistant: Hello.\nUser: Why is the sky blue?\nAssistant:"
    )
    assert roles.render(CHAT[1:2], add_generation_prompt=False) == "Assistant: Hello.\n"


def test_a_template_that_is_no_text() -> None:
    with pytest.raises(TemplateError, match=r"tokenizer\.chat_template is int, not text"):
        ChatTemplate.from_metadata({"tokenizer.chat_template": 5}, from_metadata(gpt2()))


def test_a_template_reaches_nothing_outside() -> None:
    """The sandbox gives no way to files or modules."""
    for source in (
        "{{ open('x') }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ self.__init__() }}",
        "{{ lipsum }}x{{ y.z }}",
    ):
        with pytest.raises(TemplateError):
            render(source)
