"""Locks as a program uses them: in threads, on event loops, lost, waited for, misused."""

from __future__ import annotations

import asyncio
import os
import resource
import threading

import pytest

from rowlock import InvalidInput, LeaseLost, LedgerUnavailable, LockHeld, OutcomeUnknown, Refused, clock
from rowlock.databases.engine import is_connection_lost
from rowlock.ledger.ledger_clock import LedgerClock
from tests.support.ledgers import sql
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


def test_an_expired_holders_commit_fails_though_nobody_took_the_lease(app, log):
    with LedgerClock(app.ledger) as clock, pytest.raises(LeaseLost), app.lock("x", ttl=3600) as lease:
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


def test_nobody_takes_the_lease_between_the_fence_and_the_commit(app, other, log):
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


# -- what nearly goes wrong --------------------------------------------------------------------------------------


def test_threads_that_use_the_app_first_at_the_same_time_are_one_instance(app):
    barrier, found = threading.Barrier(8), []

    def use() -> None:
        barrier.wait()
        found.append(app.locks)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert sql(app.ledger, "SELECT count(*) FROM {s}service_instances")[0][0] == 1


def test_a_heartbeat_with_nothing_left_to_renew_lives_on(app, monkeypatch):
    """The only lease that was due is given back between the question and the answer."""
    keeper = app.locks.keeper
    monkeypatch.setattr(keeper, "next_renewal", lambda: 0.0)
    keeper.renew()


def test_whoever_fails_when_told_of_a_loss_does_not_stop_those_who_tell(app, other, caplog):
    with app.lock("y", ttl=1) as kept, pytest.raises(LeaseLost), app.lock("x", ttl=1) as lease:
        lease.on_lost(lambda _lease: 1 / 0)
        told = threading.Event()
        lease.on_lost(lambda _lease: told.set())
        other.ledger.locks.force("x", 0, "by an operator")
        assert told.wait(30)
        assert "ZeroDivisionError" in caplog.text
        first = kept.deadline
        eventually(lambda: kept.deadline > first + 1, "the other lease is still renewed")


def test_a_renewal_that_comes_in_after_the_local_deadline_is_too_late(app, monkeypatch):
    """Somebody may have seen that it was over, and stopped: it must not be on again behind his back."""
    keeper = app.locks.keeper
    with pytest.raises(LeaseLost, match="in time"), app.lock("x", ttl=3600) as lease:
        monkeypatch.setattr(lease, "_deadline", 0.0)
        assert not lease.held
        keeper._renewed(lease, sent=clock.monotonic())
        assert not lease.held
        assert lease.lost.is_set()
        assert held_by(app) is None, "nobody acts on it, so nobody need wait for it"


def test_a_lease_whose_grant_was_long_on_the_way_is_asked_for_again(app, monkeypatch):
    """The local deadline counts from before the question: a late answer alone would be a lease born dead."""
    locks = app.locks.keeper.ledger.locks
    real, taken = locks.take, []

    def late(wanted, ticket):
        taken.append(real(wanted, ticket))
        if len(taken) == 1:
            monkeypatch.setattr(clock, "monotonic", lambda now=clock.monotonic: now() + 3600)
        return taken[-1]

    app.lock("x", ttl=600).acquire().release()
    monkeypatch.setattr(locks, "take", late)
    with app.lock("x", ttl=600) as lease:
        assert lease.seconds_left > 500
    assert len(taken) == 2
    assert taken[0] == taken[1]


def test_a_long_fenced_transaction_does_not_keep_other_leases_from_being_renewed(app, log):
    """Its row is locked until the commit; the heartbeat passes it by, and asks again."""
    if app.ledger.dialect == "sqlite":
        pytest.skip("one writer at a time: a long transaction keeps everybody from writing")
    with app.lock("long", ttl=60) as held, app.lock("short", ttl=1) as lease:
        with app.ledger.engine.begin() as connection:
            held.fence(connection)
            app.locks.keeper._renew_at[held.held_slot] = 0.0
            app.locks.instance._wake.set()
            first = lease.deadline
            eventually(lambda: lease.deadline > first + 1.5, "renewals of the other one")
            assert not held.lost.is_set()
        first = held.deadline
        eventually(lambda: held.deadline > first, "a renewal once it is committed")


def test_the_fence_of_the_callers_own_transaction_hides_no_commit_whose_reply_was_lost(app, log):
    with app.lock("x") as lease:
        tx = lease.transaction()
        with tx:
            tx.execute(f"INSERT INTO {log} VALUES (1, 'mine')")
        with app.ledger.engine.begin() as connection:
            lease.fence(connection)
        assert tx._reread() == "committed"


