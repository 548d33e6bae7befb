"""What an instance counts is added to the fleet's totals by its heartbeat, and is not lost with an outage."""

from __future__ import annotations

import pytest

from rowlock.errors import LeaseLost, LedgerUnavailable
from rowlock.leases.instance import Instance
from rowlock.leases.tally import Tally


def totals(ledger):
    return {(row.metric, row.subject, row.part): row.value for row in ledger.run("tallies")}


def test_two_instances_add_to_the_same_totals(ledger):
    for amount in (1, 2):
        tally = Tally()
        tally.add("claims", "score", amount)
        tally.observe("queue_wait", "score", [0.005, 9999.0])
        tally.write(ledger)
        tally.write(ledger)
    found = totals(ledger)
    assert found["claims", "score", ""] == 3
    assert found["queue_wait", "score", "0.005"] == 2
    assert found["queue_wait", "score", "inf"] == 2
    assert found["queue_wait", "score", "sum"] == pytest.approx(2 * (0.005 + 9999))


def test_what_could_not_be_written_is_written_the_next_time(ledger, monkeypatch):
    tally = Tally()
    tally.add("claims", "score")

    def away(*_, **__):
        tally.add("claims", "score")  # meanwhile
        raise LedgerUnavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(ledger, "run", away)
        with pytest.raises(LedgerUnavailable):
            tally.write(ledger)
    tally.write(ledger)
    assert totals(ledger)["claims", "score", ""] == 2


def test_an_instance_tells_what_it_did_as_it_ends(ledger, settings):
    instance = Instance(settings)
    instance.start()
    assert abs(instance.ledger_time - ledger.now()) < 5
    instance.tally.add("claims", "score")
    instance.forfeit("a test")
    instance.stop()
    found = totals(ledger)
    assert (found["claims", "score", ""], found["leases_lost", "instance", ""]) == (1, 1)


def test_elections_and_lost_leases_are_counted(app):
    with app.leader("reports") as election:
        assert election.wait(10)
    with pytest.raises(LeaseLost), app.lock("edgar") as lease:
        lease.lose("a test")
    app.close()
    found = totals(app.ledger)
    assert (found["leases_lost", "taken", ""], found["leader_changes", "", ""]) == (1, 1)
