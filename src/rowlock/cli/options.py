"""Options that many commands share."""

from typing import Annotated

import typer

LedgerUrl = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="The ledger; otherwise ROWLOCK_LEDGER_URL or rowlock.toml says.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Reason = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Why; people will read it.", show_default=False)
]
FlowFilter = Annotated[
    str | None, typer.Option("--flow", metavar="NAME", help="Only this flow.", show_default=False)
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Show so many at most.")]
RecordName = Annotated[
    str, typer.Argument(metavar="RECORD", help="A number, FLOW/KEY, or a key that only one flow has.")
]
RecordNames = Annotated[
    list[str], typer.Argument(metavar="RECORD", help="Numbers, FLOW/KEY, or keys that only one flow has.")
]
