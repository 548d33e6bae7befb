import json
import subprocess
import sys

import pytest

import rowlock
from rowlock.cli.output import make_table, printable


def test_help_is_there_for_every_command_and_loads_no_database(cli_home):
    code = """
import sys
from typer.testing import CliRunner
from rowlock.cli.main import app
result = CliRunner().invoke(app, ["--help"])
assert result.exit_code == 0, result.output
for word in ("init", "worker", "records", "why", "doctor"):
    assert word in result.output
heavy = {"sqlalchemy", "pydantic", "pydantic_settings"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("command", ["version", "--version"])
def test_version(cli, command):
    assert cli.ok(command).startswith(f"rowlock {rowlock.__version__} ")


def test_errors_are_sentences_with_exit_code_1(cli, cli_home):
    error = cli.refused("status")
    assert "There is no ledger sqlite:///rowlock.db" in error
    assert "rowlock init" in error
    assert not list(cli_home.iterdir()), "looking must not make a file"


def test_usage_errors_have_exit_code_2(cli, cli_home):
    cli.refused("status", "--no-such-option", code=2)
    cli.refused("status", "--json", "--watch", code=2)


def test_a_password_is_never_shown(cli, cli_home, monkeypatch):
    url = "postgresql://ann:s3cret@127.0.0.1:1/none"
    for command in (("status",), ("doctor",), ("migrate",), ("doctor", "--json"), ("init",)):
        result = cli(*command, "--ledger", url)
        assert result.exit_code == 1
        assert "s3cret" not in result.output
        assert "ann:***@" in result.output
    monkeypatch.setenv("ROWLOCK_POOL_SIZE", "none")
    assert "pool_size" in cli.refused("status", "--ledger", url)


def test_every_public_name_loads():
    for name in rowlock.__all__:
        assert getattr(rowlock, name).__name__ == name
    assert sorted(rowlock.__all__) == rowlock.__all__
    with pytest.raises(AttributeError, match="nonsense"):
        _ = rowlock.nonsense


def test_control_characters_do_not_reach_the_terminal(cli, cli_sqlite, cli_die):
    cli_die(a=ValueError("\x1b[2Jgone [red]"))
    for command in (("dead", "list"), ("records", "show", "a"), ("why", "a")):
        out = cli.ok(*command)
        assert "\x1b" not in out
        assert "\\x1b[2Jgone [red]" in out
    assert json.loads(cli.ok("dead", "list", "--json"))[0]["reason"].endswith("\x1b[2Jgone [red]")


def test_printable_keeps_lines_and_letters():
    assert printable("ä\tb\nc\x07") == "ä\tb\nc\\x07"


def test_a_table_is_readable_at_80_columns(monkeypatch):
    from rich.console import Console

    table = make_table((">id", "key", "reason"), [(123456, "k" * 60, "reason " * 30)])
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table)
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert "123456" in lines[1], "numbers are never broken"
    assert "".join(lines).replace(" ", "").count("k") >= 60, "nothing of a key is cut off"
