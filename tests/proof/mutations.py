"""Faults put into a copy of the package, on purpose: each takes away one line that keeps a promise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SQL = "ledger/sql/{}/{}.sql"


@dataclass(frozen=True)
class Edit:
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutation:
    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]  # each of these has to go red

    def apply(self, folder: Path) -> Path:
        """A mutated copy of the package; what to put on PYTHONPATH."""
        ignored = shutil.ignore_patterns("__pycache__")
        package = shutil.copytree(ROOT / "src" / "rowlock", folder / "rowlock", ignore=ignored)
        for edit in self.edits:
            path = package / edit.file
            text = path.read_text(encoding="utf-8")
            assert text.count(edit.old) >= 1, f"{self.name}: {edit.file} has no {edit.old!r} any more"
            path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
        return folder


def run(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a module of the mutated copy, or of whatever uses it."""
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170,
        check=False,
    )  # fmt: skip


MUTATIONS = (
    Mutation(
        "settling does not ask for the token",
        (
            Edit(SQL.format("postgresql", "exchange"), " AND q.token = s.token", ""),
            Edit(SQL.format("sqlite", "complete_history"), " AND token = :token", ""),
            Edit(SQL.format("sqlite", "leave_queue"), " AND token = :token", ""),
        ),
        ("tests/ledger/test_takeover.py::test_the_zombie_is_refused_and_the_new_holder_is_not",),
    ),
    Mutation(
        "renewing does not ask for the token",
        (
            Edit(SQL.format("postgresql", "locks_renew"), " AND l.token = k.token", ""),
            Edit(SQL.format("sqlite", "locks_renew"), " AND service_locks.token = k.token", ""),
        ),
        ("tests/ledger/test_locks.py::test_an_expired_lease_is_taken_over_and_its_holder_is_refused",),
    ),
    Mutation(
        "record.transaction() does not ask for the token",
        (
            Edit(SQL.format("postgresql", "complete"), " AND token = %(token)s", ""),
            Edit(SQL.format("sqlite", "complete_history"), " AND token = :token", ""),
            Edit(SQL.format("sqlite", "leave_queue"), " AND token = :token", ""),
        ),
        ("tests/queue/test_transaction.py::test_a_stale_holders_commit_fails_and_leaves_nothing",),
    ),
    Mutation(
        "effect and completion are two transactions",
        (
            Edit(
                "queue/transaction.py",
                "        on = LedgerConnection(connection, self._ledger.statements)\n",
                "        connection.commit()\n        connection.begin()\n"
                "        on = LedgerConnection(connection, self._ledger.statements)\n",
            ),
        ),
        ("tests/queue/test_transaction.py::test_a_stale_holders_commit_fails_and_leaves_nothing",),
    ),
    Mutation(
        "the row count of a completion is ignored",
        (
            Edit(
                "queue/transaction.py",
                "        if not fenced:\n",
                "        if not fenced and not record.id:\n",
            ),
        ),
        ("tests/queue/test_transaction.py::test_a_stale_holders_commit_fails_and_leaves_nothing",),
    ),
    Mutation(
        "the reaper does not raise the token",
        (
            Edit(SQL.format("postgresql", "takeover"), "token = q.token + 1,", "token = q.token,"),
            Edit(SQL.format("sqlite", "takeover_return"), "token = token + 1,", "token = token,"),
        ),
        ("tests/ledger/test_takeover.py::test_the_zombie_is_refused_even_before_anybody_claimed_again",),
    ),
    Mutation(
        "deadlines are compared with the client's clock",
        (
            Edit(
                "ledger/connection.py",
                "        result = self.connection.exec_driver_sql(self._statements[name], params)\n",
                "        import re, time\n"
                "        moved = name.startswith('clock_')  # the tests' own: it makes the function\n"
                "        client = r'\\g<0>' if moved else f'to_timestamp({time.time()})'\n"
                "        statement = re.sub(r'[a-z0-9_\"]+[.]ledger_time[(][)]', client, self._statements[name])\n"
                "        result = self.connection.exec_driver_sql(statement, params)\n",
            ),
        ),
        (  # a SQLite ledger lives on one machine, whose clock is its own
            "tests/ledger/test_locks.py::test_an_expired_lease_is_not_renewed_even_if_nobody_took_it[postgresql]",
            "tests/ledger/test_takeover.py::test_a_takeover_is_kept_as_an_attempt[postgresql]",
        ),
    ),
)
