"""An S3 server that takes every request and ignores every condition, as some real ones do."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

_ETAG = '"0"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]

    def do_PUT(self) -> None:
        url, body = urlsplit(self.path), self._body()
        source = self.headers.get("x-amz-copy-source")
        if source and "partNumber" in url.query:
            self.server.part = self.server.files[source if source.startswith("/") else f"/{source}"]
            return self._answer(200, f"<CopyPartResult><ETag>{_ETAG}</ETag></CopyPartResult>")
        self.server.files[url.path] = body
        return self._answer(200)

    def do_POST(self) -> None:
        url = urlsplit(self.path)
        self._body()
        if "delete" in parse_qs(url.query, keep_blank_values=True):
            return self._answer(200, "<DeleteResult></DeleteResult>")
        if "uploads" in parse_qs(url.query, keep_blank_values=True):
            return self._answer(
                200, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
            )
        self.server.files[url.path] = self.server.part
        return self._answer(
            200,
            f"<CompleteMultipartUploadResult><ETag>{_ETAG}</ETag></CompleteMultipartUploadResult>",
        )

    def do_DELETE(self) -> None:
        self.server.files.pop(urlsplit(self.path).path, None)
        self._answer(204)

    def do_HEAD(self) -> None:
        data = self.server.files.get(urlsplit(self.path).path)
        self._answer(404 if data is None else 200, length=len(data or b""))

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, text: str = "", length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("ETag", _ETAG)
        self.send_header("Last-Modified", "Wed, 18 Nov 2026 05:00:00 GMT")
        self.send_header("Content-Length", str(len(text) if length is None else length))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def careless_s3() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.files, server.part = {}, b""
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
