"""Enqueue: one (flow, key) is accepted once, all or nothing, in the caller's transaction if it wants."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from rowlock import Rowlock
from rowlock.errors import (
    FlowClosed,
    InvalidInput,
    InvalidKey,
    InvalidPayload,
    InvalidPriority,
    Refused,
    UnknownFlow,
)
from rowlock.ledger.rows import Completion
from tests.support.ledgers import add_flow, claim, put, register, sql


def depth(ledger):
    return sql(ledger, "SELECT count(*) FROM {s}processing_queue")[0][0]


@pytest.fixture
def survey(app):
    @app.flow("survey")
    def handler(record):
        return None

    return app


def test_known_keys_are_not_accepted_again(survey):
    payloads = [{"id": n} for n in range(10)]
    first = survey.enqueue("survey", payloads, key=lambda p: p["id"])
    second = survey.enqueue("survey", [*payloads, {"id": 10}], key=lambda p: p["id"])
    assert (first.accepted, first.known) == (10, 0)
    assert (second.accepted, second.known) == (1, 10)
    assert len(second.ids) == 1


def test_a_key_twice_in_one_call_counts_once(survey):
    done = survey.enqueue("survey", [{"id": 1}, {"id": 1}, {"id": 2}], key=lambda p: p["id"])
    assert (done.accepted, done.known) == (2, 1)


def test_keys_are_per_flow(survey):
    @survey.flow("other")
    def other(record):
        return None

    assert survey.enqueue("survey", {"a": 1}, key="k").accepted == 1
    assert survey.enqueue("other", {"a": 1}, key="k").accepted == 1
    assert survey.enqueue("other", {"a": 1}, key="k").known == 1


def test_a_key_stays_taken_after_its_record_is_settled(ledger):
    add_flow(ledger)
    put(ledger, "a")
    me = register(ledger)
    [held] = claim(ledger, me)
    assert put(ledger, "a", batch=2) == []
    ledger.exchange(me, [Completion(held.id, held.token, "1")], [])
    assert put(ledger, "a", batch=3) == []


def test_a_key_is_free_again_when_its_history_is_pruned(ledger, ledger_clock):
    add_flow(ledger)
    put(ledger, "a")
    me = register(ledger, 1e6)
    [held] = claim(ledger, me)
    ledger.exchange(me, [Completion(held.id, held.token, "1")], [])
    ledger_clock.advance(100)
    assert ledger.prune(50, dead_too=False, limit=10) == 1
    assert len(put(ledger, "a", batch=2)) == 1


def test_one_key_is_accepted_once_under_any_concurrency(ledger):
    """Enqueuers race with each other and with the settling that moves records between tables."""
    add_flow(ledger)
    keys = [f"k{n}" for n in range(60)]
    me = register(ledger)

    def enqueue(number):
        order = keys if number % 2 else keys[::-1]
        return sum(len(put(ledger, *order, batch=number * 1000 + turn)) for turn in range(5))

    def settle(_):
        done = 0
        while done < len(keys):
            held = claim(ledger, me, limit=5)
            ledger.exchange(me, [Completion(row.id, row.token, "1") for row in held], [])
            done += len(held)
        return 0

    with ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(enqueue, number) for number in range(1, 5)] + [pool.submit(settle, 0)]
        accepted = sum(job.result(60) for job in jobs)
    assert accepted == len(keys)
    assert sql(ledger, "SELECT count(*), count(DISTINCT record_key) FROM {s}processing_history")[0] == (
        60,
        60,
    )


def test_the_same_batch_sent_twice_is_told_what_it_took(ledger):
    """When the reply to a commit is lost, the enqueue is repeated; what it took the first time is its own."""
    if ledger.dialect == "sqlite":
        pytest.skip("there is no reply to lose")
    add_flow(ledger)
    first = put(ledger, "a", "b", batch=7)
    assert put(ledger, "a", "b", batch=7) == []
    assert ledger._taken_by("f", ["a", "b"], 7) == first
    assert ledger._taken_by("f", ["a", "b"], 8) == []


def test_order_is_kept(survey):
    survey.enqueue("survey", [{"n": n} for n in range(30)], key=lambda p: f"k{30 - p['n']}")
    rows = sql(survey.ledger, "SELECT record_key FROM {s}processing_queue ORDER BY id")
    assert [row[0] for row in rows] == [f"k{n}" for n in range(30, 0, -1)]


def test_a_bad_payload_in_the_middle_accepts_nothing(survey):
    with pytest.raises(InvalidPayload, match="payload 3"):
        survey.enqueue("survey", [{"a": 1}, {"a": 2}, {"a": object()}, {"a": 4}])
    assert depth(survey.ledger) == 0


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"payloads": {"a": {1, 2}}}, InvalidPayload, "JSON"),
        ({"payloads": {"a": float("nan")}}, InvalidPayload, "JSON"),
        ({"payloads": "x" * 2_000_000}, InvalidPayload, "more than the limit"),
        ({"payloads": {"a": 1}, "key": "k" * 256}, InvalidKey, "255"),
        ({"payloads": {"a": 1}, "key": ""}, InvalidKey, "1 to 255"),
        ({"payloads": {"a": 1}, "key": "a\x00b"}, InvalidKey, "printed"),
        ({"payloads": {"a": 1}, "key": 1.5}, InvalidKey, "whole number"),
        ({"payloads": [{"a": 1}], "key": "one"}, InvalidKey, "function"),
        ({"payloads": [{"a": 1}], "key": lambda p: p["b"]}, InvalidKey, "payload 1"),
        ({"payloads": 1, "priority": -1}, InvalidPriority, "0 .normal. to 100"),
        ({"payloads": 1, "priority": 101}, InvalidPriority, "101"),
        ({"payloads": 1, "run_at": "tomorrow"}, InvalidInput, "time zone"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(survey, arguments, error, words):
    with pytest.raises(error, match=words):
        survey.enqueue("survey", **arguments)
    assert depth(survey.ledger) == 0


def test_an_unknown_flow_is_refused_and_says_what_to_do(survey):
    with pytest.raises(UnknownFlow, match=r"rowlock flows add nope"):
        survey.enqueue("nope", {"a": 1})


def test_a_draining_flow_takes_nothing(survey):
    survey.enqueue("survey", {"a": 1})
    survey.ledger.set_flow_state("survey", "draining", "moving house")
    with pytest.raises(FlowClosed, match="rowlock flows resume survey"):
        survey.enqueue("survey", {"a": 2})
    assert depth(survey.ledger) == 1


def test_a_large_enqueue_is_one_commit(survey):
    done = survey.enqueue("survey", ({"n": n} for n in range(12_000)), key=lambda p: p["n"])
    assert done.accepted == 12_000
    assert done.ids == sorted(done.ids)
    again = survey.enqueue("survey", ({"n": n} for n in range(12_001)), key=lambda p: p["n"])
    assert (again.accepted, again.known) == (1, 12_000)


def test_json_survives_as_it_is(survey):
    payload = {
        "text": 'naïve \u0000 😀 "quoted" \\ %s :name {}',
        "big": 2**70,
        "none": None,
        "list": [1.5, True],
    }
    survey.enqueue("survey", payload, key="k")
    with survey.processor() as processor:
        [record] = processor.claim_records_batch("survey", 1)
        assert record.payload == payload


# -- in the caller's own transaction ---------------------------------------------------------------------


def test_records_belong_to_the_callers_sqlalchemy_transaction(survey):
    survey.enqueue("survey", {"a": 0})
    with survey.ledger.engine.connect() as connection:
        transaction = connection.begin()
        assert survey.enqueue("survey", {"a": 1}, connection=connection).accepted == 1
        transaction.rollback()
    assert depth(survey.ledger) == 1
    with survey.ledger.engine.begin() as connection:
        survey.enqueue("survey", {"a": 1}, connection=connection)
    assert depth(survey.ledger) == 2


def test_records_belong_to_the_callers_session(survey):
    survey.enqueue("survey", {"a": 0})
    with Session(survey.ledger.engine) as session:
        session.execute(text("SELECT 1"))
        survey.enqueue("survey", {"a": 1}, connection=session)
        session.rollback()
        survey.enqueue("survey", {"a": 2}, connection=session)
        session.commit()
    assert depth(survey.ledger) == 2


def test_records_belong_to_the_callers_driver_transaction(survey):
    survey.enqueue("survey", {"a": 0})
    if survey.ledger.dialect == "sqlite":
        connection = sqlite3.connect(survey.ledger.url.database)
    else:
        import psycopg

        connection = psycopg.connect(survey.ledger.url.set(drivername="postgresql").render_as_string(False))
    try:
        survey.enqueue("survey", {"a": 1}, connection=connection)
        connection.rollback()
        survey.enqueue("survey", {"a": 2}, connection=connection)
        connection.commit()
    finally:
        connection.close()
    assert depth(survey.ledger) == 2


def test_the_first_enqueue_of_a_flow_may_be_in_the_callers_transaction(survey):
    with survey.ledger.engine.begin() as connection:
        survey.enqueue("survey", {"a": 1}, connection=connection)
    assert depth(survey.ledger) == 1


def test_the_first_use_of_an_app_may_be_inside_a_transaction_that_writes(survey):
    survey.enqueue("survey", {"a": 0})
    with survey.ledger.engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (id integer)"))
        with Rowlock(settings=survey.settings) as fresh:
            assert fresh.enqueue("survey", {"a": 1}, connection=connection).accepted == 1
        connection.execute(text("DROP TABLE orders"))
    assert depth(survey.ledger) == 2


def test_a_connection_in_autocommit_mode_is_refused(survey):
    if survey.ledger.dialect == "sqlite":
        connection = sqlite3.connect(survey.ledger.url.database, isolation_level=None)
    else:
        import psycopg

        url = survey.ledger.url.set(drivername="postgresql").render_as_string(False)
        connection = psycopg.connect(url, autocommit=True)
    try:
        with pytest.raises(Refused, match="autocommit"):
            survey.enqueue("survey", {"a": 1}, connection=connection)
    finally:
        connection.close()


def test_something_that_is_no_connection_is_refused(survey):
    with pytest.raises(InvalidInput, match="run_sync"):
        survey.enqueue("survey", {"a": 1}, connection=object())


async def _aenqueue(app):
    return await app.aenqueue("survey", [{"a": 1}, {"a": 2}])


def test_the_async_twin(survey):
    import asyncio

    assert asyncio.run(_aenqueue(survey)).accepted == 2
