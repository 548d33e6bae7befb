"""PgBouncer in transaction mode, between some of the workers and the ledger."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rowlock.databases.local_postgres import _free_port
from rowlock.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_SERVER_CONNECTIONS = 20
_START_SECONDS = 10.0


class Pooler:
    """A few server connections for everybody, lent for one transaction at a time."""

    def __init__(self, program: str, server: URL, databases: list[str]) -> None:
        self.port = _free_port()
        self._program = program
        self._home = Path(tempfile.mkdtemp(prefix="rowlock-pgbouncer-"))  # another account has to read it
        self._process: subprocess.Popen[bytes] | None = None
        target = f"host={server.host} port={server.port or 5432} user={server.username}"
        self._home.chmod(0o755)
        (self._home / "pgbouncer.ini").write_text(
            "[databases]\n"
            + "".join(f"{name} = {target} dbname={name}\n" for name in databases)
            + f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {_SERVER_CONNECTIONS}\nmax_client_conn = 1000\n"
            "server_login_retry = 0.2\nserver_round_robin = 1\nunix_socket_dir =\n"
            "ignore_startup_parameters = options\n"
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    @property
    def up(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Starts it, and returns when it listens."""
        self._process = subprocess.Popen(
            [self._program, "-q", str(self._home / "pgbouncer.ini")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user="nobody" if os.geteuid() == 0 else None,  # it does not run as root
        )
        give_up = time.monotonic() + _START_SECONDS
        while time.monotonic() < give_up and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise ConfigurationError(f"PgBouncer does not listen (its code is {self._process.poll()}).")

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
