"""`rowlock dead`: dead letters, by themselves or by what killed them, and driving them again."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import AsJson, FlowFilter, LedgerUrl, Limit, Yes
from rowlock.cli.output import confirm, progress, say, say_json, say_table, since

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlock.ledger.ledger import Ledger
    from rowlock.queue.letters import DeadLetters

group = typer.Typer(name="dead", no_args_is_help=True, help="Dead letters: look at them, drive them again.")

Fingerprint = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Only what died of this; see `dead groups`.", show_default=False),
]


@contextmanager
def _letters(url: str | None, flow: str | None) -> "Iterator[tuple[Ledger, DeadLetters]]":
    """The ledger and its dead letters; a flow that nobody has registered is an error, not an empty list."""
    from rowlock.queue.inspector import Inspector
    from rowlock.queue.letters import DeadLetters

    with open_ledger(url) as opened:
        if flow is not None:
            Inspector(opened).flow(flow)
        yield opened, DeadLetters(opened)


@group.command("list")
def list_(
    *,
    flow: FlowFilter = None,
    fingerprint: Fingerprint = None,
    limit: Limit = 50,
    as_json: AsJson = False,
    ledger: LedgerUrl = None,
) -> None:
    """List dead letters, newest first."""
    with _letters(ledger, flow) as (opened, letters):
        found = letters.list(flow, fingerprint, limit)
        now = opened.now()
    if as_json:
        say_json(found)
    elif not found:
        say("No dead letters.")
    else:
        rows = (
            (
                one["id"],
                one["flow"],
                one["key"],
                since(one["settled_at"], now),
                one["fingerprint"],
                one["reason"],
            )
            for one in found
        )
        say_table((">id", "flow", "key", ">died", "fingerprint", "reason"), rows)


@group.command()
def groups(
    flow: FlowFilter = None, limit: Limit = 100, as_json: AsJson = False, ledger: LedgerUrl = None
) -> None:
    """Dead letters by what killed them, the largest group first."""
    with _letters(ledger, flow) as (opened, letters):
        found = letters.groups(flow, limit)
        now = opened.now()
    if as_json:
        say_json(found)
    elif not found:
        say("No dead letters.")
    else:
        rows = (
            (one["records"], one["flow"], one["fingerprint"], since(one["last_at"], now), one["example_id"], one["example"])
            for one in found
        )  # fmt: skip
        say_table((">records", "flow", "fingerprint", ">last", ">for example", "reason"), rows)


@group.command()
def redrive(
    records: Annotated[
        list[str] | None, typer.Argument(metavar="RECORD", help="These; otherwise what the filters name.")
    ] = None,
    *,
    flow: FlowFilter = None,
    fingerprint: Fingerprint = None,
    everything: Annotated[bool, typer.Option("--all", help="Every dead letter of the ledger.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="So many at most, the oldest first.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    yes: Yes = False,
    ledger: LedgerUrl = None,
) -> None:
    """Drive dead letters again, under their own ids and keys, with fresh attempts.

    Example: rowlock dead redrive --fingerprint TimeoutError-1a2b3c4d --dry-run
    """
    filtered = bool(flow or fingerprint or everything)
    if not records and not filtered:
        raise typer.BadParameter("Say which: name records, or give --flow, --fingerprint or --all.")
    if records and (filtered or limit is not None):
        raise typer.BadParameter("Filters and --limit do not go with named records.")
    if records:
        _redrive_named(records, ledger, dry_run=dry_run)
    else:
        _redrive_many(flow, fingerprint, limit, ledger, dry_run=dry_run, yes=yes)


def _redrive_named(names: list[str], url: str | None, *, dry_run: bool) -> None:
    from rowlock.queue.inspector import Inspector
    from rowlock.queue.letters import DeadLetters

    with open_ledger(url) as opened:
        inspector = Inspector(opened)
        ids = list(dict.fromkeys(inspector.find(name) for name in names))
        if dry_run:
            say(str(sum(inspector.record(id_)["status"] in ("dead", "cancelled") for id_ in ids)))
            return
        for id_ in ids:
            DeadLetters(opened).redrive_one(id_)
            say(f"Record {id_} is driven again.")


def _redrive_many(
    flow: str | None,
    fingerprint: str | None,
    limit: int | None,
    url: str | None,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    with _letters(url, flow) as (_, letters):
        count = letters.count(flow, fingerprint)
        if limit is not None:
            count = min(count, limit)
        if dry_run:
            say(str(count))
            return
        if count:
            confirm(f"Drive {count:,} dead letters again?", yes=yes)
        with progress("driving again", count) as show:
            done = letters.redrive(flow, fingerprint, limit, show)
    say(f"{done:,} driven again.")
