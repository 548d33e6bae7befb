"""A proxy before a real server that loses answers, cuts them off, or sends others: what networks do."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Say:
    """Answers itself; the server never sees the request."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""


@dataclass(frozen=True)
class Swallow:
    """The server does it, and nobody is told."""


@dataclass(frozen=True)
class Cut:
    """Of the answer, only so many bytes come through, or its first piece."""

    after: int | None = None


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]


class CarelessProxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream).netloc
        self.faults: list[Say | Swallow | Cut] = []
        self.seen: list[Seen] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: CarelessProxy

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        given = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append(Seen(self.command, self.path, given))
        fault = self.server.faults.pop(0) if self.server.faults else None
        if isinstance(fault, Say):
            self.send_response(fault.status)
            for name, value in {"Content-Length": str(len(fault.content)), **fault.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(fault.content)
            return
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=30)
        try:
            upstream.request(self.command, self.path, body, given)
            self._pass_on(upstream.getresponse(), fault)
        except BrokenPipeError:
            pass  # the caller has left
        finally:
            upstream.close()

    def _pass_on(self, response: http.client.HTTPResponse, fault: Swallow | Cut | None) -> None:
        if isinstance(fault, Swallow):
            response.read()
            return
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "date"):
                self.send_header(name, value)
        self.end_headers()
        left = fault.after if fault else None
        while data := response.read1(65536):
            self.wfile.write(data[:left])
            self.wfile.flush()
            if fault == Cut():
                return
            if left is not None:
                left -= len(data)
                if left <= 0:
                    return

    do_GET = do_POST = _answer  # noqa: N815 - as http.server calls them

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def careless_proxy(upstream: str) -> Iterator[CarelessProxy]:
    with CarelessProxy(upstream) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
