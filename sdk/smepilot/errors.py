# SPDX-License-Identifier: Apache-2.0
"""Every exception that leaves the package.

    SmePilotError
    ├── ModelError               the model's files or metadata
    │   ├── FileFormatError          damaged, truncated or foreign file
    │   ├── UnsupportedModelError    sound, but of an architecture or type this version cannot run
    │   ├── TokenizerError
    │   └── TemplateError
    ├── StoreError               the model store
    │   ├── NotFoundError
    │   ├── DownloadError
    │   ├── VerifyError
    │   ├── DiskFullError
    │   └── LockTimeoutError
    ├── RequestError             what the caller asked for
    │   ├── ContextLengthError
    │   └── InvalidParameterError
    └── RuntimeFault             what happened while running
        ├── CancelledError
        ├── NumericError
        ├── OutOfMemoryError
        ├── NativeError
        └── ClosedError

A message is one line that names the file, tensor or value and the way out.
"""

from __future__ import annotations


class SmePilotError(Exception):
    """Base of all errors raised by SMEPilot."""


class ModelError(SmePilotError):
    """A model's files or metadata cannot be used."""


class FileFormatError(ModelError):
    """A file is damaged, truncated or not of the expected format."""


class UnsupportedModelError(ModelError):
    """A sound file of an architecture or tensor type that this version cannot run."""


class TokenizerError(ModelError):
    """The tokenizer described by a model cannot be built."""


class TemplateError(ModelError):
    """A chat template cannot be parsed or rendered."""


class StoreError(SmePilotError):
    """The model store cannot do what was asked."""


class NotFoundError(StoreError):
    """No such model, file or catalog entry."""


class DownloadError(StoreError):
    """A download failed."""


class VerifyError(StoreError):
    """A stored or downloaded file is not the one that was promised."""


class DiskFullError(StoreError):
    """Not enough room on the disk."""


class LockTimeoutError(StoreError):
    """Another process kept a lock for too long."""


class RequestError(SmePilotError, ValueError):
    """A request cannot be served as it was asked."""


class ContextLengthError(RequestError):
    """Prompt and answer do not fit the context; the message says both numbers."""


class InvalidParameterError(RequestError):
    """A parameter has a value outside its range."""


class RuntimeFault(SmePilotError, RuntimeError):  # noqa: N818 - RuntimeError is taken
    """Something went wrong while the engine was running."""


class CancelledError(RuntimeFault):
    """The request was cancelled."""


class NumericError(RuntimeFault):
    """The model produced NaN where a number is required."""


class OutOfMemoryError(RuntimeFault, MemoryError):
    """Memory for weights, KV pages or buffers could not be had."""


class NativeError(RuntimeFault):
    """The native engine or the operating system refused a call."""


class ClosedError(RuntimeFault):
    """The engine or session was used after close()."""
