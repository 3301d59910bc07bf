# SPDX-License-Identifier: Apache-2.0
"""A model as the store tells of it: what its revision says when it is here, what the catalog says beside that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from smepilot.models.catalog import CatalogEntry
from smepilot.models.lock import Revision


@dataclass(frozen=True, slots=True)
class Entry:
    """A model; `path` is None when it has not been pulled, the last five are None when no catalog knows it.

    Attributes:
        name: `family:size`.
        path: the model file.
        size: of the file, bytes.
        sha256: of the file, hex.
        licence: SPDX identifier.
        source: the package it comes from, as pip writes it.
        title: for people.
        aliases: other names.
        parameters: weights in the model.
        quantisation: the type of most weights.
        context: longest context in tokens.
    """

    name: str
    path: Path | None
    size: int
    sha256: str
    licence: str
    source: str
    title: str | None = None
    aliases: tuple[str, ...] = ()
    parameters: int | None = None
    quantisation: str | None = None
    context: int | None = None


def catalog_entry(known: CatalogEntry) -> Entry:
    """A model of the catalog that is not here."""
    return Entry(
        known.name,
        None,
        known.size,
        known.sha256,
        known.licence,
        str(known.source),
        known.title,
        known.aliases,
        known.parameters,
        known.quantisation,
        known.context,
    )


def stored_entry(revision: Revision, path: Path, known: CatalogEntry | None) -> Entry:
    """A model that is here; where revision and catalog differ, the revision tells what the file is."""
    source = f"{revision.package}=={revision.version}"
    entry = Entry(revision.name, path, revision.size, revision.sha256, revision.licence, source)
    if known is None:
        return entry
    more = catalog_entry(known)
    return replace(more, path=path, size=entry.size, sha256=entry.sha256, licence=entry.licence, source=entry.source)
