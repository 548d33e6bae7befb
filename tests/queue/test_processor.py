"""DistributedProcessor: the low-level face. Everything is fenced, no error is swallowed."""

from __future__ import annotations

import pytest

from rowlock import Backoff, LeaseLost, LedgerUnavailable, UnknownFlow
from rowlock.queue.processor import DistributedProcessor
from tests.support.ledgers import find, sql


@pytest.fixture
def ready(app):
    app.flow("survey", max_attempts=2, backoff=Backoff(0, 0))(lambda record: None)
    app.enqueue("survey", [{"id": n} for n in range(5)], key=lambda p: p["id"])
    return app


def test_claim_work_mark(ready):
    with ready.processor() as processor:
        assert isinstance(processor, DistributedProcessor)
        records = processor.claim_records_batch("survey", 2)
        assert [record.payload["id"] for record in records] == [0, 1]
        processor.mark_record_completed(records[0], {"score": 3})
        processor.mark_record_failed(records[1], ValueError("bad"))
        assert find(ready.ledger, records[0].id).status == "completed"
        assert find(ready.ledger, records[1].id).status == "retry_wait"


def test_the_second_failure_is_the_last(ready):
    with ready.processor() as processor:
        for _ in range(2):
            [record] = [r for r in processor.claim_records_batch("survey", 5) if r.key == "0"]
            processor.mark_record_failed(record, "no good")
        assert find(ready.ledger, record.id).status == "dead"


def test_marks_with_a_stale_token_are_refused(ready):
    with ready.processor() as processor:
        records = processor.claim_records_batch("survey", 2)
        ready.ledger.cancel([record.id for record in records], "test")
        with pytest.raises(LeaseLost):
            processor.mark_record_completed(records[0])
        with pytest.raises(LeaseLost):
            processor.mark_record_failed(records[1], "late")
        assert processor.instance.counters.stale_refused == 2


def test_what_is_held_at_the_end_is_claimable_at_once(ready):
    with ready.processor() as processor:
        processor.claim_records_batch("survey", 5)
    with ready.processor() as processor:
        assert processor.cleanup_orphaned_records() == 5
        assert len(processor.claim_records_batch("survey", 5)) == 5


def test_health(ready):
    with ready.processor() as processor:
        report = processor.health()
        assert (report["database_connected"], report["queue_depth"]) == (True, 5)


def test_health_of_a_ledger_that_is_away(ready, monkeypatch):
    with ready.processor() as processor:

        def away(*_, **__):
            raise LedgerUnavailable("gone")

        monkeypatch.setattr(processor._ledger, "run_safely", away)
        report = processor.health()
    assert (report["database_connected"], report["queue_depth"], report["error"]) == (False, None, "gone")


def test_records_settle_themselves_too(ready):
    with ready.processor() as processor:
        one, two, three = processor.claim_records_batch("survey", 3)
        one.complete("x")
        two.reject("never")
        three.retry_later(60)
    rows = sql(ready.ledger, "SELECT status FROM {s}processing_history ORDER BY id")
    assert [row[0] for row in rows] == ["completed", "dead"]
    assert find(ready.ledger, three.id).status == "retry_wait"


def test_another_programs_flow_is_claimed_under_its_own_limits(ready, make_app):
    ready.ledger.run("flow_register", flow="survey", max_attempts=1, max_deaths=7)
    stranger = make_app(on=ready)
    with stranger.processor() as processor:
        [record] = processor.claim_records_batch("survey", 1)
        processor.mark_record_failed(record, "no good")
    assert find(ready.ledger, record.id).status == "dead"
    row = ready.ledger.run("flow_find", flow="survey")[0]
    assert (row.max_attempts, row.max_deaths) == (1, 7)


def test_a_flow_that_nobody_knows_is_refused(ready):
    with ready.processor() as processor, pytest.raises(UnknownFlow, match="nope"):
        processor.claim_records_batch("nope", 1)


def test_a_poisonous_record_dies_in_hand_made_loops_too(ready):
    for _ in range(3):
        with ready.processor() as processor:
            for record in processor.claim_records_batch("survey", 5):
                if record.key != "0":
                    record.retry_later(0)
        with ready.processor() as processor:
            processor.cleanup_orphaned_records()
    rows = sql(ready.ledger, "SELECT record_key, reason FROM {s}processing_history")
    assert rows == [("0", "its workers died 3 times")]


def test_a_mark_that_could_not_be_sent_can_be_made_again(ready, monkeypatch):
    with ready.processor() as processor:
        [record] = processor.claim_records_batch("survey", 1)

        def cut_off(*_):
            raise LedgerUnavailable("cut off")

        with monkeypatch.context() as patch:
            patch.setattr(processor._ledger, "exchange", cut_off)
            with pytest.raises(LedgerUnavailable):
                record.complete("x")
        record.complete("x")
    assert find(ready.ledger, record.id).status == "completed"
