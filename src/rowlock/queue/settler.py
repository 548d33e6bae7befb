"""The settler: turns outcomes into the ledger's statements, in batches, and never guesses."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rowlock.ledger.rows import Completion, Failure, Release
from rowlock.queue.payload import clean_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlock.leases.instance import Counters
    from rowlock.ledger.ledger import Ledger
    from rowlock.ledger.rows import Held, Wish
    from rowlock.queue.flow import Flow
    from rowlock.queue.outcome import Outcome

logger = logging.getLogger("rowlock.worker")

_REASON_LIMIT = 2_000


class Settler:
    """Holds what is finished and not yet settled; a failed statement leaves it here to be tried again."""

    def __init__(self, ledger: Ledger, flows: Mapping[str, Flow], counters: Counters) -> None:
        self._ledger = ledger
        self._flows = flows
        self._counters = counters
        self._completions: dict[int, Completion] = {}
        self._failures: dict[int, Failure] = {}
        self._releases: dict[int, Release] = {}

    @property
    def pending(self) -> int:
        return len(self._completions) + len(self._failures) + len(self._releases)

    def take(self, outcome: Outcome) -> None:
        """Accepts an outcome for the next exchange."""
        record = outcome.record
        match outcome.kind:
            case "completed":
                self._completions[record.id] = Completion(record.id, record.token, outcome.result)
            case "settled":
                self._counters.add(completed=1)
            case "lost":
                self._counters.add(stale_refused=1)
            case "postponed":
                self.release(record.id, record.token, outcome.delay, outcome.reason)
            case _:
                self._failures[record.id] = to_failure(self._flows[record.flow], outcome)

    def holds(self, id_: int) -> bool:
        """True for a record that is finished here and waits to be settled."""
        return id_ in self._completions or id_ in self._failures or id_ in self._releases

    def release(self, id_: int, token: int, delay: float = 0.0, reason: str | None = None) -> None:
        """The record goes back, its attempt unspent."""
        text = None if reason is None else clean_text(reason, _REASON_LIMIT)
        self._releases[id_] = Release(id_, token, delay, text)

    def exchange(self, holder: int, wishes: list[Wish]) -> list[Held]:
        """Settles everything pending and claims what is wished for.

        When this raises LedgerUnavailable, `recover` finds out what was applied.
        """
        if self._failures:
            failures = list(self._failures.values())
            done = self._ledger.fail(holder, failures)
            self._clear(self._failures, done)
            self._counters.add(failed=len(done))
        if self._releases:
            releases = list(self._releases.values())
            refused = len(releases) - len(self._ledger.release(holder, releases))
            self._counters.add(stale_refused=refused)
            self._releases.clear()  # what was refused has been taken over: it is no longer ours to hand back
        if not self._completions and not wishes:
            return []
        settled, claimed = self._ledger.exchange(holder, list(self._completions.values()), wishes)
        if self._completions:
            self._counters.add(completed=len(settled))
            self._clear(self._completions, settled)
        return claimed

    def recover(self) -> None:
        """After a lost reply: asks by token what was applied; what was not stays pending."""
        for pending in (self._completions, self._failures, self._releases):
            if pending:
                fates = self._ledger.reread({id_: row.token for id_, row in pending.items()})
                for id_, fate in fates.items():
                    if fate != "held":
                        self._end(pending.pop(id_), fate)

    def _clear(self, pending: dict[int, Completion] | dict[int, Failure], settled: set[int]) -> None:
        refused = pending.keys() - settled
        if refused:
            tokens = {id_: pending[id_].token for id_ in refused}
            for id_, fate in self._ledger.reread(tokens).items():
                self._end(pending[id_], fate)
        pending.clear()

    def _end(self, row: Completion | Failure | Release, fate: str) -> None:
        if isinstance(row, Release):
            return  # handed back, or taken over: not ours any more, either way
        if fate == "settled":  # by our own earlier statement, whose reply was lost
            self._counters.add(completed=isinstance(row, Completion), failed=isinstance(row, Failure))
        else:
            self._counters.add(stale_refused=1)
            logger.warning("record %s: the token %s is stale; the outcome was refused", row.id, row.token)


def to_failure(flow: Flow, outcome: Outcome) -> Failure:
    """Later again, or dead: by the flow's policy."""
    record, error = outcome.record, outcome.error
    assert error is not None  # noqa: S101 - every outcome but the happy ones has its error
    deaths = 1 if outcome.kind == "died" else 0
    reason, final = error.summary, outcome.kind == "rejected"
    if deaths and record.deaths + deaths >= flow.max_deaths:
        final, reason = True, f"its workers died {record.deaths + deaths} times"
    elif not final and record.attempt >= flow.max_attempts:
        final, reason = True, f"failed {record.attempt} times; at last {error.summary}"
    return Failure(
        id=record.id,
        token=record.token,
        final=final,
        delay=0.0 if final else flow.backoff.delay(record.attempt),
        reason=reason,
        outcome=outcome.kind,
        error_type=error.type,
        message=error.message,
        traceback=error.traceback,
        fingerprint=error.fingerprint,
        deaths=deaths,
    )
