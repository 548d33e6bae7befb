"""`rowlock prune`: forget settled records."""

from typing import Annotated

import typer

from rowlock.cli.ledgers import open_ledger
from rowlock.cli.options import LedgerUrl
from rowlock.cli.output import progress, say


def prune(
    older_than: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="DAYS", help="Settled so many days ago; otherwise ROWLOCK_RETENTION_DAYS."
        ),
    ] = None,
    dead: Annotated[bool, typer.Option("--dead", help="Dead letters too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    ledger: LedgerUrl = None,
) -> None:
    """Forget settled records, their keys and their attempts, in small batches.

    A key that is forgotten is accepted again, and a job is forgotten with its last input. Workers do this by themselves,
    except for dead letters.
    """
    with open_ledger(ledger) as opened:
        days = opened.settings.retention_days if older_than is None else older_than
        count = opened.run_safely("prune_count", seconds=days * 86400, dead_too=dead)[0].records
        if dry_run:
            say(str(count))
            return
        done, batch = 0, opened.settings.prune_batch
        with progress("pruning", count) as show:
            while gone := opened.prune(days * 86400, dead_too=dead, limit=batch):
                done += gone
                show(done)
        opened.run("prune_jobs", seconds=days * 86400)
    say(f"{done:,} forgotten.")
