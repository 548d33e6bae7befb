"""`rowlock locks` and `rowlock why lock:NAME`, on both dialects, with real holders and real waiters."""

import threading
from contextlib import contextmanager

import pytest
from tests.support.ledgers import register
from tests.support.waiting import eventually

from rowlock import LeaseLost, Rowlock
from rowlock.ledger.lock_table import Wanted

pytestmark = pytest.mark.usefixtures("cli_ledger")  # first of all: the app reads the settings it makes


@pytest.fixture
def other(cli_ledger):
    """Another program on the same ledger."""
    with Rowlock() as app:
        yield app


@contextmanager
def waiting(app, name, cli):
    """Somebody stands in line for the lock; gone when the block ends."""
    before = len(cli.json("locks", "show", name)["waiters"])
    held = []
    thread = threading.Thread(target=lambda: held.append(app.lock(name, wait=30).acquire()))
    thread.start()
    eventually(lambda: len(cli.json("locks", "show", name)["waiters"]) == before + 1, "the waiter")
    yield
    thread.join()
    for lease in held:
        lease.release()


def test_nothing_is_held(cli, cli_ledger):
    assert "No lock is held" in cli.ok("locks", "list")
    assert "No locks yet" in cli.ok("locks", "list", "--all")
    assert cli.json("locks", "list") == []


def test_a_lock_that_is_held_and_waited_for(cli, cli_app, other):
    lease = cli_app.lock("edgar", ttl=60, note="polls the site").acquire()
    with waiting(other, "edgar", cli):
        [one] = cli.json("locks", "list")
        assert (one["name"], one["state"], one["token"], one["waiting"]) == ("edgar", "held", lease.token, 1)
        assert (one["holder"], one["holder_state"], one["holder_alive"]) == (
            cli_app.locks.instance.id, "active", True,
        )  # fmt: skip
        assert 0 < one["seconds_left"] <= 60
        table = cli.ok("locks", "list")
        assert "polls the site" in table
        assert "slot" not in table, "there is only one"
        shown = cli.ok("locks", "show", "edgar")
        assert f"held, token {lease.token}" in shown
        assert f"waits 1   instance {other.locks.instance.id}" in shown
        assert "1 holding, none overlap, tokens rise." in shown
        lease.release()
    assert cli.json("locks", "list") == []
    [free] = cli.json("locks", "list", "--all")
    assert (free["state"], free["held_for"], free["seconds_left"]) == ("free", None, None)
    assert "free" in cli.ok("locks", "list", "--all")


def test_the_history_says_who_held_it_and_how_it_ended(cli, cli_app):
    for _ in range(3):
        with cli_app.lock("edgar"):
            pass
    shown = cli.json("locks", "show", "edgar", "--limit", "2")
    assert [one["ended"] for one in shown["history"]] == ["released", "released"]
    assert shown["history"][0]["token"] > shown["history"][1]["token"]
    assert shown["check"] == {"holdings": 3, "overlaps": [], "good": True}
    text = cli.ok("locks", "show", "edgar")
    assert "3 holdings, none overlap, tokens rise." in text
    assert "free; the last token was 5" in text


@pytest.mark.parametrize("damage", ["acquired_at = acquired_at - {}", "ended_at = ended_at + {}"])
def test_two_holders_are_found_out(cli, cli_app, cli_sql, cli_dialect, damage):
    for _ in range(2):
        with cli_app.lock("edgar"):
            pass
    hour = "3600" if cli_dialect == "sqlite" else "interval '1 hour'"
    first, second = sorted(one["token"] for one in cli.json("locks", "show", "edgar")["history"])
    token = second if "acquired" in damage else first
    cli_sql(f"UPDATE {{}}lock_holdings SET {damage.format(hour)} WHERE token = {token}")
    result = cli("locks", "show", "edgar")
    assert result.exit_code == 1
    assert "2 holdings, AND SOME OVERLAP" in result.stdout
    assert f"token {second} (instance" in result.stdout
    assert cli("locks", "show", "edgar", "--json").exit_code == 1


def test_slots_of_a_limit_are_shown_and_freed_one_by_one(cli, cli_app):
    locks, instance = cli_app.ledger.locks, register(cli_app.ledger)
    locks.create("limit:sec.gov", 3)
    for request in (1, 2):
        assert locks.take(Wanted("limit:sec.gov", 3, instance, request, 60.0, None))
    assert [one["slot"] for one in cli.json("locks", "list")] == [0, 1]
    assert "slot" in cli.ok("locks", "list")
    assert "say which, --slot 0, 1" in cli.refused("locks", "release", "limit:sec.gov", "--force")
    assert "has no slot 7" in cli.refused("locks", "release", "limit:sec.gov", "--slot", 7)
    cli.ok("locks", "release", "limit:sec.gov", "--slot", 1, "--force")
    assert [one["slot"] for one in cli.json("locks", "list")] == [0]
    assert "1 of its 3 slots" not in cli.ok("why", "lock:limit:sec.gov")
    assert "2 of its 3 slots are free" in cli.ok("why", "lock:limit:sec.gov")


