"""The processes of the demo: an S3 server, the API and workers, all of them ours, and all of them gone at the end."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from pydantic import SecretStr

from rowlock.jobs.local_s3 import LocalS3
from rowlock.settings import Settings

HERE = Path(__file__).parent
BUCKET = "index-data"
LEASE_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 120.0


class DemoFailed(Exception):
    """The demo could not be carried through: the logs in its folder say more."""


class Fleet:
    """Use it in a `with`: whatever happens there, nothing that it started goes on."""

    def __init__(self, folder: Path, ledger_url: str | None) -> None:
        self.folder = folder
        self._ledger_url = ledger_url or f"sqlite:///{folder / 'rowlock.db'}"
        self._stack = ExitStack()
        self._s3 = LocalS3()
        self.workers: list[subprocess.Popen[bytes]] = []
        self._api: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._stack.callback(self._s3.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def settings(self) -> Settings:
        """The same for every process; the storage's secret goes by the environment, never by the command line."""
        return Settings(
            ledger_url=self._ledger_url,
            lease_seconds=LEASE_SECONDS,
            poll_seconds=0.2,
            finalizer_seconds=0.2,
            max_prefetch=8,  # little, so that three workers share what there is
            storage_url=f"s3://{BUCKET}",
            storage_endpoint=self._s3.endpoint,
            storage_region="us-east-1",
            storage_access_key_id=self._s3.access_key_id,
            storage_secret_access_key=self._s3.secret_access_key,
        )

    def start_storage(self) -> None:
        self._s3.start()
        self._s3.make_bucket(BUCKET)

    def start_workers(self, count: int) -> None:
        for number in range(1, count + 1):
            self.workers.append(
                self._start(f"worker-{number}", "worker", "exports", "--name", f"worker-{number}")
            )

    def start_api(self) -> str:
        """Starts `rowlock serve` on a free port, and returns its address as soon as it listens."""
        self._api = self._start("api", "serve", "exports", "--port", "0")
        log = self.folder / "api.log"

        def address() -> list[str]:
            return re.findall(r"serves (http://\S+)", log.read_text())

        self.wait(lambda: bool(address()) and "startup complete" in log.read_text(), "the API's start")
        return address()[0]

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()

    def stop(self) -> None:
        """Asks all to leave, as a deployment does; each must say that it did."""
        running = [process for process in (*self.workers, self._api) if process and process.poll() is None]
        for process in running:
            process.terminate()
        for process in running:
            if process.wait(timeout=30) != 0:
                raise DemoFailed(
                    f"process {process.pid} ended with code {process.returncode}; see {self.folder}"
                )

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            self._check()
            if time.monotonic() > give_up:
                raise DemoFailed(f"waited {_PATIENCE_SECONDS:g} s for {what}; the logs are in {self.folder}")
            time.sleep(_LOOK_SECONDS)

    def _check(self) -> None:
        for process in (*self.workers, self._api):
            code = process.poll() if process else None
            if code is not None and code != -signal.SIGKILL:
                raise DemoFailed(f"process {process.pid} ended with code {code}; its log is in {self.folder}")

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("ROWLOCK_")}
        ours = {
            f"ROWLOCK_{key.upper()}": _plain(getattr(self.settings, key))
            for key in self.settings.model_fields_set
        }
        where = {"ROWLOCK_CONFIG": str(HERE / "rowlock.toml"), "PYTHONPATH": str(HERE)}
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "rowlock.cli", *arguments],
                cwd=self.folder,  # where market.db is
                env=clean | ours | where,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the demo, which ends them
            )
        self._stack.callback(_end, process)
        return process


def _plain(value: Any) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
