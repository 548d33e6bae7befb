"""Routes: the ways on which workers reach the ledger. A worker gets another one with each start."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rowlock.databases.url import parse_url
from rowlock.errors import ConfigurationError
from rowlock.proof.arena import find_program
from rowlock.proof.namespace import Namespace
from rowlock.proof.pooler import Pooler
from rowlock.proof.proxy import Proxy
from rowlock.proof.zygote import Zygote

if TYPE_CHECKING:
    from rowlock.proof.arena import Arena
    from rowlock.proof.workload import Program

_FAKETIME = "faketime/libfaketimeMT.so.1"
IN_THE_CLEAR = {"sslmode": "disable", "gssencmode": "disable"}


@dataclass(frozen=True)
class Route:
    """How one worker process is started."""

    name: str
    program: Program
    zygote: Zygote
    namespace: str | None = None


class Routes:
    """What this machine can offer of the ways that the chosen faults need."""

    def __init__(self, arena: Arena, program: Program, faults: set[str]) -> None:
        self._arena = arena
        self._program = program
        self._faults = faults
        self._stack = ExitStack()
        self.all: list[Route] = []
        self.proxy: Proxy | None = None
        self.far_proxy: Proxy | None = None
        self.pooler: Pooler | None = None
        self.namespace: Namespace | None = None
        self.clock_file: Path | None = None

    def __enter__(self) -> Self:
        with self._stack as stack:
            self._build()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _build(self) -> None:
        zygote = Zygote(self._arena.folder / "zygote.log")
        self._stack.callback(zygote.close)
        self.direct = Route("direct", self._program, zygote)
        if self._arena.dialect == "postgresql":
            self._build_others(zygote)
        self.all.append(self.direct)

    def _build_others(self, zygote: Zygote) -> None:
        enter = self._stack.enter_context
        url = parse_url(self._program.settings["ledger_url"])[1]
        host, port = url.host or "127.0.0.1", url.port or 5432
        if self._faults & {"partition", "commit-loss"}:
            self.proxy = enter(Proxy(host, port))
            self.all.append(Route("proxy", self._by("127.0.0.1", self.proxy.port, IN_THE_CLEAR), zygote))
        if "partition" in self._faults and no_namespaces() is None:
            self.namespace = enter(Namespace(str(find_program("ip"))))
            self.far_proxy = enter(Proxy(host, port, listen=self.namespace.address))
            far = self._by(self.namespace.address, self.far_proxy.port, IN_THE_CLEAR)
            self.all.append(Route("namespace", far, zygote, self.namespace.path))
        if "pooler" in self._faults:
            databases = {url.database, parse_url(self._program.second_url)[1].database}
            self.pooler = enter(
                Pooler(str(find_program("pgbouncer")), url, [str(name) for name in databases])
            )
            program = self._by("127.0.0.1", self.pooler.port)
            program = replace(program, settings={**program.settings, "transaction_pooler": True})
            self.all.append(Route("pooler", program, zygote))
        if "clock" in self._faults:
            self._build_clock()

    def _build_clock(self) -> None:
        self.clock_file = self._arena.folder / "faketime"
        self.clock_file.write_text("+0")
        zygote = Zygote(
            self._arena.folder / "zygote-clock.log",
            {
                "LD_PRELOAD": str(find_faketime()),
                "FAKETIME_TIMESTAMP_FILE": str(self.clock_file),
                "FAKETIME_NO_CACHE": "1",
                # What jumps is the wall clock. No system's monotonic clock does, and nothing here would survive it.
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            },
        )
        self._stack.callback(zygote.close)
        self.all.append(Route("clock", self._program, zygote))

    def _by(self, host: str, port: int, query: dict[str, str] | None = None) -> Program:
        """The same program, through another door."""

        def moved(text: str) -> str:
            dialect, url = parse_url(text)
            if dialect != "postgresql":
                return text
            url = url.set(host=host, port=port).update_query_dict(query or {})
            return url.render_as_string(hide_password=False)

        settings = {**self._program.settings, "ledger_url": moved(self._program.settings["ledger_url"])}
        return replace(self._program, settings=settings, second_url=moved(self._program.second_url))


def find_faketime() -> Path | None:
    for folder in (*Path("/usr/lib").glob("*-linux-gnu*"), Path("/usr/lib"), Path("/usr/local/lib")):
        if (folder / _FAKETIME).is_file():
            return folder / _FAKETIME
    return None


def no_namespaces() -> str | None:
    """Why there are no network namespaces here; None when there are."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    ip = find_program("ip")
    if ip is None:
        return "network namespaces need the program ip, of iproute2"
    try:
        with Namespace(ip):
            return None
    except ConfigurationError as error:
        return f"network namespaces do not work here ({error})"
