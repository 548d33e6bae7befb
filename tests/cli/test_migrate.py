import sqlite3

import psycopg


def test_migrate_makes_the_tables_once(cli, cli_dialect):
    for command in (("status",), ("migrate", "--check")):
        error = cli.refused(*command)
        assert "rowlock migrate" in error or "rowlock init" in error
    assert "applied 0001_heart" in cli.ok("migrate")
    assert "was already at version" in cli.ok("migrate")
    cli.ok("migrate", "--check")
    assert cli.json("status")["flows"] == []


def test_check_refuses_tables_that_are_newer(cli, cli_ledger, cli_sql):
    cli_sql("INSERT INTO {}ledger_version VALUES (9999, 'future', 'now')")
    assert "newer than this code" in cli.refused("migrate", "--check")
    assert "Upgrade rowlock" in cli.refused("status")


def test_sql_prints_a_script_that_makes_the_tables(cli, cli_dialect, cli_home, cli_postgres, monkeypatch):
    if cli_dialect == "sqlite":
        script = cli.ok("migrate", "--sql")
        assert not (cli_home / "ledger.db").exists(), "printing must change nothing"
        with sqlite3.connect(cli_home / "ledger.db") as connection:
            connection.executescript(script)
        connection.close()
    else:
        monkeypatch.setenv("ROWLOCK_LEDGER_SCHEMA", "Mixed_Case")
        script = cli.ok("migrate", "--sql")
        with psycopg.connect(cli_postgres.url, autocommit=True) as connection:
            connection.execute(script)
    cli.ok("migrate", "--check")
    cli.ok("flows", "add", "f")
    cli.refused("migrate", "--sql", "--check", code=2)
