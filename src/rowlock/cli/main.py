"""`rowlock`: the command line. A new command or group is one more line in PANELS."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rowlock.cli import (
    dead,
    demo,
    doctor,
    enqueue,
    flows,
    init,
    instances,
    jobs,
    limits,
    locks,
    migrate,
    prove,
    prune,
    records,
    run,
    schedules,
    serve,
    services,
    status,
    tokens,
    version,
    why,
    worker,
)
from rowlock.cli.output import fail
from rowlock.errors import RowlockError

# What `rowlock --help` shows, in this order: a function is a command, a Typer is a group of them.
PANELS: dict[str, list[Callable[..., None] | typer.Typer]] = {
    "Set up": [init.init, migrate.migrate, doctor.doctor],
    "Work": [run.run, worker.worker, enqueue.enqueue, jobs.group, serve.serve],
    "Look": [status.status, why.why, instances.instances, limits.limits, services.group, schedules.group],
    "Operate": [
        records.group,
        dead.group,
        flows.group,
        locks.group,
        instances.drain,
        prune.prune,
        tokens.group,
    ],
    "Other": [demo.demo, prove.prove, version.version],
}


class ErrorsInWords(TyperGroup):
    """An error of ours is a sentence on stderr and exit code 1; a traceback is for our own faults only."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RowlockError as error:
            fail(str(error))


app = typer.Typer(
    name="rowlock",
    cls=ErrorsInWords,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, which may hold secrets
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def rowlock(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=version.show, is_eager=True, help="Show the version and end."),
    ] = False,
) -> None:
    """Many copies of one program, one database, every piece of work done once.

    The ledger comes from ROWLOCK_LEDGER_URL, from rowlock.toml, or from --ledger URL on any command.
    """


for panel, entries in PANELS.items():
    for entry in entries:
        if isinstance(entry, typer.Typer):
            app.add_typer(entry, rich_help_panel=panel)
        else:
            app.command(rich_help_panel=panel)(entry)


def main() -> None:
    app(prog_name="rowlock")
