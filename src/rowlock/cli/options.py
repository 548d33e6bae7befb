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
AppTarget = Annotated[
    str, typer.Argument(metavar="MODULE[:APP]", help="Where your Rowlock is; APP is app if it is not given.")
]
Flows = Annotated[
    str | None, typer.Option(metavar="A,B", help="Only these flows; otherwise all.", show_default=False)
]
Concurrency = Annotated[
    int | None,
    typer.Option(min=1, help="Records of a flow at a time; otherwise as the flow says.", show_default=False),
]
InstanceName = Annotated[
    str | None, typer.Option(help="The instance's name; otherwise host:pid.", show_default=False)
]


def names(text: str | None) -> list[str] | None:
    """A,B as a list; None when nothing was said."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else None
