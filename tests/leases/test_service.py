"""Services: each runs on exactly one instance, goes on elsewhere, and says why it crashed."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack

import pytest

from rowlock import ConfigurationError, InvalidInput, LeaseLost
from tests.support.ledgers import sql
from tests.support.waiting import eventually


@pytest.fixture
def apps(app, make_app):
    return [app, make_app(on=app), make_app(on=app)]


def state(app, name="edgar"):
    rows = [row for row in app.ledger.run("services") if row.service_name == name]
    return rows[0] if rows else None


def test_of_three_instances_exactly_one_runs_it(apps):
    inside, most, turns = [], [], []

    def register(mine, number) -> None:
        @mine.service("edgar", every=0.01, ttl=5)
        def edgar(run) -> None:
            inside.append(number)
            most.append(len(inside))
            turns.append((number, run.token))
            inside.pop()

    for number, mine in enumerate(apps):
        register(mine, number)
    with ExitStack() as programs:
        for mine in apps:
            programs.enter_context(mine.program())
        eventually(lambda: len(turns) > 10)
    assert set(most) == {1}
    tokens = [token for _number, token in turns]
    assert tokens == sorted(tokens)
    assert {token: number for number, token in turns}.items() == {(t, n) for n, t in turns}


def test_another_takes_over_when_the_holder_falls_silent_and_its_fenced_write_is_refused(apps):
    first, second, _ = apps
    sql(first.ledger, "CREATE TABLE {s}effects (token BIGINT)")
    schema = f'"{first.settings.ledger_schema}".' if first.ledger.dialect == "postgresql" else ""
    ran, go_on, refused = threading.Event(), threading.Event(), threading.Event()

    @first.service("edgar", ttl=1)
    def edgar(run) -> None:
        if ran.is_set():
            return
        first.locks.keeper.drop(run.lease)  # nobody renews it any more: as if this process had been stopped
        ran.set()
        go_on.wait(30)
        try:
            run.lease._state, run.lease._deadline = "held", float("inf")  # it has not noticed yet
            with run.transaction() as tx:
                tx.execute(f"INSERT INTO {schema}effects VALUES (:token)", {"token": run.token})
        except LeaseLost:
            refused.set()
            raise

    tokens = []

    @second.service("edgar", ttl=1, every=0.05)
    def edgar_there(run) -> None:
        with run.transaction() as tx:
            tx.execute(f"INSERT INTO {schema}effects VALUES (:token)", {"token": run.token})
        tokens.append(run.token)

    with first.program():
        assert ran.wait(30)
        with second.program():
            eventually(lambda: tokens, "the takeover")
            go_on.set()
            assert refused.wait(30)
    assert {row[0] for row in sql(first.ledger, "SELECT token FROM {s}effects")} == set(tokens)
    assert min(tokens) > 1


def test_a_crash_is_written_down_and_it_starts_again(app):
    calls = []

    @app.service("edgar", every=0.01, longest_pause=0.01)
    def edgar() -> None:
        calls.append(1)
        if len(calls) == 3:
            reasons.append(state(app).reason)
        if len(calls) < 3:
            raise ValueError("the site sent nonsense")

    reasons = []
    with app.program():
        eventually(lambda: len(calls) > 4, "it goes on")
        eventually(lambda: state(app).crashes_in_row == 0)
    assert "ValueError: the site sent nonsense (" in reasons[0], (
        "the reason stays in sight until a run went well"
    )
    assert (state(app).crashes, state(app).reason, state(app).state) == (2, None, "stopped")


def test_after_three_crashes_another_instance_gets_a_try_and_the_reason_stays(apps):
    first, second, _ = apps

    @first.service("edgar", longest_pause=0.01)
    def broken_here() -> None:
        raise OSError("no route to host")

    ran = threading.Event()

    @second.service("edgar", every=0.05)
    def works_there() -> None:
        ran.set()

    with first.program():
        eventually(lambda: state(first) and state(first).crashes >= 3)
        assert "no route to host" in state(first).reason
        with second.program():
            assert ran.wait(30)


def test_on_start_and_on_stop_are_called_around_the_runs(app):
    told = []

    @app.service(
        "edgar", every=0.01, on_start=lambda run: told.append("start"), on_stop=lambda: told.append("stop")
    )
    def edgar() -> None:
        told.append("run")

    with app.program():
        eventually(lambda: told.count("run") > 2)
    assert told[0] == "start"
    assert told[-1] == "stop"
    assert set(told[1:-1]) == {"run"}


def test_an_async_service_is_cancelled_and_cleans_up_before_another_begins(apps):
    first, second, _ = apps
    events = []
    started = threading.Event()

    @first.service("edgar")
    async def edgar(run) -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.3)  # a slow goodbye: the lease must not be given back before it is over
            events.append("the old one has ended")

    @second.service("edgar")
    def edgar_there(run) -> None:
        events.append("the new one runs")
        run.wait(3600)

    program = first.program()
    program.start()
    assert started.wait(30)
    with second.program():
        program.stop()
        eventually(lambda: len(events) == 2)
    program.join()
    assert events == ["the old one has ended", "the new one runs"]


def test_losing_the_lease_cancels_an_async_service_and_wakes_a_plain_one(apps):
    app, other, _ = apps
    ended = []
    running = threading.Barrier(3)

    @app.service("async", ttl=1)
    async def slow(run) -> None:
        await asyncio.to_thread(running.wait)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("async")
            raise

    @app.service("plain", ttl=1)
    def plain(run) -> None:
        running.wait()
        while run.wait(3600):
            pass
        ended.append("plain")

    program = app.program()
    program.start()
    running.wait(30)
    running.reset()
    for name in ("async", "plain"):
        other.ledger.locks.force(f"service:{name}", 0, "by an operator")
    eventually(lambda: sorted(ended[:2]) == ["async", "plain"])
    running.abort()  # they have begun anew, and would wait for each other
    program.stop()
    program.join()


def test_the_rhythm_goes_on_when_another_takes_over(apps, monkeypatch):
    """Every hour means every hour: a restart does not poll the site again at once."""
    first, second, _ = apps
    runs = []
    first.service("edgar", every=3600)(lambda: runs.append("first"))
    second.service("edgar", every=3600)(lambda: runs.append("second"))
    with first.program():
        eventually(lambda: runs)
        eventually(lambda: state(first).state == "waiting")
    with second.program():
        eventually(lambda: state(second).holder is not None)
        eventually(lambda: state(second).standby == 0)
        assert 3500 < state(second).next_in <= 3600
    assert runs == ["first"]


def test_a_program_that_drains_hands_its_services_over(apps):
    first, second, _ = apps
    ran = []
    first.service("edgar", every=0.01)(lambda: ran.append("first"))
    second.service("edgar", every=0.01)(lambda: ran.append("second"))
    program = first.program()
    program.start()
    eventually(lambda: "first" in ran)
    with second.program():
        first.ledger.run("instance_drain", id=program.instance.id)
        program.instance.beat()
        eventually(lambda: "second" in ran)
        program.join()


def test_a_function_that_does_not_come_back_keeps_its_lease_until_it_runs_out(make_app, caplog):
    app = make_app(grace_seconds=0.1)
    stay = threading.Event()
    started = threading.Event()

    @app.service("edgar", ttl=60)
    def stubborn() -> None:
        started.set()
        stay.wait(60)

    program = app.program()
    program.start()
    assert started.wait(30)
    program.stop()
    program.join()
    assert "did not stop in time" in caplog.text
    app.locks.instance.stop()
    assert app.ledger.locks.look("service:edgar")[0].holder is not None, "it may still act: nobody else may"
    stay.set()


def test_a_run_is_one_use_of_its_limit_and_a_stop_ends_the_wait_for_it(app):
    ran = threading.Event()
    limit = app.limit("sec.gov", rate="1/h")

    @app.service("edgar", every=0.01, limit=limit)
    def edgar() -> None:
        ran.set()

    with app.program():
        assert ran.wait(30)
        ran.clear()
        eventually(lambda: state(app).runs == 2, "the second run, which waits for its moment")
    assert not ran.is_set()
    assert state(app).state == "stopped"


# -- misuse ----------------------------------------------------------------------------------------------------


def test_a_program_without_anything_to_run_says_what_to_do(app):
    with pytest.raises(ConfigurationError, match="nothing to run"):
        app.program()


def test_bad_services_are_refused_when_they_are_declared(app):
    with pytest.raises(InvalidInput, match="ttl"):
        app.service("x", ttl=0.5)(print)
    with pytest.raises(ConfigurationError, match="every"):
        app.service("x", every=0)(lambda: None)
    with pytest.raises(InvalidInput, match="name"):
        app.service("x" * 256)(lambda: None)
    with pytest.raises(ConfigurationError, match="takes 2 arguments"):
        app.service("x")(lambda a, b: None)
    app.service("x")(lambda: None)
    with pytest.raises(ConfigurationError, match="already registered"):
        app.service("x")(lambda: None)
