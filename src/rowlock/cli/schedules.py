"""`rowlock schedules`: what is enqueued by itself, and when."""

from typing import Annotated, Any

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import say, say_json, say_table, since, stamp

group = typer.Typer(name="schedules", no_args_is_help=True, help="See what is enqueued by itself, and when.")


@group.command("list")
def list_(as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """List schedules: the last tick that was dealt with, the next one, and how often ticks were missed."""
    from rowlock.ledger.reading import as_dict

    with open_ledger(ledger) as opened:
        now = opened.now()
        found = [as_dict(row) for row in opened.run_safely("schedules")]
    for one in found:
        one["next_at"] = _next(one)
    if as_json:
        say_json(found)
    elif not found:
        say("No schedules yet. Declare one with @app.schedule(…), then: rowlock run MODULE:APP")
    else:
        rows = (
            (
                one["schedule"], one["cron"], one["tz"], one["flow"], one["ticks"], one["gaps"],
                since(one["last_tick_at"], now), f"{since(one['next_at'], now)} ({stamp(one['next_at'])})",
            )
            for one in found
        )  # fmt: skip
        say_table(("schedule", "cron", "tz", "flow", ">ticks", ">gaps", ">last", "next"), rows)


def _next(row: dict[str, Any]) -> Any:
    from rowlock.queue.schedule import Schedule

    schedule = Schedule(name=row["schedule"], cron=row["cron"], flow=row["flow"], tz=row["tz"])
    return schedule.after(row["last_tick_at"])


@group.command()
def forget(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The schedule.")], ledger: LedgerUrl = None
) -> None:
    """Forget a schedule that no program has any more; one that is still declared begins anew at its next start."""
    from rowlock.errors import NotFound

    with open_ledger(ledger) as opened:
        if not opened.run("schedule_forget", name=name):
            raise NotFound(f"There is no schedule {name!r}. To see them: rowlock schedules list")
    say(f"{name} is forgotten.")
