"""Behind PgBouncer in transaction mode: no prepared statements, no LISTEN, polling only."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import psycopg
import pytest

from rowlock import LeaseLost, LockHeld, Rowlock, Settings
from rowlock.databases.local_postgres import _free_port
from rowlock.ledger.ledger import Ledger
from tests.support.waiting import eventually

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@pytest.fixture
def pooler(postgres):
    """Three server connections for everybody, lent for one transaction at a time."""
    port = _free_port()
    home = Path(tempfile.mkdtemp(prefix="rowlock-pgbouncer-"))  # not pytest's: another account has to read it
    home.chmod(0o755)
    config = home / "pgbouncer.ini"
    config.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={postgres.port} user=rowlock\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\npool_mode = transaction\n"
        "default_pool_size = 3\nunix_socket_dir =\n"
    )
    who = {"user": "nobody"} if os.geteuid() == 0 else {}
    process = subprocess.Popen(
        [PGBOUNCER, "-q", str(config)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **who
    )
    url = f"postgresql://rowlock@127.0.0.1:{port}/postgres"

    def answers():
        try:
            psycopg.connect(url, prepare_threshold=None).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        eventually(answers, "the pooler")
        yield url
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(home)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_work_is_done_once_behind_a_transaction_pooler(pooler):
    settings = Settings(
        ledger_url=pooler, ledger_schema="behind_pooler", transaction_pooler=True, poll_seconds=0.1
    )
    with Ledger.open(settings) as ledger:
        ledger.schema.migrate()
    with Rowlock(settings=settings) as app:
        with app.ledger.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE behind_pooler.effects (id bigint)")

        @app.flow("pay")
        def pay(record):
            with record.transaction() as tx:
                tx.execute("INSERT INTO behind_pooler.effects VALUES (:id)", {"id": record.id})

        app.enqueue("pay", range(500))
        worker = app.worker(until_empty=True)
        worker.start()
        assert worker.join(60)
        assert worker.instance.counters.completed == 500
        with app.ledger.engine.begin() as connection:
            query = "SELECT count(*), count(DISTINCT id) FROM behind_pooler.effects"
            assert connection.exec_driver_sql(query).fetchone() == (500, 500)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_locks_behind_a_transaction_pooler(pooler):
    """Taken, waited for, handed over, renewed, fenced, lost: nothing of it belongs to a connection."""
    settings = Settings(
        ledger_url=pooler, ledger_schema="locks_behind_pooler", transaction_pooler=True, poll_seconds=0.1
    )
    with Ledger.open(settings) as ledger:
        ledger.schema.migrate()
    with Rowlock(settings=settings) as app, Rowlock(settings=settings) as other:
        with app.ledger.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE locks_behind_pooler.log (token bigint)")
        order: list[str] = []

        def wait_for_it() -> None:
            with other.lock("x", wait=60) as lease:
                order.append("the waiter")
                write(lease)

        thread = threading.Thread(target=wait_for_it)
        with app.lock("x", ttl=3) as lease:
            with pytest.raises(LockHeld):
                other.lock("x", wait=0.1).acquire()
            thread.start()
            first = lease.deadline
            eventually(lambda: lease.deadline > first + 3, "renewals beyond the ttl")
            write(lease)
            order.append("the holder")
        thread.join()
        assert order == ["the holder", "the waiter"]
        with pytest.raises(LeaseLost), app.lock("x") as stale:
            other.ledger.locks.force("x", 0, "by an operator")
            write(stale)
        with app.ledger.engine.begin() as connection:
            rows = connection.exec_driver_sql("SELECT token FROM locks_behind_pooler.log").fetchall()
        assert len(rows) == 2
        assert rows == sorted(rows)


def write(lease) -> None:
    with lease.transaction() as tx:
        tx.execute("INSERT INTO locks_behind_pooler.log VALUES (:token)", {"token": lease.token})
