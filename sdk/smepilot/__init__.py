# SPDX-License-Identifier: Apache-2.0
"""SMEPilot: an on-device LLM engine that treats the matrix unit as a shared colleague of the CPU cores.

    import smepilot as sp
    with sp.Engine.open("smollm2:135m") as engine:
        print(engine.complete("The capital of France is", max_tokens=16).text)

Names are loaded when they are first used, so that `import smepilot` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smepilot.engine import Engine
    from smepilot.errors import (
        CancelledError,
        ClosedError,
        ContextLengthError,
        DiskFullError,
        DownloadError,
        FileFormatError,
        InvalidParameterError,
        LockTimeoutError,
        ModelError,
        NativeError,
        NotFoundError,
        NumericError,
        OutOfMemoryError,
        RequestError,
        RuntimeFault,
        SmePilotError,
        StoreError,
        TemplateError,
        TokenizerError,
        UnsupportedModelError,
        VerifyError,
    )
    from smepilot.session import Session
    from smepilot.stream import Stream
    from smepilot.types import Chunk, Completion, GenerateParams, Perplexity, Seconds, Usage

__version__ = "0.1.0"

__all__ = [
    "CancelledError",
    "Chunk",
    "ClosedError",
    "Completion",
    "ContextLengthError",
    "DiskFullError",
    "DownloadError",
    "Engine",
    "FileFormatError",
    "GenerateParams",
    "InvalidParameterError",
    "LockTimeoutError",
    "ModelError",
    "NativeError",
    "NotFoundError",
    "NumericError",
    "OutOfMemoryError",
    "Perplexity",
    "RequestError",
    "RuntimeFault",
    "Seconds",
    "Session",
    "SmePilotError",
    "StoreError",
    "Stream",
    "TemplateError",
    "TokenizerError",
    "UnsupportedModelError",
    "Usage",
    "VerifyError",
    "__version__",
]

_HOMES = {
    "Engine": "engine",
    "Session": "session",
    "Stream": "stream",
    **dict.fromkeys(("Chunk", "Completion", "GenerateParams", "Perplexity", "Seconds", "Usage"), "types"),
}


def __getattr__(name: str) -> Any:
    """Loads a public name from the module that defines it."""
    if name not in __all__:
        raise AttributeError(f"module 'smepilot' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"smepilot.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
