"""`rowlock run`: everything a program has, as one instance, in real processes that are really killed."""

import signal

import pytest
from tests.support.waiting import eventually

PROGRAM = """
from rowlock import Rowlock

app = Rowlock()


@app.service("edgar", every=0.1, ttl=1)
def edgar(run):
    print("polled", run.token, flush=True)


@app.schedule("* * * * * *")
def report(record):
    print("reported", flush=True)
"""


@pytest.fixture
def program(cli_home):
    (cli_home / "monitors.py").write_text(PROGRAM)


def service(cli):
    found = cli.json("services", "list")
    return found[0] if found else {"state": None, "runs": 0, "holder": None, "token": 0}


def pid_of(cli, instance):
    return next((one["pid"] for one in cli.json("instances", "--all") if one["id"] == instance), None)


@pytest.mark.usefixtures("program", "cli_ledger")
def test_a_killed_holder_is_replaced_and_a_signal_ends_the_other_well(cli, cli_start):
    started = {
        process.pid: process
        for process in (cli_start("run", "monitors:app"), cli_start("run", "monitors:app"))
    }
    eventually(
        lambda: service(cli)["runs"] > 1 and service(cli)["standby"] == 1, "the service and its standby"
    )
    first = service(cli)
    told = cli.ok("why", "service:edgar")
    assert f"It is on instance {first['holder']}" in told
    assert "1 instance would take over." in told
    holder = started.pop(pid_of(cli, first["holder"]))
    holder.kill()
    eventually(
        lambda: service(cli)["token"] > first["token"] and service(cli)["runs"] > first["runs"], "a takeover"
    )
    eventually(lambda: cli.json("schedules", "list")[0]["ticks"] > 1, "two ticks")
    (other,) = started.values()
    assert pid_of(cli, service(cli)["holder"]) == other.pid
    other.send_signal(signal.SIGTERM)
    out, err = other.communicate(timeout=60)
    assert other.returncode == 0, err
    assert "polled" in out
    last = service(cli)
    assert (last["state"], last["holder"]) == ("stopped", None)
    assert "stopped" in cli.ok("services", "list")
    assert "No instance has it. Start one" in cli.ok("why", "service:edgar")
    assert "there are: edgar" in cli.refused("why", "service:typo")
    assert "report" in cli.ok("schedules", "list")


@pytest.mark.usefixtures("program", "cli_ledger")
def test_a_worker_says_what_it_leaves_out(cli_start):
    process = cli_start("worker", "monitors:app", "--until-empty")
    _, err = process.communicate(timeout=60)
    assert "rowlock run monitors:app" in err


@pytest.mark.usefixtures("cli_sqlite")
def test_a_program_with_nothing_to_run_and_a_module_without_an_app(cli, cli_home):
    (cli_home / "empty_program.py").write_text("from rowlock import Rowlock\napp = Rowlock()\n")
    assert "nothing to run" in cli.refused("run", "empty_program:app")
    (cli_home / "no_app.py").write_text("def edgar(): ...\n")
    assert "has no 'app'" in cli.refused("run", "no_app")


@pytest.mark.usefixtures("cli_sqlite")
def test_schedules_can_be_forgotten(cli):
    assert "No schedules yet" in cli.ok("schedules", "list")
    assert "No service has run yet" in cli.ok("services", "list")
    assert "There is no schedule 'x'" in cli.refused("schedules", "forget", "x")
