"""`rowlock tokens`: who may call the server."""

from dataclasses import asdict
from typing import Annotated

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import note, say, say_json, say_table, since, stamp

group = typer.Typer(name="tokens", no_args_is_help=True, help="Say who may call the server.")

TokenName = Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")]


@group.command()
def create(
    name: TokenName,
    *,
    role: Annotated[
        str, typer.Option(help="read, submit, operate or admin; each may do what those before it may.")
    ],
    days: Annotated[
        int | None, typer.Option(min=1, help="It expires after so many days.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """Create a token and print its secret, this once.

    From the first token on, every request to every server of this ledger must bring one.

    Example: rowlock tokens create ci-exports --role submit --days 90
    """
    from rowlock.server.tokens import Tokens

    with open_ledger(ledger) as opened:
        created = Tokens(opened).create(name, role, days)
    if as_json:
        say_json(asdict(created))
        return
    say(created.secret)
    until = f" until {stamp(created.expires_at)}" if created.expires_at else ""
    note(f"This is {name}, with the role {created.role}{until}. Keep it now: it is not shown again.")


@group.command("list")
def list_(as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """List tokens: what each may do, whether it counts, and when it was last used. Secrets are not kept."""
    from rowlock.server.tokens import Tokens

    with open_ledger(ledger) as opened:
        found = Tokens(opened).list()
        now = opened.now()
    if as_json:
        say_json(found)
    elif not found:
        say(
            "No tokens: only this machine may call, and without one. Create one: rowlock tokens create NAME --role ROLE"
        )
    else:
        rows = (
            (
                one["name"], one["role"], f"{one['prefix']}…", one["state"], since(one["created_at"], now),
                since(one["expires_at"], now) or "never", since(one["used_at"], now) or "never",
            )
            for one in found
        )  # fmt: skip
        say_table(("name", "role", "secret", "state", ">created", ">expires", ">used"), rows)


@group.command()
def revoke(name: TokenName, ledger: LedgerUrl = None) -> None:
    """End a token. Servers refuse it within seconds."""
    from rowlock.server.tokens import Tokens

    with open_ledger(ledger) as opened:
        Tokens(opened).revoke(name)
    say(f"{name} is revoked.")
