# SPDX-License-Identifier: Apache-2.0
"""The room in which a model file's chat template runs: Jinja as Hugging Face sets it up, and on a short lead.

As there: a block swallows its line break and indentation (trim_blocks, lstrip_blocks), ``break`` and ``continue``,
``tojson`` without HTML escapes, ``raise_exception``, ``strftime_now``, ``{% generation %}``, and an immutable sandbox:
a template sees values, calls their methods, and changes nothing. Beyond that, a run is bounded (budget.py): the parsed
template is rewritten so that every loop counts its rounds and every ``~`` is measured, and calls and operators, which
Jinja's sandbox hands to the environment anyway, are checked there. Filters that only make text wider are gone.

Importing this module imports jinja2, which takes longer than everything else in this package together; template.py
does so when the first conversation is rendered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.filters import do_indent
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from smepilot.text import budget

_WIDENING_FILTERS = ("batch", "center", "format", "pprint", "slice", "wordwrap")


class GenerationExtension(Extension):
    """``{% generation %} … {% endgeneration %}`` marks the model's own words for training; here it is transparent."""

    tags = {"generation"}  # noqa: RUF012 - jinja's own declaration

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Gives the body alone."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Harness(NodeTransformer):
    """Puts the counter into loops and the scale under ``~``."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - the visitor's names are the nodes'
        self.generic_visit(node)
        node.iter = _filter("_rounds", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter("_concatenate", nodes.List(node.nodes, lineno=node.lineno))


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """Jinja for chat templates; `budget.current` must be set while a template runs."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(self) -> None:
        extensions = [LoopControlExtension, GenerationExtension]
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=extensions, finalize=_finalize)
        for name in _WIDENING_FILTERS:
            del self.filters[name]
        self.filters.update(tojson=_tojson, from_json=json.loads, indent=_indent, replace=_replace)
        self.filters.update(join=_join, _rounds=budget.rounds, _concatenate=budget.join)
        del self.globals["lipsum"]
        self.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Harness().visit(super()._parse(source, name, filename))
        tree.set_environment(self)
        return tree

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as in jinja
        """Calls something for the template, after a look at what it is about to make."""
        budget.current.get().spend(budget.CALL_STEPS)
        owner = getattr(getattr(__obj, "__wrapped__", __obj), "__self__", None)  # jinja wraps str.format
        if isinstance(owner, str):
            budget.check_method(owner, __obj.__name__, args)
        elif isinstance(__obj, LoopContext) and args:
            args = (budget.rounds(args[0]), *args[1:])  # a recursive loop's next level
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Computes ``left operator right``, after a look at its size."""
        budget.check_operator(operator, left, right)
        return super().call_binop(context, operator, left, right)


def _filter(name: str, value: nodes.Node) -> nodes.Filter:
    return nodes.Filter(value, name, [], [], None, None, lineno=value.lineno)


def _finalize(value: Any) -> Any:
    """Sees every value that is written. Constants are written at compile time, when there is no budget yet."""
    running = budget.current.get(None)
    return value if running is None else running.write(str(value))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    budget.check_size(len(text) + (text.count("\n") + 1) * (len(width) if isinstance(width, str) else width))
    return do_indent(text, width, first, blank)


def _join(items: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    if attribute is not None:
        items = [item[attribute] for item in items]
    return budget.join(items, d)


def _replace(text: str, old: str, new: str, count: int | None = None) -> str:
    text = str(text)
    budget.check_replace(text, old, new)
    return text.replace(old, new, -1 if count is None else count)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _strftime_now(pattern: str) -> str:
    budget.check_format(pattern)
    return datetime.now().astimezone().strftime(pattern)
