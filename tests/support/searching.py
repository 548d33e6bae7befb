"""State machines over a ledger: Hypothesis tries orders of events, on each dialect, with a clock that can be moved."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from rowlock.ledger.ledger import Ledger
from rowlock.ledger.ledger_clock import LedgerClock
from tests.support.ledgers import make_settings


def search(machine, kind, tmp_path, request) -> None:
    server = request.getfixturevalue("postgres").url if kind == "postgresql" else None
    with Ledger.open(make_settings(kind, tmp_path, server)) as ledger:
        ledger.schema.migrate()
        with LedgerClock(ledger) as clock:
            machine.ledger, machine.clock = ledger, clock
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=int(os.environ.get("ROWLOCK_PROTOCOL_EXAMPLES", "60")),
                    stateful_step_count=30,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
