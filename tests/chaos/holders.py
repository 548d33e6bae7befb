"""Processes that hold locks, for the chaos tests: one that does what it is told, one that works, many that contend.

Usage: python -m tests.chaos.holders (obey|loop|contend) NAME…
"""

from __future__ import annotations

import logging
import os
import random
import sys
import time

from rowlock import LeaseLost, LedgerError, LockHeld, Rowlock, clock

TTL = float(os.environ.get("HOLDER_TTL", "1"))
app = Rowlock()
SCHEMA = "" if app.settings.ledger_url.startswith("sqlite") else f'"{app.settings.ledger_schema}".'
INSERT = f"INSERT INTO {SCHEMA}fenced_log (name, token, pid) VALUES (:name, :token, :pid)"


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 - the test reads it


def entry(lease) -> dict[str, object]:
    return {"name": lease.name, "token": lease.token, "pid": os.getpid()}


class Obedient:
    """Holds a lock; one command a line, one answer a line."""

    def __init__(self, name: str) -> None:
        self.lease = app.lock(name, ttl=TTL).acquire()
        self.tx = self.lease.transaction()
        say("held", self.lease.token)

    def begin(self) -> str:
        """A transaction that is open, but has not come to its fence."""
        self.tx.__enter__()
        self.tx.execute(INSERT, entry(self.lease))
        return "begun"

    def commit(self) -> str:
        self.tx.__exit__(None, None, None)
        return "committed"

    def fence(self) -> str:
        """A transaction of its own, which asks nobody but the ledger."""
        from sqlalchemy import text

        with app.ledger.engine.begin() as connection:
            connection.execute(text(INSERT), entry(self.lease))
            self.lease.fence(connection)
        return "committed"

    def check(self) -> str:
        self.lease.check()
        return "held"

    def lost(self) -> str:
        return f"lost {self.lease.lost.wait(30)}"

    def renewed(self) -> str:
        """After two more renewals."""
        for _ in range(2):
            before = self.lease.deadline
            while self.lease.deadline == before:
                self.lease.check()
                self.lease.lost.wait(0.02)  # time.sleep fails under libfaketime
        return "renewed"

    def time(self) -> str:
        return str(time.time())


def obey(name: str) -> None:
    holder = Obedient(name)
    for line in sys.stdin:
        try:
            say(getattr(holder, line.strip())())
        except LeaseLost as error:
            say("LeaseLost", error)


def loop(name: str) -> None:
    """Unfenced work, a unit at a time: each one asks first."""
    with app.lock(name, ttl=TTL) as lease:
        say("held", lease.token)
        while True:
            lease.check()
            say("unit", clock.monotonic())
            time.sleep(0.02)


def contend(*names: str) -> None:
    """Takes one lock after another, and writes under each."""
    while True:
        try:
            with app.lock(random.choice(names), ttl=TTL, wait=5) as lease:
                for _ in range(random.randint(1, 10)):
                    with lease.transaction() as tx:
                        tx.execute(INSERT, entry(lease))
                    time.sleep(random.uniform(0, 0.02))
        except (LeaseLost, LockHeld, LedgerError) as error:
            say(type(error).__name__)


if __name__ == "__main__":
    logging.basicConfig(level="ERROR")
    {"obey": obey, "loop": loop, "contend": contend}[sys.argv[1]](*sys.argv[2:])
