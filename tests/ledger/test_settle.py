"""Settling: only the holder, once, and everything is kept."""

from __future__ import annotations

import json

import pytest

from rowlock.ledger.rows import Completion, Failure, Release
from tests.support.ledgers import add_flow, claim, find, put, register, sql


@pytest.fixture(autouse=True)
def _flow(ledger):
    add_flow(ledger)


@pytest.fixture
def me(ledger):
    return register(ledger)


@pytest.fixture
def held(ledger, me):
    put(ledger, "a")
    return claim(ledger, me)[0]


def failure(held, *, token=None, final=False, delay=0.0):
    return Failure(
        held.id, held.token if token is None else token, final, delay, "why", "failed", "ValueError", "bad", "trace",
        "ValueError-1", 0,
    )  # fmt: skip


def complete(ledger, me, id_, token, result="null"):
    return ledger.exchange(me, [Completion(id_, token, result)], [])[0]


def test_completion_moves_the_record_to_the_history_with_payload_and_result(ledger, me, held):
    assert complete(ledger, me, held.id, held.token, '{"score":4}') == {held.id}
    row = find(ledger, held.id)
    assert row.status == "completed"
    assert json.loads(row.payload) == {"key": "a"}
    assert json.loads(row.result) == {"score": 4}
    assert row.settled_at >= row.claimed_at >= row.created_at
    assert sql(ledger, "SELECT count(*) FROM {s}processing_queue")[0][0] == 0


@pytest.mark.parametrize("wrong", [-1, 0, 2, 99])
def test_a_stale_token_completes_nothing(ledger, me, held, wrong):
    assert complete(ledger, me, held.id, wrong) == set()
    assert find(ledger, held.id).status == "processing"


def test_one_stale_token_in_a_batch_does_not_spoil_the_rest(ledger, me):
    put(ledger, "a", "b", "c")
    rows = claim(ledger, me)
    batch = [Completion(row.id, row.token + (row.key == "b"), "1") for row in rows]
    settled, _ = ledger.exchange(me, batch, [])
    assert settled == {row.id for row in rows if row.key != "b"}
    assert [find(ledger, row.id).status for row in rows] == ["completed", "processing", "completed"]


def test_a_completion_is_accepted_once(ledger, me, held):
    assert complete(ledger, me, held.id, held.token) == {held.id}
    assert complete(ledger, me, held.id, held.token) == set()


def test_a_failed_attempt_waits_and_keeps_its_error(ledger, me, held, ledger_clock):
    assert ledger.fail(me, [failure(held, delay=60)]) == {held.id}
    row = find(ledger, held.id)
    assert (row.status, row.holder, row.attempt) == ("retry_wait", None, 1)
    [attempt] = ledger.run("attempts", id=held.id)
    assert (attempt.outcome, attempt.error_type, attempt.message, attempt.traceback, attempt.instance_id) == (
        "failed", "ValueError", "bad", "trace", me,
    )  # fmt: skip
    assert attempt.ended_at >= attempt.started_at
    assert claim(ledger, me) == []
    ledger_clock.advance(61)
    me = register(ledger)
    assert ledger.promote(10) == 1
    [again] = claim(ledger, me)
    assert again.attempt == 2
    assert again.token > held.token


def test_a_stale_token_fails_nothing(ledger, me, held):
    assert ledger.fail(me, [failure(held, token=held.token + 1)]) == set()
    assert ledger.fail(me, [failure(held, token=held.token - 1, final=True)]) == set()
    assert find(ledger, held.id).status == "processing"
    assert ledger.run("attempts", id=held.id) == []


def test_a_second_failure_of_the_same_attempt_is_refused(ledger, me, held):
    assert ledger.fail(me, [failure(held)]) == {held.id}
    assert ledger.fail(me, [failure(held)]) == set()
    assert complete(ledger, me, held.id, held.token) == set()


def test_a_final_failure_is_dead_with_its_reason(ledger, me, held):
    assert ledger.fail(me, [failure(held, final=True)]) == {held.id}
    row = find(ledger, held.id)
    assert (row.status, row.reason, row.fingerprint) == ("dead", "why", "ValueError-1")


def test_a_release_spends_no_attempt_and_raises_the_token(ledger, me, held):
    assert ledger.release(1, [Release(held.id, held.token, 0.0)]) == {held.id}
    [again] = claim(ledger, me)
    assert (again.attempt, again.token > held.token) == (1, True)


def test_a_stale_token_releases_nothing(ledger, me, held):
    assert ledger.release(1, [Release(held.id, held.token + 1, 0.0)]) == set()
    assert find(ledger, held.id).status == "processing"


def test_progress_and_start_ask_for_the_token(ledger, held):
    assert ledger.run("progress", id=held.id, token=held.token, progress=0.5)
    assert find(ledger, held.id).progress == 0.5
    assert not ledger.run("progress", id=held.id, token=held.token + 1, progress=0.9)
    assert ledger.start([(held.id, held.token + 1)]) == set()
    assert find(ledger, held.id).progress == 0.5


def test_reread_tells_held_settled_and_lost_apart(ledger, me):
    put(ledger, "held", "done", "failed", "lost")
    rows = {row.key: row for row in claim(ledger, me)}
    complete(ledger, me, rows["done"].id, rows["done"].token)
    ledger.fail(me, [failure(rows["failed"])])
    ledger.cancel([rows["lost"].id], "test")
    fates = ledger.reread({row.id: row.token for row in rows.values()})
    assert {key: fates[row.id] for key, row in rows.items()} == {
        "held": "held", "done": "settled", "failed": "settled", "lost": "lost",
    }  # fmt: skip


def test_cancelling_revokes_a_running_record(ledger, me, held):
    assert ledger.cancel([held.id, 12345], "no longer wanted") == [held.id]
    assert complete(ledger, me, held.id, held.token) == set()
    row = find(ledger, held.id)
    assert (row.status, row.reason) == ("cancelled", "no longer wanted")
    assert row.token > held.token


def test_what_one_instance_holds_can_be_listed(ledger, me, held):
    assert [row.id for row in ledger.held(me)] == [held.id]
    assert ledger.held(me + 1) == []
