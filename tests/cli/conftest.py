"""The command line's own fixtures: a folder to work in, a ledger in each dialect, and ways to run commands."""

import json
import os
import subprocess
import sys
import uuid

import pytest
from typer.testing import CliRunner

from rowlock import Rowlock
from rowlock.cli.main import app as command_line
from rowlock.databases.local_postgres import LocalPostgres


@pytest.fixture(scope="session")
def cli_postgres():
    with LocalPostgres() as server:
        yield server


@pytest.fixture
def cli_home(tmp_path, monkeypatch):
    """An empty folder, and no settings but what a test makes."""
    for name in [name for name in os.environ if name.startswith("ROWLOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli_sqlite(cli_home, monkeypatch):
    monkeypatch.setenv("ROWLOCK_LEDGER_URL", f"sqlite:///{cli_home}/ledger.db")
    Commands().ok("migrate")


@pytest.fixture(params=["sqlite", "postgresql"])
def cli_dialect(request, cli_home, monkeypatch):
    """A ledger that the settings name, in each dialect; its tables are not there yet."""
    if request.param == "sqlite":
        monkeypatch.setenv("ROWLOCK_LEDGER_URL", f"sqlite:///{cli_home}/ledger.db")
    else:
        monkeypatch.setenv("ROWLOCK_LEDGER_URL", request.getfixturevalue("cli_postgres").url)
        monkeypatch.setenv("ROWLOCK_LEDGER_SCHEMA", f"t{uuid.uuid4().hex}")
    return request.param


@pytest.fixture
def cli_ledger(cli_dialect):
    """The same, with its tables."""
    Commands().ok("migrate")
    return cli_dialect


class Commands:
    """Runs commands as a user would, in this process."""

    def __call__(self, *arguments, stdin=None):
        result = CliRunner().invoke(
            command_line, [str(a) for a in arguments], input=stdin, prog_name="rowlock"
        )
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def ok(self, *arguments, stdin=None):
        """Its output, and exit code 0."""
        result = self(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments, stdin=None):
        return json.loads(self.ok(*arguments, "--json", stdin=stdin))

    def refused(self, *arguments, code=1, stdin=None):
        """Its error, nothing on stdout, and the exit code."""
        result = self(*arguments, stdin=stdin)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture
def cli():
    return Commands()


@pytest.fixture
def cli_start():
    """Starts `rowlock …` as a process of its own."""
    started = []

    def start(*arguments, **options):
        process = subprocess.Popen(
            [sys.executable, "-m", "rowlock.cli", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def cli_app():
    """A program on the ledger that the settings name. `strict` dies at the first error, `gentle` tries again."""
    with Rowlock() as app:

        @app.flow("strict", max_attempts=1)
        def strict(record):
            return record.payload

        @app.flow("gentle")
        def gentle(record):
            return record.payload

        yield app


@pytest.fixture
def cli_sql(cli_app):
    """Changes the ledger behind everybody's back; {} stands before a table's name."""

    def run(statement):
        schema = f'"{cli_app.settings.ledger_schema}".' if cli_app.ledger.dialect == "postgresql" else ""
        with cli_app.ledger.engine.begin() as connection:
            result = connection.exec_driver_sql(statement.format(schema))
            return result.fetchall() if result.returns_rows else []

    return run


@pytest.fixture
def cli_die(cli_app):
    """Enqueues records and lets each die of its error."""

    def die(**errors):
        with cli_app.processor() as processor:
            for key, error in errors.items():
                cli_app.enqueue("strict", {"key": key}, key=key)
                [record] = processor.claim_records_batch("strict", 1)
                processor.mark_record_failed(record, error)

    return die
