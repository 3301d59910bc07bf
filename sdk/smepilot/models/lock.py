# SPDX-License-Identifier: Apache-2.0
"""The lock file of exact revisions: which package, version and hash a stored model came from.

One `revision.json` lies beside each model file and is published with it in one rename, so the two cannot disagree:
a folder without a readable revision is not a model. (The locks by which processes take turns are `paths.exclusive`.)
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from smepilot.paths import disk_errors

_NAME = "revision.json"


@dataclass(frozen=True, slots=True)
class Revision:
    """What was stored, exactly; `prompt_class` is the catalog's measurement, "" where it has none."""

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    package: str
    version: str
    prompt_class: str = ""


def write_revision(folder: Path, revision: Revision) -> None:
    """Puts the revision into the model's folder."""
    with disk_errors(folder):
        (folder / _NAME).write_text(json.dumps(asdict(revision), indent=2) + "\n", encoding="utf-8")


def read_revision(folder: Path) -> Revision | None:
    """The revision of a model's folder; None when there is none that can be read."""
    try:
        values = json.loads((folder / _NAME).read_text(encoding="utf-8"))
        revision = Revision(**values)
    except (OSError, ValueError, TypeError):
        return None
    sound = all(isinstance(getattr(revision, f.name), int if f.name == "size" else str) for f in fields(revision))
    # The file's name comes from a file: it must not lead out of the folder.
    return revision if sound and Path(revision.file).name == revision.file else None
