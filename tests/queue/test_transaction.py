"""record.transaction(): effect and completion in one commit, or neither."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rowlock import LeaseLost, LedgerUnavailable, Refused
from tests.queue.test_worker import drain
from tests.support.ledgers import find, sql, take_over
from tests.support.waiting import eventually


@pytest.fixture
def effects(app):
    """A table without a unique key, so that a second effect would show."""
    sql(app.ledger, "CREATE TABLE {s}effects (record_id bigint, token bigint)")
    schema = f'"{app.settings.ledger_schema}".' if app.ledger.dialect == "postgresql" else ""
    insert = f"INSERT INTO {schema}effects VALUES (:id, :token)"

    class Effects:
        statement = insert

        @staticmethod
        def of(record):
            return {"id": record.id, "token": record.token}

        @staticmethod
        def rows():
            return sql(app.ledger, "SELECT record_id, token FROM {s}effects")

    return Effects


def test_effect_and_completion_are_one_commit(app, effects):
    @app.flow("pay")
    def pay(record):
        with record.transaction() as tx:
            tx.execute(effects.statement, effects.of(record))
            tx.result = {"paid": True}

    [record_id] = app.enqueue("pay", [1]).ids
    assert drain(app).completed == 1
    row = find(app.ledger, record_id)
    assert (row.status, row.result.replace(" ", "")) == ("completed", '{"paid":true}')
    assert [r[0] for r in effects.rows()] == [record_id]


def test_an_exception_in_the_block_undoes_the_effect_and_fails_the_attempt(app, effects):
    @app.flow("pay", max_attempts=1)
    def pay(record):
        with record.transaction() as tx:
            tx.execute(effects.statement, effects.of(record))
            raise ValueError("second thoughts")

    app.enqueue("pay", [1])
    assert drain(app).failed == 1
    assert effects.rows() == []


def test_an_exception_after_the_block_does_not_undo_the_completion(app, effects):
    @app.flow("pay")
    def pay(record):
        with record.transaction() as tx:
            tx.execute(effects.statement, effects.of(record))
        raise ValueError("too late")

    [record_id] = app.enqueue("pay", [1]).ids
    drain(app)
    assert find(app.ledger, record_id).status == "completed"
    assert len(effects.rows()) == 1


def test_an_async_handler_has_it_too(app, effects):
    @app.flow("pay")
    async def pay(record):
        async with record.transaction() as tx:
            await tx.aexecute(effects.statement, effects.of(record))
            await record.aheartbeat() if app.ledger.dialect == "postgresql" else None

    app.enqueue("pay", range(20))
    assert drain(app).completed == 20
    assert len(effects.rows()) == 20


def test_a_stale_holders_commit_fails_and_leaves_nothing(app, effects):
    with app.processor() as zombie, app.processor() as heir:
        app.flow("pay")(lambda record: None)
        app.enqueue("pay", [1])
        [old] = zombie.claim_records_batch("pay", 1)
        app.ledger.cancel([old.id], "taken away")
        app.dead_letters.redrive_one(old.id)
        [new] = heir.claim_records_batch("pay", 1)
        with (
            pytest.raises(LeaseLost, match="nothing of this transaction was committed"),
            old.transaction() as tx,
        ):
            tx.execute(effects.statement, effects.of(old))
        assert effects.rows() == []
        with new.transaction() as tx:
            tx.execute(effects.statement, effects.of(new))
        assert effects.rows() == [(new.id, new.token)]


def test_a_record_revoked_inside_the_block_commits_nothing(app, effects):
    if app.ledger.dialect == "sqlite":
        pytest.skip("the write lock keeps everybody else out of the block")
    with app.processor() as processor:
        app.flow("pay")(lambda record: None)
        app.enqueue("pay", [1])
        [record] = processor.claim_records_batch("pay", 1)
        with pytest.raises(LeaseLost), record.transaction() as tx:
            tx.execute(effects.statement, effects.of(record))
            app.ledger.cancel([record.id], "now")
        assert effects.rows() == []
        assert record.lost


def test_a_record_has_one_completion(app):
    with app.processor() as processor:
        app.flow("pay")(lambda record: None)
        app.enqueue("pay", [1])
        [record] = processor.claim_records_batch("pay", 1)
        with record.transaction():
            pass
        with pytest.raises(Refused, match="already settled"), record.transaction():
            pass
        with pytest.raises(Refused, match="settled"):
            record.complete()


def test_the_transaction_is_used_inside_with(app):
    with app.processor() as processor:
        app.flow("pay")(lambda record: None)
        app.enqueue("pay", [1])
        [record] = processor.claim_records_batch("pay", 1)
        with pytest.raises(Refused, match="inside"):
            record.transaction().execute("SELECT 1")


class LostReply:
    """Commits, or does not, and then behaves as if the connection had broken."""

    def __init__(self, ledger, monkeypatch, *, committed: bool):
        self.ledger, self.committed = ledger, committed
        from sqlalchemy.engine import Connection

        self.real = Connection.commit
        test = self

        def commit(connection):
            if test.committed:
                test.real(connection)
            else:
                connection.rollback()
            raise LedgerUnavailable("the reply was lost")

        monkeypatch.setattr(Connection, "commit", commit)


@pytest.mark.parametrize("committed", [True, False])
def test_a_lost_reply_to_commit_is_re_read_by_token_and_never_guessed(app, effects, monkeypatch, committed):
    app.flow("pay")(lambda record: None)
    [record_id] = app.enqueue("pay", [1]).ids
    with app.processor() as processor:
        [record] = processor.claim_records_batch("pay", 1)
        with monkeypatch.context() as patch:
            LostReply(app.ledger, patch, committed=committed)
            if committed:
                with record.transaction() as tx:
                    tx.execute(effects.statement, effects.of(record))
            else:
                with pytest.raises(LedgerUnavailable), record.transaction() as tx:
                    tx.execute(effects.statement, effects.of(record))
        assert find(app.ledger, record_id).status == ("completed" if committed else "processing")
        assert len(effects.rows()) == (1 if committed else 0)


def test_a_cancelled_async_transaction_leaves_no_connection_behind(make_app):
    app = make_app(pool_size=2)
    entered = threading.Event()

    @app.flow("pay", timeout=0.3, max_attempts=1, concurrency=2)
    async def pay(record):
        async with record.transaction():
            entered.set()
            if record.payload < 6:
                await asyncio.sleep(3600)

    app.enqueue("pay", range(10) if app.ledger.dialect == "postgresql" else [0, 9])
    drain(app)
    eventually(lambda: app.ledger.engine.pool.checkedout() == 0, "giving the connections back")


def test_heartbeat_notes_progress_and_raises_when_the_record_was_taken(app):
    app.flow("long")(lambda record: None)
    [record_id] = app.enqueue("long", [1]).ids
    with app.processor() as processor:
        [record] = processor.claim_records_batch("long", 1)
        assert 0 < record.seconds_left <= app.settings.lease_seconds
        record.heartbeat(progress=0.4)
        assert abs(find(app.ledger, record_id).progress - 0.4) < 1e-6
        app.ledger.cancel([record_id], "test")
        with pytest.raises(LeaseLost):
            record.heartbeat(progress=0.5)
        assert record.lost
        assert record.seconds_left == 0
        assert take_over(app.ledger) == (0, 0)
