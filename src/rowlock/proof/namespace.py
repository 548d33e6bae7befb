"""A network of their own for some of the workers, and the link that can be cut. Needs root, and `ip` of iproute2."""

from __future__ import annotations

import os
import subprocess
from typing import Self

from rowlock.errors import ConfigurationError


class Namespace:
    """Two ends of a virtual cable: one here, one in a network namespace."""

    def __init__(self, ip: str) -> None:
        self._ip = ip
        number = os.getpid() % 60_000
        self._name = f"rowlock-{number}"
        self._here, self._there = f"rl{number}a", f"rl{number}b"
        # 198.18.0.0/15 is set aside for tests of networks: nobody's addresses are in the way.
        net = f"198.18.{number // 250 % 250}"
        self.address = f"{net}.1"
        self._inside = f"{net}.2"

    @property
    def path(self) -> str:
        return f"/run/netns/{self._name}"

    def __enter__(self) -> Self:
        try:
            self._run("netns", "add", self._name)
            self._run(
                "link", "add", self._here, "type", "veth", "peer", "name", self._there, "netns", self._name
            )
            self._run("addr", "add", f"{self.address}/30", "dev", self._here)
            self._run("link", "set", self._here, "up")
            self._run("-n", self._name, "addr", "add", f"{self._inside}/30", "dev", self._there)
            self._run("-n", self._name, "link", "set", self._there, "up")
            self._run("-n", self._name, "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._run("netns", "delete", self._name, check=False)
        self._run("link", "delete", self._here, check=False)

    def cut(self) -> None:
        self._run("link", "set", self._here, "down")

    def mend(self) -> None:
        self._run("link", "set", self._here, "up")

    def _run(self, *arguments: str, check: bool = True) -> None:
        done = subprocess.run([self._ip, *arguments], capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise ConfigurationError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
