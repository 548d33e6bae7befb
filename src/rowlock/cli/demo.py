"""`rowlock demo`: the promises, shown on this machine in under a minute."""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rowlock.cli.output import fail

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from rowlock.proof.demo import Standing, Tally

_MEANINGS = {
    "accepted": "enqueued twice, accepted once",
    "completed": "scored, in one commit each",
    "dead": "surveys without answers",
    "redriven": "dead letters, after a fix",
    "lost": "neither scored nor dead",
    "duplicated": "scored twice",
    "takeovers": "from the two that fell silent",
    "stale_refused": "of the one that woke too late",
}


def demo(
    records: Annotated[int, typer.Option(min=100, max=1_000_000, help="How many surveys.")] = 10_000,
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep the ledger and the workers' logs in this new folder.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The last line is a JSON object.")] = False,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Save the end as a picture.", show_default=False)
    ] = None,
) -> None:
    """Three workers score surveys; one is killed, one stopped beyond its lease. Nothing is lost, nothing is done twice.

    Needs no server: the ledger is a SQLite file. Ends with exit code 1 if anything was lost or duplicated.
    """
    from rich.console import Console

    console = Console(record=picture is not None, width=100 if picture else None, highlight=False)
    with _folder(folder) as place:
        tally = _play(console, place, records)
    console.print(_table(tally))
    console.print(_verdict(tally))
    if picture is not None:
        _save(console, picture)
    if as_json:
        typer.echo(json.dumps(tally.as_dict()))
    if not tally.good:
        raise typer.Exit(1)


@contextmanager
def _folder(wanted: Path | None) -> Iterator[Path]:
    if wanted is None:
        with tempfile.TemporaryDirectory(prefix="rowlock-demo-") as made:
            yield Path(made)
        return
    if wanted.exists() and (not wanted.is_dir() or any(wanted.iterdir())):
        fail(f"{wanted} is not an empty folder; name one that is, or that does not exist yet.")
    wanted.mkdir(parents=True, exist_ok=True)
    yield wanted.resolve()


def _play(console: "Console", folder: Path, records: int) -> "Tally":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from rowlock.proof.demo import Demo

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("settled", total=records)

        def show(standing: "Standing") -> None:
            bars.update(bar, completed=standing.settled)

        return Demo(folder, records, tell=lambda text: bars.console.print(f"• {text}"), show=show).run()


def _save(console: "Console", picture: Path) -> None:
    """A picture that loads nothing from anywhere: Rich's fonts come from a web address, the viewer's own will do."""
    svg = console.export_svg(title="rowlock demo")
    picture.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


def _table(tally: "Tally") -> "RenderableType":
    from rich.table import Table

    table = Table(title="What happened to every survey", title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("records", justify="right")
    table.add_column("meaning", style="dim")
    for name, count in tally.as_dict().items():
        bad = name in ("lost", "duplicated")
        style = "" if not bad else "bold green" if count == 0 else "bold red"
        label = {"redriven": "re-driven", "stale_refused": "stale writes refused"}.get(name, name)
        table.add_row(label, f"[{style}]{count:,}[/]" if style else f"{count:,}", _MEANINGS[name])
    return table


def _verdict(tally: "Tally") -> str:
    if tally.good:
        return "[bold green]Nothing was lost, nothing was done twice.[/]"
    return "[bold red]The promises were broken: please report this with the workers' logs (--folder).[/]"
