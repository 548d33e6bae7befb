import os
import signal
import sys
import time

import pytest

from rowlock.cli.supervisor import Child, Supervisor

PROGRAM = """
import os
from rowlock import Rowlock

app = Rowlock()

@app.flow("one", max_attempts=1)
def one(record):
    return os.getpid()

@app.flow("two")
def two(record):
    return record.payload
"""


@pytest.fixture
def program(cli_home, cli_sqlite):
    (cli_home / "program.py").write_text(PROGRAM)
    return cli_home


@pytest.fixture
def module(cli_home, monkeypatch):
    """Writes a module that no other test has imported."""
    before = set(sys.modules)

    def write(name, text):
        (cli_home / f"{name}.py").write_text(text)
        return name

    monkeypatch.setattr(sys, "path", [*sys.path])
    yield write
    for name in set(sys.modules) - before:
        if name.startswith("mod_"):
            del sys.modules[name]


def wait_for(what, process=None):
    """Asks again and again, for a minute at most."""
    give_up = time.monotonic() + 60
    while not (found := what()):
        if process is not None and process.poll() is not None:
            pytest.fail(f"it ended with {process.returncode}: {process.communicate()}")
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.05)
    return found


# -- one process ------------------------------------------------------------------------------------------


def test_until_empty(cli, program, cli_start):
    cli.ok("flows", "add", "one")
    cli.ok("flows", "add", "two")
    cli.ok("enqueue", "one", "--payload", "1")
    cli.ok("enqueue", "two", "--payload", "2")
    process = cli_start(
        "worker", "program", "--until-empty", "--flows", "two", "--name", "me", "--concurrency", "2"
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == ""
    assert "works on two" in err, "logs go to stderr"
    assert [one["status"] for one in cli.json("records", "list")] == ["completed", "pending"]
    assert cli.json("instances")[0]["name"] == "me"


def test_a_signal_ends_it_in_good_order(cli, program, cli_start):
    process = cli_start("worker", "program:app")
    wait_for(lambda: [i for i in cli.json("instances") if i["state"] == "active"], process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert cli.json("instances")[0]["state"] == "stopped"


def test_ledger_option_wins_over_the_program(cli, cli_home, cli_start):
    (cli_home / "program.py").write_text(PROGRAM.replace("Rowlock()", "Rowlock('sqlite:///other.db')"))
    url = f"sqlite:///{cli_home}/mine.db"
    cli.ok("migrate", "--ledger", url)
    cli.ok("flows", "add", "one", "--ledger", url)
    cli.ok("enqueue", "one", "--payload", "1", "--ledger", url)
    process = cli_start("worker", "program", "--until-empty", "--ledger", url, "--processes", "2")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert cli.json("records", "list", "--ledger", url)[0]["status"] == "completed"
    assert not (cli_home / "other.db").exists()


# -- what cannot be loaded -----------------------------------------------------------------------------------


def test_no_such_module(cli, cli_home):
    error = cli.refused("worker", "mod_nowhere.tasks")
    assert "There is no module 'mod_nowhere'" in error
    assert str(cli_home) in error


def test_a_file_instead_of_a_module(cli, cli_home):
    assert "rowlock worker jobs.tasks:app" in cli.refused("worker", "./jobs/tasks.py")


def test_a_module_that_imports_what_is_not_there(cli, module):
    error = cli.refused("worker", module("mod_imports", "\nimport no_such_package\n"))
    assert "imports 'no_such_package', which is not installed" in error
    assert "mod_imports.py, line 2" in error


def test_a_module_that_raises(cli, module):
    error = cli.refused("worker", module("mod_raises", "x = 1\ny = x / 0\n"))
    assert "raised ZeroDivisionError" in error
    assert "mod_raises.py, line 2" in error
    assert "mod_syntax.py, line 1" in cli.refused("worker", module("mod_syntax", "def ("))
    assert "SystemExit" in cli.refused("worker", module("mod_exits", "raise SystemExit(3)"))


def test_no_such_attribute(cli, module):
    name = module("mod_attribute", "from rowlock import Rowlock\nqueue = Rowlock()\nother = 5\n")
    assert "It has mod_attribute:queue" in cli.refused("worker", name)
    assert "is a int, not a Rowlock" in cli.refused("worker", f"{name}:other")
    assert "at least one flow" in cli.refused("worker", f"{name}:queue", "--processes", 2)
    assert "app = Rowlock()" in cli.refused("worker", module("mod_empty", ""))


def test_a_flow_that_is_not_registered(cli, program):
    for processes in (1, 2):
        error = cli.refused("worker", "program", "--flows", "one,typo", "--processes", processes)
        assert "there are: one, two" in error


def test_tables_are_missing(cli, cli_home, cli_postgres, module, monkeypatch):
    monkeypatch.setenv("ROWLOCK_LEDGER_URL", cli_postgres.url)
    monkeypatch.setenv("ROWLOCK_LEDGER_SCHEMA", "not_migrated")
    name = module("mod_tables", PROGRAM)
    for processes in (1, 2):
        assert "rowlock migrate" in cli.refused("worker", name, "--processes", processes)


# -- several processes ------------------------------------------------------------------------------------------


def test_several_processes_work_until_empty(cli, program, cli_start):
    cli.ok("flows", "add", "one")
    lines = "".join(f"{n}\n" for n in range(50))
    cli.ok("enqueue", "one", "--file", "-", stdin=lines)
    process = cli_start("worker", "program", "--until-empty", "--processes", "2", "--name", "w")
    _, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    assert {one["status"] for one in cli.json("records", "list")} == {"completed"}
    assert {one["name"] for one in cli.json("instances")} == {"w-1", "w-2"}


def test_a_killed_child_is_started_again_and_signals_reach_all(cli, program, cli_start):
    process = cli_start("worker", "program", "--processes", "2", "--name", "w")
    first = wait_for(lambda: _active(cli, 2), process)
    victim = first["w-1"]
    os.kill(victim, signal.SIGKILL)
    again = wait_for(lambda: (now := _active(cli, 2)) and now["w-1"] != victim and now, process)
    assert again["w-2"] == first["w-2"], "the other one was left alone"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "killed by SIGKILL" in err
    assert not _running(again["w-1"])
    assert not _running(again["w-2"])


def test_children_do_not_outlive_a_killed_supervisor(cli, program, cli_start):
    process = cli_start("worker", "program", "--processes", "2", "--name", "w")
    children = wait_for(lambda: _active(cli, 2), process)
    process.kill()
    process.wait()
    wait_for(lambda: not any(_running(pid) for pid in children.values()))
    ended = [i for i in cli.json("instances") if i["state"] == "stopped"]
    assert len(ended) == 2, "they left in good order"


def _active(cli, count):
    """Name → pid of those that are alive, once there are so many of them by different names."""
    newest = {}
    for one in reversed(cli.json("instances")):
        if one["state"] == "active":
            newest[one["name"]] = one["pid"]
    return newest if len(newest) == count else None


def _running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - a zombie that nobody waits for has ended
        return stat.read().rsplit(")", 1)[1].split()[0] != "Z"


def script(text):
    return [sys.executable, "-c", text]


def test_a_child_that_cannot_work_is_given_up_and_told(monkeypatch, tmp_path):
    monkeypatch.setattr("rowlock.cli.supervisor._FIRST_PAUSE", 0.01)
    lives = tmp_path / "lives"
    lives.mkdir()
    failing = script(f"import os; open(r'{lives}/' + str(os.getpid()), 'w'); raise SystemExit(3)")
    assert Supervisor([failing, script("")], until_empty=True).run() is False
    assert len(list(lives.iterdir())) == 5
    assert Supervisor([script(""), script("")], until_empty=True).run() is True


def test_a_child_that_recovers_counts_as_well(monkeypatch, tmp_path):
    monkeypatch.setattr("rowlock.cli.supervisor._FIRST_PAUSE", 0.01)
    flag = tmp_path / "flag"
    once = script(
        f"import os, signal, pathlib; f = pathlib.Path(r'{flag}')\n"
        "if not f.exists(): f.touch(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert Supervisor([once], until_empty=True).run() is True


def test_pauses_grow_with_each_death():
    child = Child(1, [])
    pauses = []
    for child.deaths in range(1, 9):
        pauses.append(child.pause)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]


# A child that counts its signals, and leaves at the second: well, or with an error of its own.
COUNTING = """
import signal, sys, pathlib
count = 0
def note(number, frame):
    global count
    count += 1
    pathlib.Path(sys.argv[1]).write_text(f"{signal.Signals(number).name} {count}")
    if count == 2:
        raise SystemExit(int(sys.argv[2]))
signal.signal(signal.SIGTERM, note)
signal.signal(signal.SIGINT, note)
pathlib.Path(sys.argv[1]).write_text("ready")
while True:
    signal.pause()
"""
SUPERVISING = """
import sys
from rowlock.cli.supervisor import Supervisor
child = [sys.executable, "-c", sys.argv[1], sys.argv[2], sys.argv[3]]
raise SystemExit(0 if Supervisor([child], until_empty=False).run() else 1)
"""


@pytest.mark.parametrize("code", [0, 7])
def test_both_signals_are_forwarded_once_each_and_a_failing_end_is_told(tmp_path, code):
    import subprocess

    said = tmp_path / "said"

    def says(word):
        wait_for(lambda: said.exists() and said.read_text() == word, process)

    process = subprocess.Popen([*script(SUPERVISING), COUNTING, str(said), str(code)])
    try:
        says("ready")
        process.send_signal(signal.SIGINT)
        says("SIGINT 1")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == (1 if code else 0)
        assert said.read_text() == "SIGTERM 2"
    finally:
        process.kill()
        process.wait()
