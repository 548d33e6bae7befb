"""Locks as a program uses them: in threads, on event loops, lost, waited for, misused."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rowlock import InvalidInput, LeaseLost, LockHeld, OutcomeUnknown, Refused
from rowlock.databases.engine import is_connection_lost
from tests.support.ledgers import LedgerClock, sql
from tests.support.waiting import eventually


@pytest.fixture
def other(app, make_app):
    """Another program on the same ledger."""
    return make_app(on=app)


def held_by(app, name="x"):
    return app.ledger.locks.look(name)[0].holder


def test_one_holder_in_the_fleet(app, other):
    with app.lock("x") as lease:
        assert lease.held
        assert lease.token == 1
        assert 0 < lease.seconds_left <= 54
        assert other.try_lock("x") is None
    assert not lease.held
    with other.try_lock("x") as again:
        assert again.token > lease.token


def test_of_three_contenders_exactly_one_wins_every_time(app, make_app):
    """A thousand rounds: nobody twice, nobody never."""
    apps = [app, make_app(on=app), make_app(on=app)]
    rounds, won = 1000, []
    barrier = threading.Barrier(3)

    def contend(mine) -> None:
        for number in range(rounds):
            barrier.wait()
            lease = mine.try_lock(f"round-{number}", ttl=60)
            if lease is not None:
                won.append(number)
            barrier.wait()
            if lease is not None:
                lease.release()

    threads = [threading.Thread(target=contend, args=(one,)) for one in apps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(rounds))


def test_try_lock_gives_a_lease_that_is_a_context_manager(app, other):
    lease = app.try_lock("x", note="importing")
    with lease:
        assert app.ledger.locks.look("x")[0].note == "importing"
    assert other.try_lock("x")


def test_a_wait_that_is_over_says_who_holds_it(app, other):
    with app.lock("x", note="the nightly import"):
        with pytest.raises(LockHeld, match=r"'x' is held by instance \d+ .*the nightly import.*waited 0.1 s"):
            other.lock("x", wait=0.1).acquire()
        with pytest.raises(LockHeld, match="rowlock locks show x"), other.lock("x", wait=0):
            pass
    assert sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 0


def test_waiters_are_served_in_order_of_arrival(app, make_app):
    order = []
    threads = []

    def wait_for_it(program, number) -> None:
        with program.lock("x", wait=60):
            order.append(number)

    def waiting() -> int:
        return sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0]

    with app.lock("x"):
        for number in range(6):
            program = make_app(on=app) if number % 2 else app
            thread = threading.Thread(target=wait_for_it, args=(program, number))
            thread.start()
            threads.append(thread)
            eventually(lambda n=number: waiting() == n + 1, "the next waiter")
    for thread in threads:
        thread.join()
    assert order == list(range(6))


def test_a_waiter_is_woken_by_the_release_and_does_not_wait_for_its_poll(make_app):
    app = make_app(poll_seconds=3600)
    other = make_app(on=app)
    got = threading.Event()

    def wait_for_it() -> None:
        with other.lock("x", wait=3600):
            got.set()

    thread = threading.Thread(target=wait_for_it)
    with app.lock("x"):
        thread.start()
        eventually(lambda: other.locks._bells, "the waiter")
        eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 1)
        assert not got.is_set()
    assert got.wait(30)
    thread.join()


def test_the_next_in_line_takes_over_when_the_holder_is_silent(app, other):
    lease = app.try_lock("x", ttl=1)
    app.locks.keeper.drop(lease)  # as if its process had been killed: nobody renews it
    with other.lock("x", wait=30) as taken:
        assert taken.token > lease.token


# -- misuse ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ttl", [0, 0.99, -1, 86401, float("nan")])
def test_a_ttl_out_of_range_is_refused(app, ttl):
    with pytest.raises(InvalidInput, match="ttl"):
        app.lock("x", ttl=ttl)


@pytest.mark.parametrize("wait", [-1, -0.001, float("nan")])
def test_a_wait_below_zero_is_refused(app, wait):
    with pytest.raises(InvalidInput, match="wait"):
        app.lock("x", wait=wait)


@pytest.mark.parametrize("name", ["", "  ", "x" * 256, "a\nb", None, 7])
def test_a_name_that_is_none_is_refused(app, name):
    with pytest.raises(InvalidInput, match="name"):
        app.lock(name)


def test_the_longest_name_will_do(app):
    with app.lock("ž" * 255) as lease:
        assert lease.held


def test_a_nested_lock_of_the_same_name_is_an_error_and_no_deadlock(app):
    with app.lock("x"):
        with pytest.raises(Refused, match="already holds 'x'"), app.lock("x"):
            pass
        with pytest.raises(Refused):
            app.try_lock("x")
        with app.lock("y"):
            pass


def test_a_nested_lock_in_one_task_is_an_error_and_another_task_waits(app):
    async def rival() -> int:
        async with app.lock("x", wait=30) as lease:
            return lease.token

    async def main() -> None:
        async with app.lock("x") as lease:
            with pytest.raises(Refused):
                await app.lock("x").aacquire()
            waiting = asyncio.create_task(rival())
            await asyncio.sleep(0)
        assert await waiting > lease.token

    asyncio.run(main())


def test_one_lock_object_is_one_use_at_a_time(app):
    lock = app.lock("x")
    with lock, pytest.raises(Refused, match="one for each use"):
        lock.__enter__()
    with lock:
        pass


# -- loss ------------------------------------------------------------------------------------------------------


def test_a_lost_lease_tells_a_plain_holder_and_raises_at_the_end(app, other):
    with pytest.raises(LeaseLost, match="by an operator"), app.lock("x", ttl=1) as lease:
        other.ledger.locks.force("x", 0, "by an operator")
        assert lease.lost.wait(30), "the heartbeat finds out"
        assert not lease.held
        assert lease.seconds_left == 0
        with pytest.raises(LeaseLost):
            lease.check()


def test_a_lost_lease_does_not_hide_the_error_of_the_block(app, other):
    with pytest.raises(ZeroDivisionError), app.lock("x", ttl=1) as lease:
        other.ledger.locks.force("x", 0, "by an operator")
        lease.lost.wait(30)
        _ = 1 / 0


def test_a_lease_that_was_taken_away_unnoticed_is_noticed_at_the_release(app, other):
    with pytest.raises(LeaseLost, match="taken it away"), app.lock("x", ttl=3600) as lease:
        other.ledger.locks.force("x", 0, "by an operator")
    assert lease.lost.is_set()


def test_losing_it_cancels_an_async_holder(app, other):
    async def hold() -> None:
        async with app.lock("x", ttl=1):
            other.ledger.locks.force("x", 0, "by an operator")
            await asyncio.sleep(3600)

    async def main() -> None:
        with pytest.raises(LeaseLost, match="by an operator"):
            await hold()
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)  # the task itself goes on

    asyncio.run(main())


def test_a_cancelled_holder_stays_cancelled_and_gives_the_lease_back(app, other):
    async def hold(entered: asyncio.Event) -> None:
        async with app.lock("x"):
            entered.set()
            await asyncio.sleep(3600)

    async def main() -> None:
        entered = asyncio.Event()
        task = asyncio.create_task(hold(entered))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert other.try_lock("x")


def test_a_cancelled_waiter_leaves_the_line(app, other):
    async def main() -> None:
        task = asyncio.create_task(other.lock("x").aacquire())
        await asyncio.to_thread(eventually, lambda: other.locks._bells, "the waiter")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with app.lock("x"):
        asyncio.run(main())
        eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 0)


def test_hundreds_of_tasks_wait_without_a_thread_each(app):
    async def one(running: list[int], most: list[int]) -> None:
        async with app.lock("x"):
            running.append(1)
            most.append(len(running))
            running.pop()

    async def main() -> None:
        most: list[int] = []
        running: list[int] = []
        await asyncio.gather(*(one(running, most) for _ in range(60)))
        assert most == [1] * 60

    asyncio.run(main())


def test_renewals_keep_a_lease_for_longer_than_its_ttl(app, other):
    with app.lock("x", ttl=1) as lease:
        first = lease.deadline
        eventually(lambda: lease.deadline > first + 1.5, "several renewals")
        assert lease.held
        assert other.try_lock("x") is None


def test_a_holder_whose_renewals_fail_stops_before_the_ledger_gives_the_lease_away(app, monkeypatch, caplog):
    with pytest.raises(LeaseLost, match="could not be renewed in time"), app.lock("x", ttl=1) as lease:
        break_renewals(app, monkeypatch)
        assert lease.lost.wait(30)
        (row,) = app.ledger.locks.look("x")
        assert row.holder is not None
        assert row.seconds_left > 0, "the local deadline ends before the ledger's"
    assert "could not be renewed" in caplog.text


def break_renewals(app, monkeypatch) -> None:
    from rowlock import LedgerUnavailable

    def broken(*_args):
        raise LedgerUnavailable("the cable is out")

    monkeypatch.setattr(app.locks.keeper._heartbeat.locks, "renew", broken)


def test_closing_the_app_gives_everything_back(app, other):
    app.try_lock("x")
    app.try_lock("y")
    app.close()
    assert other.try_lock("x")
    assert other.try_lock("y")


def test_a_thousand_leases_are_renewed_by_one_statement(app, monkeypatch):
    keeper = app.locks.keeper
    statements = []
    real = keeper._heartbeat.locks.renew
    monkeypatch.setattr(
        keeper._heartbeat.locks,
        "renew",
        lambda holder, held: statements.append(len(held)) or real(holder, held),
    )
    leases = [app.lock(f"n{number}", ttl=600).acquire() for number in range(1000)]
    for held in keeper._renew_at:
        keeper._renew_at[held] = 0.0
    keeper.renew()
    assert set(statements) == {1000}  # the heartbeat may have been quicker, and done the same
    assert all(lease.held for lease in leases)


# -- fenced transactions ---------------------------------------------------------------------------------------


@pytest.fixture
def log(app):
    schema = '"' + app.settings.ledger_schema + '".' if app.ledger.dialect == "postgresql" else ""
    sql(app.ledger, "CREATE TABLE {s}fenced_log (token bigint, who text)")
    return f"{schema}fenced_log"


def rows(app) -> list:
    return [tuple(row) for row in sql(app.ledger, "SELECT token, who FROM {s}fenced_log ORDER BY token")]


def test_a_holder_writes(app, log):
    with app.lock("x") as lease:
        for who in ("a", "b"):
            with lease.transaction() as tx:
                tx.execute(f"INSERT INTO {log} VALUES (:token, :who)", {"token": lease.token, "who": who})
    assert rows(app) == [(1, "a"), (1, "b")]


def test_a_stale_holders_commit_fails_and_leaves_nothing(app, other, log):
    lease = app.lock("x", ttl=3600).acquire()
    with (
        pytest.raises(LeaseLost, match="nothing of this transaction is committed"),
        lease.transaction() as tx,
    ):
        tx.execute(f"INSERT INTO {log} VALUES (:token, 'stale')", {"token": lease.token})
        force_from_outside(other, tx)
    assert lease.lost.is_set()
    assert rows(app) == []


def force_from_outside(other, tx) -> None:
    """SQLite has one writer at a time: there the lease can only be lost before or after."""
    if other.ledger.dialect == "sqlite":
        tx.connection.exec_driver_sql("UPDATE service_locks SET token = token + 1")
    else:
        other.ledger.locks.force("x", 0, "by an operator")


def test_an_expired_holders_commit_fails_though_nobody_took_the_lease(app, log, monkeypatch):
    clock = LedgerClock(app.ledger, monkeypatch)
    with pytest.raises(LeaseLost), app.lock("x", ttl=3600) as lease:
        clock.advance(3601)
        with pytest.raises(LeaseLost), lease.transaction() as tx:
            tx.execute(f"INSERT INTO {log} VALUES (1, 'late')")
    assert rows(app) == []


def test_an_error_in_the_block_rolls_back(app, log):
    with app.lock("x") as lease:
        with pytest.raises(ZeroDivisionError), lease.transaction() as tx:
            tx.execute(f"INSERT INTO {log} VALUES (1, 'a')")
            _ = 1 / 0
        assert lease.held
    assert rows(app) == []


def test_async_transactions(app, log):
    async def main() -> None:
        async with app.lock("x") as lease, lease.transaction() as tx:
            await tx.aexecute(f"INSERT INTO {log} VALUES (:token, 'a')", {"token": lease.token})

    asyncio.run(main())
    assert rows(app) == [(1, "a")]


def test_a_lost_holder_cannot_begin(app, other):
    with pytest.raises(LeaseLost), app.lock("x", ttl=1) as lease:
        other.ledger.locks.force("x", 0, "by an operator")
        lease.lost.wait(30)
        with pytest.raises(LeaseLost):
            lease.transaction().__enter__()


def test_the_fence_in_the_callers_own_transaction(app, other, log):
    with pytest.raises(LeaseLost), app.lock("x", ttl=3600) as lease:
        with app.ledger.engine.begin() as connection:
            connection.exec_driver_sql(f"INSERT INTO {log} VALUES (1, 'mine')")
            lease.fence(connection)
        other.ledger.locks.force("x", 0, "by an operator")
        with pytest.raises(LeaseLost), app.ledger.engine.begin() as connection:
            connection.exec_driver_sql(f"INSERT INTO {log} VALUES (2, 'stale')")
            lease.fence(connection)
    assert rows(app) == [(1, "mine")]


def test_nobody_takes_the_lease_between_the_fence_and_the_commit(app, other, log, monkeypatch):
    """The taker waits for the commit: what was fenced is there before the next token is given out."""
    if app.ledger.dialect == "sqlite":
        pytest.skip("one writer at a time: there is no between")
    clock = LedgerClock(app.ledger)
    lease = app.lock("x", ttl=60).acquire()
    taken = []
    rival = threading.Thread(target=lambda: taken.append((other.lock("x", wait=60).acquire(), rows(other))))
    with app.ledger.engine.begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO {log} VALUES (1, 'mine')")
        lease.fence(connection)
        clock.advance(61)
        rival.start()
        eventually(lambda: sql(app.ledger, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
        assert not taken
    rival.join()
    assert taken[0][1] == [(1, "mine")]


def test_a_commit_whose_reply_was_lost_is_re_read(app, log, monkeypatch):
    """Committed: no error. Not committed: the error, and nothing is there."""
    if app.ledger.dialect == "sqlite":
        pytest.skip("there is no reply to lose")
    with app.lock("x") as lease:
        with lease.transaction() as tx:
            tx.execute(f"INSERT INTO {log} VALUES (1, 'committed')")
            lose_the_reply(tx.connection, after=True)
        with pytest.raises(Exception, match="cannot be reached"), lease.transaction() as tx:
            tx.execute(f"INSERT INTO {log} VALUES (2, 'cut off')")
            lose_the_reply(tx.connection, after=False)
        with pytest.raises(OutcomeUnknown), lease.transaction() as tx:
            tx.execute(f"INSERT INTO {log} VALUES (3, 'cut off, and then forced')")
            lose_the_reply(tx.connection, after=False, then=lambda: app.ledger.locks.force("x", 0, "?"))
        lease.lose("as the ledger has it")
        with pytest.raises(LeaseLost):
            lease.release()
        monkeypatch.setattr(lease, "release", lambda: None)
    assert rows(app) == [(1, "committed")]


def lose_the_reply(connection, *, after: bool, then=lambda: None) -> None:
    """Cuts the connection at the commit: after it happened, or before."""
    import psycopg

    driver = connection.connection.driver_connection
    real = driver.commit

    def commit():
        if after:
            real()
        driver.close()
        then()
        error = psycopg.OperationalError("server closed the connection unexpectedly")
        assert is_connection_lost(error)
        raise error

    driver.commit = commit


def test_a_lease_is_taken_in_the_name_of_the_instance_that_its_taker_is_by_then(app, other):
    """Whoever waited for long may have become another instance: a dead one must not be named as the holder."""
    taken = []
    with app.lock("x"):
        before = other.locks.instance.id

        def wait_for_it():
            with other.lock("x", wait=20):
                taken.append((held_by(app), other.locks.instance.id))

        waiter = threading.Thread(target=wait_for_it)
        waiter.start()
        eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0], "the line")
        sql(app.ledger, f"UPDATE {{s}}service_instances SET state = 'dead' WHERE id = {before}")
        other.locks.instance.beat()
    waiter.join(20)
    [(holder, instance)] = taken
    assert holder == instance != before
