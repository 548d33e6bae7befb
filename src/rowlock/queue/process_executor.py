"""CPU-bound handlers: each slot owns a child process, which can really be stopped.

Parent and child speak JSON over a pipe: one line asks, one line answers. The child opens its own connection to
the ledger, and acts under the token it was given.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from rowlock import clock, log
from rowlock.errors import ConfigurationError
from rowlock.ledger.ledger import Ledger
from rowlock.ledger.rows import Held
from rowlock.queue.executor import Slot, ThreadExecutor, Turn, Work
from rowlock.queue.failure import ErrorReport
from rowlock.queue.outcome import Outcome
from rowlock.queue.perform import perform
from rowlock.queue.record import Holder, Record

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from queue import SimpleQueue

    from rowlock.queue.flow import Flow


# Spawned, not forked: a fork would inherit the parent's threads' locks and its database connections.
_SPAWN = multiprocessing.get_context("spawn")


class ProcessExecutor(ThreadExecutor):
    """Threads that each hold the hand of one child process."""

    def _new_slot(self) -> Slot:
        return ProcessSlot(self, self._inbox)

    def close(self) -> None:
        super().close()
        for slot in list(self._threads):
            if isinstance(slot, ProcessSlot):
                slot.kill()


class ProcessSlot(Slot):
    def __init__(self, executor: ProcessExecutor, inbox: SimpleQueue[Work | None]) -> None:
        super().__init__(executor, inbox)
        self._child: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def disown(self, turn: Turn) -> bool:
        taken = super().disown(turn)
        if taken:
            self.kill()
        return taken

    def kill(self) -> None:
        child = self._child
        if child is not None and child.is_alive():
            child.kill()

    def prepare(self, work: Work) -> None:
        """Starts the child, and waits until it has imported the handler."""
        if self._child is not None and self._child.is_alive():
            return
        self._pipe, theirs = _SPAWN.Pipe()
        settings = work[0]._holder.ledger.settings.model_dump()  # noqa: SLF001
        self._child = _SPAWN.Process(
            target=_child_main,
            args=(theirs, self.flow.address, settings, log.chosen_format()),
            name=self.name,
            daemon=True,
        )
        self._child.start()
        theirs.close()
        try:
            self._pipe.recv_bytes()
        except (EOFError, OSError):
            return  # it died at once; the next word to it will show that

    def perform(self, work: Work) -> list[Outcome]:
        pipe = self._pipe
        assert pipe is not None  # noqa: S101 - prepare made it
        try:
            pipe.send_bytes(json.dumps([_to_wire(record) for record in work]).encode())
            answers = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return self._died(work)
        return [_from_wire(record, answer) for record, answer in zip(work, answers, strict=True)]

    def _died(self, work: Work) -> list[Outcome]:
        code: int | None = None
        if self._child is not None:
            self._child.join(5)
            code = self._child.exitcode
        self._child = self._pipe = None
        if self.turn is None:  # it was given up, and the child ended for that reason
            return []
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        error = ErrorReport.plain("ProcessDied", f"the handler's process died ({how})")
        return [Outcome(record, "died", error=error) for record in work]


def _to_wire(record: Record) -> dict[str, Any]:
    return {
        "held": [
            record.id, record.token, record.flow, record.key, record._payload_text, record.attempt,  # noqa: SLF001
            record.deaths, record.priority, record.enqueued_at.timestamp(),
        ],
        "instance": record._holder.instance_id,  # noqa: SLF001
        "seconds_left": record.seconds_left,
    }  # fmt: skip


def _from_wire(record: Record, answer: dict[str, Any]) -> Outcome:
    error = ErrorReport(**answer["error"]) if answer["error"] else None
    if answer["kind"] in ("settled", "lost"):
        record._state = answer["kind"]  # noqa: SLF001
    return Outcome(record, answer["kind"], answer["result"], error, answer["delay"], answer["reason"])


# -- in the child -------------------------------------------------------------------------------------------


def _child_main(
    pipe: Connection, address: str, settings: dict[str, Any], log_format: log.LogFormat | None
) -> None:
    from rowlock.settings import Settings  # noqa: PLC0415 - only the child needs it at run time

    # Ctrl-C at a terminal reaches the whole group; it is the parent's to say what becomes of a record.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if log_format is not None:
        log.set_up(log_format)
    flow = find_flow(address)
    ledger = Ledger.open(Settings(**settings))
    pipe.send_bytes(b"ready")
    while True:
        try:
            wire = json.loads(pipe.recv_bytes())
        except EOFError:
            return
        pipe.send_bytes(json.dumps(_serve(flow, ledger, wire)).encode())


def _serve(flow: Flow, ledger: Ledger, wire: list[dict[str, Any]]) -> list[dict[str, Any]]:
    settled: dict[int, Outcome] = {}
    records = [_record(item, ledger, flow.timeout, settled) for item in wire]
    for outcome in perform(flow, records):
        settled[outcome.record.id] = outcome
    return [_answer(settled[record.id]) for record in records]


def _record(
    item: dict[str, Any], ledger: Ledger, timeout: float | None, settled: dict[int, Outcome]
) -> Record:
    # The parent renews the lease, and ends this process when it is lost; a parent that is gone renews nothing.
    parent = os.getppid()
    holder = Holder(
        ledger=ledger,
        instance_id=item["instance"],
        seconds_left=lambda: float(item["seconds_left"]) if os.getppid() == parent else 0.0,
        settle=lambda outcome: settled.__setitem__(outcome.record.id, outcome),
        timeout=timeout,
    )
    record = Record(Held(*item["held"]), holder)
    record._started = clock.monotonic()  # noqa: SLF001
    return record


def _answer(outcome: Outcome) -> dict[str, Any]:
    error = outcome.error
    fields = (
        {name: getattr(error, name) for name in ("type", "message", "traceback", "fingerprint")}
        if error
        else None
    )
    return {
        "kind": outcome.kind,
        "result": outcome.result,
        "error": fields,
        "delay": outcome.delay,
        "reason": outcome.reason,
    }


def find_flow(address: str) -> Flow:
    """The flow whose handler has this address, in a process that has just started."""
    module_name, qualname = address.split(":")
    # Spawned children know the parent's script under this name.
    module = (
        sys.modules.get("__mp_main__") if module_name == "__main__" else importlib.import_module(module_name)
    )
    handler: Any = module
    for part in qualname.split("."):
        handler = getattr(handler, part, None)
    flow: Flow | None = getattr(handler, "flow", None)
    if flow is None:
        raise ConfigurationError(
            f"executor='process' needs a handler that a new process can import; {address} is not one. "
            "Define it at the top level of a module."
        )
    return flow
