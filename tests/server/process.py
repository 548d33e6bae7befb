"""A real `rowlock serve`, as a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading

from tests.support.waiting import eventually


class ServerProcess:
    def __init__(self, settings, *arguments, folder=None) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ROWLOCK_")}
        ours = {
            "ROWLOCK_LEDGER_URL": settings.ledger_url,
            "ROWLOCK_LEDGER_SCHEMA": settings.ledger_schema,
            "ROWLOCK_LEASE_SECONDS": str(settings.lease_seconds),
            "ROWLOCK_GRACE_SECONDS": str(settings.grace_seconds),
            "ROWLOCK_MAX_REQUEST_BYTES": str(settings.max_request_bytes),
            "ROWLOCK_MAX_JOB_INPUTS": str(settings.max_job_inputs),
            "ROWLOCK_STORAGE_URL": settings.storage_url,
            "ROWLOCK_WEBHOOK_HOSTS": json.dumps(settings.webhook_hosts),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rowlock.cli", "serve", "--port", "0", *arguments],
            cwd=folder,
            env=clean | ours,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def said(self) -> str:
        return "".join(self.lines)

    @property
    def url(self) -> str:
        """Where it serves; waits until it does."""
        eventually(
            lambda: "startup complete" in self.said or self.process.poll() is not None, "the server's start"
        )
        assert self.process.poll() is None, self.said
        return re.findall(r"serves (http://\S+)", self.said)[0]

    def ask_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        code = self.process.wait(30)
        self._reader.join()
        return code

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        self.process.stderr.close()

    def _read(self) -> None:
        for line in self.process.stderr:
            self.lines.append(line)
