"""`rowlock migrate`: the ledger's tables."""

from typing import Annotated

import typer

from rowlock.cli.ledgers import connect, require_file
from rowlock.cli.options import LedgerUrl
from rowlock.cli.output import say


def migrate(
    ledger: LedgerUrl = None,
    sql: Annotated[bool, typer.Option("--sql", help="Print the script, and change nothing.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only check: exit code 1 if code and tables differ.")
    ] = False,
) -> None:
    """Make the ledger's tables, or bring them up to date.

    Safe to run twice, and from several places at once.
    """
    if sql and check:
        raise typer.BadParameter("--sql and --check cannot go together.")
    with connect(ledger) as opened:
        if sql:
            typer.echo(opened.schema.script())
        elif check:
            require_file(opened)
            opened.schema.check()
            say(f"{opened} is at version {opened.schema.latest}, as this code needs.")
        else:
            for name in (applied := opened.schema.migrate()):
                say(f"applied {name}")
            state = "is now" if applied else "was already"
            say(f"{opened} {state} at version {opened.schema.latest}.")