def test_a_task_that_is_cancelled_twice_while_it_takes_a_lock_leaves_nothing_held(app, other, monkeypatch):
    """The second cancellation comes while the first one waits for the ledger's answer."""
    taking, answer = threading.Event(), threading.Event()
    locks = app.locks.keeper.ledger.locks
    real = locks.take

    def slow(wanted, ticket):
        held = real(wanted, ticket)
        if held is not None:
            taking.set()
            answer.wait(30)
        return held

    monkeypatch.setattr(locks, "take", slow)

    async def main() -> None:
        task = asyncio.create_task(app.lock("x", ttl=3600).aacquire())
        await asyncio.to_thread(taking.wait, 30)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done()
        answer.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert app.locks.keeper.leases == []
    assert other.try_lock("x")


def test_a_task_cancelled_while_the_ledger_fails_is_cancelled_and_not_failed(app, monkeypatch):
    taking, answer = threading.Event(), threading.Event()
    locks = app.locks.keeper.ledger.locks
    real_take = locks.take

    def slow(wanted, ticket):
        held = real_take(wanted, ticket)
        if held is not None:
            taking.set()
            answer.wait(30)
        return held

    def broken(held):
        raise LedgerUnavailable("the cable is out")

    monkeypatch.setattr(locks, "take", slow)
    monkeypatch.setattr(locks, "release", broken)

    async def main() -> None:
        task = asyncio.create_task(app.lock("x").aacquire())
        await asyncio.to_thread(taking.wait, 30)
        task.cancel()
        answer.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert app.locks.keeper.leases == []


def test_a_waiter_that_leaves_wakes_the_next_one(make_app):
    """The first in line is told of the release, and leaves at that moment: the turn is not lost with it."""
    app = make_app(poll_seconds=3600)
    other = make_app(on=app)
    if app.ledger.dialect == "sqlite":
        pytest.skip("every change of the file wakes everybody")
    held = app.lock("x", ttl=3600).acquire()
    first = app.ledger.locks.queue("x", app.locks.keeper.holder, 3600)
    got = threading.Event()

    def wait_for_it() -> None:
        with other.lock("x"):
            got.set()

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 2)
    listening = f"SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN \"{app.ledger.locks.channel}\"'"
    eventually(lambda: sql(app.ledger, listening), "its listener")
    held.release()
    assert not got.is_set()
    app.ledger.locks.leave(first)
    assert got.wait(30)
    thread.join()


def test_a_waiter_that_lost_its_place_leaves_no_bell_behind(app, other):
    held = app.lock("x").acquire()
    thread = threading.Thread(target=lambda: other.lock("x").acquire().release())
    thread.start()
    eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 1)
    sql(app.ledger, "DELETE FROM {s}lock_waiters")  # silent for too long
    eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 1, "another place")
    held.release()
    thread.join()
    assert not other.locks._bells


def test_whoever_waits_while_the_app_is_closed_is_told(app, other):
    held, errors = app.lock("x").acquire(), []

    def wait_for_it() -> None:
        try:
            other.lock("x").acquire()
        except Refused as error:
            errors.append(str(error))

    async def wait_on_a_loop() -> None:
        async with other.lock("x"):
            pass

    def run_the_loop() -> None:
        try:
            asyncio.run(wait_on_a_loop())
        except Refused as error:
            errors.append(str(error))

    threads = [threading.Thread(target=wait_for_it), threading.Thread(target=run_the_loop)]
    for thread in threads:
        thread.start()
    eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 2)
    other.close()
    for thread in threads:
        thread.join()
    assert errors == ["The app is closed: it takes no leases any more."] * 2
    held.release()


def test_closing_the_app_inside_an_async_block_opens_nothing_again(app, other):
    async def main() -> None:
        async with app.lock("x"):
            app.close()
        assert "locks" not in app.__dict__

    asyncio.run(main())
    assert other.try_lock("x")


def test_waiters_are_woken_in_a_program_with_very_many_open_files(make_app):
    """More than select() can wait for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("this account may not open so many")
    app = make_app(poll_seconds=3600)
    other = make_app(on=app)
    held, got = app.lock("x", ttl=3600).acquire(), threading.Event()

    def wait_for_it() -> None:
        with other.lock("x"):
            got.set()

    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    thread = threading.Thread(target=wait_for_it)
    many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        thread.start()
        eventually(lambda: sql(app.ledger, "SELECT count(*) FROM {s}lock_waiters")[0][0] == 1)
        held.release()
        assert got.wait(30)
        thread.join()
    finally:
        for file in many:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_lease_is_taken_in_the_name_of_the_instance_that_its_taker_is_by_then(app, other, monkeypatch):
    """Whoever waited for long may have become another instance: a dead one must not be named as the holder."""
    taken, looks = [], []
    locks = other.locks.keeper.ledger.locks
    real = locks.look
    monkeypatch.setattr(locks, "look", lambda *args: looks.append(1) or real(*args))
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
        tried = len(looks)
        eventually(lambda: len(looks) > tried + 1, "a try as the new instance")
    waiter.join(20)
    [(holder, instance)] = taken
    assert holder == instance != before
