"""A private MariaDB server for tests: Debian's mariadb-server, in a folder of its own, on a free loopback port."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import pymysql

from tests.support.waiting import eventually

SERVER = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
INSTALL = shutil.which("mariadb-install-db")


class LocalMariadb:
    def __init__(self) -> None:
        # A short path: a socket's may have 107 characters.
        self.home = Path(tempfile.mkdtemp(prefix="rowlock-mariadb-"))
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        os.chown(self.home, self.user.pw_uid, self.user.pw_gid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"mysql+pymysql://rowlock@127.0.0.1:{self.port}/shop"

    def __enter__(self) -> Self:
        identity = {"user": self.user.pw_uid, "group": self.user.pw_gid} if os.geteuid() == 0 else {}
        common = ["--no-defaults", f"--datadir={self.home}/data"]
        subprocess.run(
            [INSTALL, *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True, capture_output=True, cwd=self.home, **identity,
        )  # fmt: skip
        with (self.home / "log").open("wb") as log:
            self.server = subprocess.Popen(
                [
                    SERVER, *common, "--bind-address=127.0.0.1", f"--port={self.port}", f"--socket={self.home}/sock",
                    "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin",
                ],
                stdout=log, stderr=log, **identity,
            )  # fmt: skip
        eventually(self._answers, "MariaDB's answer")
        with pymysql.connect(unix_socket=f"{self.home}/sock", user="root", autocommit=True) as admin:
            for statement in (
                "CREATE DATABASE shop",
                "CREATE USER rowlock@127.0.0.1",
                "GRANT ALL ON *.* TO rowlock@127.0.0.1",
            ):
                admin.cursor().execute(statement)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.terminate()
        self.server.wait(30)
        shutil.rmtree(self.home)

    def connect(self, **options) -> pymysql.Connection:
        return pymysql.connect(host="127.0.0.1", port=self.port, user="rowlock", database="shop", **options)

    def _answers(self) -> bool:
        assert self.server.poll() is None, (self.home / "log").read_text()[-2000:]
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(f"{self.home}/sock") == 0