# -- release -----------------------------------------------------------------------------------------------------


def test_a_living_holder_keeps_it_unless_forced(cli, cli_app, other):
    with pytest.raises(LeaseLost, match=r"forced, by .*@.*: stuck"), cli_app.lock("edgar", ttl=3) as lease:
        error = cli.refused("locks", "release", "edgar")
        assert f"held by instance {cli_app.locks.instance.id}" in error
        assert "which is alive" in error
        assert "--force" in error
        lease.check()
        result = cli("locks", "release", "edgar", "--force", "--reason", "stuck")
        assert result.exit_code == 0
        assert "is ALIVE" in result.stderr
        assert f"token {lease.token} of instance" in result.stdout
        with other.try_lock("edgar") as second:
            assert second.token > lease.token
        assert lease.lost.wait(30)
        lease.check()
    [_, forced] = cli.json("locks", "show", "edgar")["history"]
    assert forced["ended"] == "forced"
    assert forced["detail"].endswith(": stuck")
    assert "@" in forced["detail"]


def test_a_dead_holder_loses_it_without_force(cli, cli_app, cli_sql):
    ledger, instance = cli_app.ledger, register(cli_app.ledger)
    ledger.locks.create("edgar", 1)
    ledger.locks.take(Wanted("edgar", 1, instance, 1, 600.0, None))
    cli_sql(f"UPDATE {{}}service_instances SET state = 'dead' WHERE id = {instance}")
    assert "To free it now: `rowlock locks release edgar`" in cli.ok("why", "lock:edgar")
    result = cli("locks", "release", "edgar")
    assert result.exit_code == 0
    assert "ALIVE" not in result.stderr
    assert "is free already" in cli.ok("locks", "release", "edgar")
    assert cli.json("locks", "release", "edgar") == {
        "name": "edgar", "released": False, "holder_alive": False, "was": None,
    }  # fmt: skip


def test_one_that_has_run_out_is_just_freed(cli, cli_app, cli_sql):
    ledger, instance = cli_app.ledger, register(cli_app.ledger)
    ledger.locks.create("edgar", 1)
    held = ledger.locks.take(Wanted("edgar", 1, instance, 1, 60.0, None))
    cli_sql("UPDATE {}service_locks SET expires_at = acquired_at")
    assert cli.json("locks", "list")[0]["state"] == "expired"
    assert "let it run out" in cli.ok("why", "lock:edgar")
    assert "had run out" in cli.ok("locks", "release", "edgar")
    [ended] = cli.json("locks", "show", "edgar")["history"]
    assert (ended["ended"], ended["token"]) == ("expired", held.token)
    assert cli.json("locks", "list", "--all")[0]["token"] > held.token


def test_a_holding_that_began_meanwhile_is_not_ended(cli_app, cli_ledger):
    ledger = cli_app.ledger
    with cli_app.lock("edgar") as lease:
        assert ledger.locks.force("edgar", 0, "late", lease.token - 1) is None
        lease.check()
        with lease.transaction():
            pass


def test_a_lock_that_nobody_has_taken(cli, cli_ledger):
    for command in (["locks", "show", "typo"], ["locks", "release", "typo"], ["why", "lock:typo"]):
        assert "There is no lock 'typo'" in cli.refused(*command)
    assert "There is no record 'typo'" in cli.refused("why", "typo")


# -- why ---------------------------------------------------------------------------------------------------------


def test_why_says_who_holds_it_and_who_waits(cli, cli_app, other):
    lease = cli_app.lock("edgar", note="polls").acquire()
    with waiting(other, "edgar", cli):
        found = cli.json("why", "lock:edgar")
        assert found["state"] == "held"
        assert [reason["gate"] for reason in found["reasons"]] == ["held", "waiters"]
        text = cli.ok("why", "edgar")
        assert text.startswith(f"Lock edgar is held. It is held by instance {cli_app.locks.instance.id} (")
        assert "(polls)" in text
        assert f"token {lease.token}" in text
        assert f"1 waits for it, in this order: instance {other.locks.instance.id}" in text
        assert all(reason["text"].endswith(".") for reason in found["reasons"])
        lease.release()
    text = cli.ok("why", "lock:edgar")
    assert text.startswith("Lock edgar is free. Whoever asks for it has it. It was last held by instance")


def test_a_record_of_that_name_comes_first(cli, cli_app):
    with cli_app.lock("a"), cli_app.lock("b"):
        cli_app.enqueue("gentle", 1, key="a")
        cli_app.enqueue("gentle", 1, key="lock:c")
        assert cli.ok("why", "a").startswith("Record ")
        assert cli.ok("why", "lock:a").startswith("Lock a ")
        assert cli.ok("why", "b").startswith("Lock b ")
        assert cli.ok("why", "lock:c").startswith("Record ")
