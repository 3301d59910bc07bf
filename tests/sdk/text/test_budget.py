# SPDX-License-Identifier: Apache-2.0
"""Templates that would take the machine: each ends with an error within a moment, and takes little memory."""

from __future__ import annotations

import threading
import tracemalloc
from time import thread_time

import pytest

from smepilot.errors import TemplateError
from smepilot.text import ChatTemplate

GROW = "{% set ns = namespace(x='xx') %}{% for i in range(60) %}"
LONG = "{% set a = 'x' * 99999 %}"


def render(source: str) -> str:
    return ChatTemplate(source, bos_token="", eos_token="").render([{"role": "user", "content": "Hi"}])


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(10**9) %}x{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}",
        "{% for i in [range(99999)] * 9999 recursive %}{{ loop(i) if i is iterable }}{% endfor %}",
        "{% for i in 'x' * 99999 %}{% for j in 'x' * 99999 %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_time_is_bounded(source: str) -> None:
    start = thread_time()
    with pytest.raises(TemplateError, match=r"^chat template, line 1: "):
        render(source)
    assert thread_time() - start < 10  # one or two where nothing else disturbs


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 10**10 }}",
        "{{ 10**10 * 'x' }}",
        "{{ [1] * 10**9 }}",
        "{{ 10 ** (10 ** 10) }}",
        "{% set ns = namespace(x=10**99) %}{% for i in range(60) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
        GROW + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        GROW + "{% set ns.x = ns.x + ns.x %}{% endfor %}",
        GROW + "{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}",
        GROW + "{% set ns.x = [ns.x, ns.x] | join %}{% endfor %}",
        GROW + "{% set ns.x = ''.join([ns.x, ns.x]) %}{% endfor %}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (10**9, 1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ strftime_now('%1000000000d') }}",
        "{{ 'x'.ljust(10**9) }}",
        "{{ 'x'.zfill(10**9) }}",
        "{{ ('\\t' * 9999).expandtabs(10**6) }}",
        "{{ 'x' | center(10**9) }}",
        "{{ 'x\n' | indent(10**9) }}",
        "{{ 'x' | batch(10**9, 'y') | list }}",
        LONG + "{{ a.replace('x', a) }}",
        LONG + "{{ a | replace('x', a) }}",
        LONG + "{{ a.translate({120: a}) }}",
    ],
)
def test_memory_is_bounded(source: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError, match=r"^chat template, line [12]: "):
            render(source)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300 << 20


def test_honest_templates_have_room() -> None:
    """A conversation of 4,000 messages with some work on each."""
    source = "{% for m in messages %}{{ m.get('role').upper() + ': ' ~ m.content | trim }}\n{% endfor %}"
    messages = [{"role": "user", "content": "x" * 500}] * 4000
    text = ChatTemplate(source, bos_token="", eos_token="").render(messages)
    assert len(text) == 4000 * 507


def test_threads_have_budgets_of_their_own() -> None:
    template = ChatTemplate("{% for i in range(90000) %}{{ i }}{% endfor %}", bos_token="", eos_token="")
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(template.render([]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["".join(map(str, range(90000)))] * 4
