import psycopg
import pytest

from rowlock.ledger import doctor
from rowlock.ledger.ledger import Ledger
from rowlock.settings import Settings


@pytest.fixture
def verdicts(cli):
    def ask(code=0):
        import json

        result = cli("doctor", "--json")
        assert result.exit_code == code, result.output
        return {one["check"]: one for one in json.loads(result.stdout)}

    return ask


def test_a_healthy_ledger(cli, cli_ledger, verdicts):
    found = verdicts()
    assert {one["verdict"] for one in found.values()} == {"ok"}, found
    common = {"reachable", "server version", "schema", "clock", "indexes", "dead holders"}
    own = {"sqlite": {"journal mode"}, "postgresql": {"connections", "vacuum", "dead rows"}}
    assert set(found) == common | own[cli_ledger]
    out = cli.ok("doctor")
    assert out.count("\n") == len(found)
    assert "\x1b" not in out


def test_no_tables(cli, cli_home, cli_postgres, verdicts, monkeypatch):
    monkeypatch.setenv("ROWLOCK_LEDGER_URL", cli_postgres.url)
    monkeypatch.setenv("ROWLOCK_LEDGER_SCHEMA", "nothing_here")
    found = verdicts(code=1)
    assert found["schema"]["verdict"] == "problem"
    assert "rowlock migrate" in found["schema"]["text"]


def test_not_reachable(cli, cli_home, verdicts, monkeypatch):
    monkeypatch.setenv("ROWLOCK_LEDGER_URL", "postgresql://ann:s3cret@127.0.0.1:1/none")
    found = verdicts(code=1)
    assert list(found) == ["reachable"]
    assert "s3cret" not in found["reachable"]["text"]


def test_a_missing_index(cli_ledger, cli_sql, verdicts):
    cli_sql("DROP INDEX {}processing_queue_ready")
    found = verdicts(code=1)
    assert found["indexes"]["verdict"] == "problem"
    assert "processing_queue_ready" in found["indexes"]["text"]


@pytest.mark.parametrize("cli_dialect", ["postgresql"], indirect=True)
def test_an_index_that_is_not_valid(cli_ledger, cli_sql, verdicts):
    cli_sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{}processing_queue_held'::regclass")
    found = verdicts(code=1)
    assert "processing_queue_held" in found["indexes"]["text"]
    assert "REINDEX" in found["indexes"]["text"]


def test_records_of_dead_instances(cli_ledger, cli_app, cli_sql, verdicts):
    cli_app.enqueue("gentle", [1, 2])
    with cli_app.processor() as processor:
        processor.claim_records_batch("gentle", 2)
        assert verdicts()["dead holders"]["verdict"] == "ok"
        cli_sql("UPDATE {}service_instances SET expires_at = started_at")
        found = verdicts(code=1)["dead holders"]
        assert found["text"].startswith("2 records are held by 1 instance")
        with cli_app.processor():
            assert verdicts()["dead holders"]["verdict"] == "warning"


@pytest.mark.parametrize("cli_dialect", ["postgresql"], indirect=True)
def test_an_old_transaction_holds_vacuum_back(cli_ledger, cli_postgres, verdicts, monkeypatch):
    monkeypatch.setattr(doctor, "_OLD_TRANSACTION_SECONDS", -1.0)
    with psycopg.connect(cli_postgres.url, application_name="forgotten") as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT pg_current_xact_id()")
        found = verdicts()["vacuum"]
        assert found["verdict"] == "warning"
        assert (
            f"transaction 'forgotten', pid {connection.info.backend_pid}, idle in transaction"
            in found["text"]
        )
        connection.rollback()
    assert "forgotten" not in verdicts()["vacuum"]["text"]


@pytest.mark.parametrize("cli_dialect", ["postgresql"], indirect=True)
def test_more_connections_than_the_server_has(cli_ledger, cli_app, verdicts, monkeypatch):
    monkeypatch.setenv("ROWLOCK_POOL_SIZE", "500")
    assert verdicts()["connections"]["verdict"] == "ok"
    with cli_app.processor():
        found = verdicts()["connections"]
        assert found["verdict"] == "warning"
        assert "ROWLOCK_POOL_SIZE" in found["text"]


def test_the_clocks_differ(cli_ledger, verdicts, monkeypatch):
    real = doctor.clock.wall
    monkeypatch.setattr(doctor.clock, "wall", lambda: real() - 60)
    found = verdicts()["clock"]
    if cli_ledger == "sqlite":
        assert found["verdict"] == "ok"
    else:
        assert found["verdict"] == "warning"
        assert "60 s behind the ledger's" in found["text"]


def test_servers_that_are_too_old(cli_sqlite, cli_home, monkeypatch):
    with Ledger.open(Settings()) as ledger:
        monkeypatch.setattr(doctor, "_OLDEST_SQLITE", (99, 0))
        assert doctor._server_version(ledger).verdict == "problem"


def test_a_check_that_is_refused_does_not_hide_the_others(cli_sqlite, cli_sql, verdicts, monkeypatch):
    cli_sql("DROP TABLE {}service_instances")
    found = verdicts()
    assert found["dead holders"]["verdict"] == "warning"
    assert "could not be checked" in found["dead holders"]["text"]
    assert found["journal mode"]["verdict"] == "ok"
