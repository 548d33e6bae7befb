"""The zygote: a process that has everything imported and forks the run's processes. A thousand kills mean a thousand
starts, and an import takes longer than anything that a worker does to start.

It has no thread and no connection, so that forking it is safe. It alone signals its children, because it alone
knows which of them it has not buried yet: a number that the system has given away again is never signalled.
When the run ends, however it ends, its pipe closes, and the zygote takes its children with it.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
from dataclasses import asdict
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from rowlock.errors import RowlockError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rowlock.proof.workload import Program

_ANSWER_SECONDS = 60.0
_CLONE_NEWNET = 0x40000000


class ZygoteFailed(RowlockError):
    """The process that forks the workers has ended: its log in the run's folder says why."""


class Zygote:
    """The run's end of the pipe."""

    def __init__(self, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rowlock.proof.zygote"],
                env={**os.environ, **(environment or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        self._sending = threading.Lock()
        self._answers: SimpleQueue[int] = SimpleQueue()
        self.endings: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="proof-zygote", daemon=True)
        self._reader.start()

    def fork(self, task: str, program: Program, log: Path, namespace: str | None = None) -> int:
        """Starts a process; its number."""
        message = {
            "do": "fork",
            "task": task,
            "program": asdict(program),
            "log": str(log),
            "namespace": namespace,
        }
        with self._sending:
            return self._ask(message)

    def signal(self, pid: int, number: int) -> bool:
        """Sends it, and returns when it has been sent; False if the process had ended before."""
        with self._sending:
            return bool(self._ask({"do": "signal", "pid": pid, "number": int(number)}))

    def close(self) -> None:
        """Ends it, and all its children."""
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def _ask(self, message: dict[str, Any]) -> int:
        assert self._process.stdin is not None  # noqa: S101
        try:
            print(json.dumps(message), file=self._process.stdin, flush=True)
            return self._answers.get(timeout=_ANSWER_SECONDS)
        except (BrokenPipeError, Empty):
            raise ZygoteFailed(
                f"the zygote (code {self._process.poll()}) does not answer; see {self._log}"
            ) from None

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101
        for line in self._process.stdout:
            told = json.loads(line)
            if "answer" in told:
                self._answers.put(told["answer"])
            else:
                self.endings.put((told["ended"], told["code"]))


# -- the other end ---------------------------------------------------------------------------------------------


class _Mother:
    def __init__(self) -> None:
        self._children: set[int] = set()
        self._bell, self._cord = os.pipe()
        os.set_blocking(self._cord, False)

    def run(self) -> None:
        signal.set_wakeup_fd(self._cord)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the run's to hear
        buffer = b""
        while True:
            ready, _, _ = select.select([0, self._bell], [], [])
            if self._bell in ready:
                os.read(self._bell, 1024)
                self._bury()
            if 0 in ready:
                piece = os.read(0, 65536)
                if not piece:
                    break
                *lines, buffer = (buffer + piece).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
        for pid in self._children:
            os.waitpid(pid, 0)

    def _obey(self, order: dict[str, Any]) -> None:
        if order["do"] == "signal":
            known = order["pid"] in self._children
            if known:
                os.kill(order["pid"], order["number"])
            _tell({"answer": int(known)})
            return
        _warm(order["program"])
        pid = os.fork()
        if pid == 0:
            os._exit(self._live(order))
        self._children.add(pid)
        _tell({"answer": pid})

    def _bury(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._children.discard(pid)
            _tell({"ended": pid, "code": os.waitstatus_to_exitcode(status)})

    def _live(self, order: dict[str, Any]) -> int:
        """The child: its own log, its own signals, and nothing of its mother's pipes."""
        from rowlock.proof.enqueuer import Enqueuer  # noqa: PLC0415 - imported before, by _warm
        from rowlock.proof.workload import Program, Workload  # noqa: PLC0415

        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.close(self._bell)
        os.close(self._cord)
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(process)d %(name)s: %(message)s")
        try:
            if order["namespace"]:
                _enter(order["namespace"])
            program = Program(**order["program"])
            (Workload(program) if order["task"] == "worker" else Enqueuer(program)).run()
        except BaseException:
            logging.getLogger("rowlock.proof").exception("the process ends")
            return 1
        return 0


def _enter(namespace: str) -> None:
    """Into a network of its own."""
    with open(namespace, "rb") as handle:  # noqa: PTH123 - a descriptor is what is needed
        if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")


def _tell(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def _warm(program: dict[str, Any]) -> None:
    """What every child would read and import first is read once, here; nothing is connected."""
    from rowlock.databases.url import parse_url  # noqa: PLC0415
    from rowlock.ledger.ledger import Ledger  # noqa: PLC0415
    from rowlock.proof import enqueuer, workload  # noqa: F401, PLC0415
    from rowlock.settings import Settings  # noqa: PLC0415

    settings = Settings(**program["settings"])
    Ledger.open(settings).close()  # its driver, its statements
    parse_url(program["second_url"])[1].get_dialect().import_dbapi()


if __name__ == "__main__":
    _Mother().run()
