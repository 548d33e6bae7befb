"""`rowlock worker`: runs a program's flows, in one process or several."""

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from rowlock import log
from rowlock.cli.loading import load_app_on
from rowlock.cli.options import AppTarget, Concurrency, Flows, InstanceName, LedgerUrl, names
from rowlock.cli.output import note

if TYPE_CHECKING:
    from rowlock.app import Rowlock

_LEDGER_OF_CHILDREN = "ROWLOCK_WORKER_LEDGER"


def worker(
    target: AppTarget,
    *,
    flows: Flows = None,
    concurrency: Concurrency = None,
    processes: Annotated[int, typer.Option(min=1, max=1000, help="Worker processes, kept running.")] = 1,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when no record is left.")] = False,
    name: InstanceName = None,
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
    ledger: LedgerUrl = None,
) -> None:
    """Work on a program's flows until SIGTERM or Ctrl-C.

    The first signal lets running handlers finish within ROWLOCK_GRACE_SECONDS; a second one leaves at once, and
    hands back what is running.

    Example: rowlock worker tasks:app --processes 4
    """
    from rowlock.settings import load_settings

    if supervised:
        _leave_with_the_supervisor()
        ledger = os.environ.get(_LEDGER_OF_CHILDREN)
    log.set_up(load_settings().log_format)
    app = load_app_on(ledger, target)
    chosen = names(flows)
    if app.services or app.schedules:
        note(f"The services and schedules of {target} do not run here: rowlock run {target} runs everything.")
    if processes > 1:
        _check(app, chosen)
        command = [sys.executable, "-m", "rowlock.cli", "worker", target, "--supervised"]
        command += ["--flows", flows] if flows else []
        command += ["--concurrency", str(concurrency)] if concurrency else []
        command += ["--until-empty"] if until_empty else []
        if ledger is not None:
            # Not as an option: everybody on this machine can read those, and it may hold a password.
            os.environ[_LEDGER_OF_CHILDREN] = ledger
        _supervise(command, processes, name, until_empty=until_empty)
    else:
        with app:
            app.worker(chosen, concurrency=concurrency, name=name, until_empty=until_empty).run()


def _check(app: "Rowlock", chosen: list[str] | None) -> None:
    """What no child could start with is said once, here, and not by each child for ever."""
    from rowlock.errors import ConfigurationError, UnknownFlow

    if not app.flows:
        raise ConfigurationError("A worker needs at least one flow: register one with @app.flow(…).")
    for flow in chosen or []:
        if flow not in app.flows:
            raise UnknownFlow(f"flow {flow!r} is not registered here; there are: {', '.join(app.flows)}.")
    with app:
        app.ledger.now()


def _supervise(command: list[str], processes: int, name: str | None, *, until_empty: bool) -> None:
    from rowlock.cli.supervisor import Supervisor

    commands = [
        [*command, *(["--name", f"{name}-{number}"] if name else [])] for number in range(1, processes + 1)
    ]
    if not Supervisor(commands, until_empty=until_empty).run():
        raise typer.Exit(1)


def _leave_with_the_supervisor() -> None:
    """Its end of our stdin closes when it ends, even when it was killed."""
    # Until the worker takes over the signals, one means the end, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch() -> None:
        # The bare descriptor: a thread inside sys.stdin's lock would abort the interpreter when it ends.
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="rowlock-supervisor-watch", daemon=True).start()
