"""`rowlock prove`: kills everything, and counts."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rowlock.cli.output import fail, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from rowlock.proof.prover import Plan
    from rowlock.proof.report import Report


def prove(
    *,
    records: Annotated[int, typer.Option(min=100, max=100_000_000, help="How many records.")] = 10_000,
    workers: Annotated[int, typer.Option(min=2, max=100, help="Worker processes, kept running.")] = 4,
    seconds: Annotated[
        float, typer.Option(min=0, help="Spread the work over so long at least; 0: as fast as it goes.")
    ] = 0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Repeats a run's records and faults.", show_default="a new one")
    ] = None,
    kills: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Kills that hit workers at work; the other faults go along with them.",
            show_default="1 for each 800 records",
        ),
    ] = None,
    lease: Annotated[float, typer.Option(min=1, max=60, help="The lease of the workers, in seconds.")] = 2,
    faults: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Only these: kill, stop, term, backend, crash, partition, commit-loss, pooler, clock.",
            show_default="all that can be had",
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="On this database, in a schema of its own.", show_default="a new SQLite file"
        ),
    ] = None,
    postgres: Annotated[
        bool,
        typer.Option("--postgres", help="On a PostgreSQL server that is started for it, and thrown away."),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(help="Keep the facts, the journal and the logs in this new folder.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write the report as a page.", show_default=False)
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Write the figures to this file.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The last line is a JSON object.")] = False,
) -> None:
    """Kill workers, stop them, cut them off, crash the database; then count what was lost and what happened twice.

    It makes a schema of its own (or a file) and removes it again; nothing else in your database is touched. Ends with
    exit code 1 if any promise was broken, and then says how to repeat the run.

    Example: rowlock prove --postgres --records 100000 --html proof.html
    """
    from rowlock.proof.prover import Plan, random_seed

    if ledger is not None and postgres:
        fail("--ledger names a database and --postgres starts another: give one of them.")
    plan = Plan(
        records=records, workers=workers, seconds=seconds, seed=random_seed() if seed is None else seed, kills=kills,
        lease=lease, ledger_url=ledger, own_server=postgres,
        faults=None if faults is None else tuple(name.strip() for name in faults.split(",") if name.strip()),
    )  # fmt: skip
    for file in (html, figures):
        if file is not None:  # what cannot be written is said now, and not when everything is over
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    report = _run(plan, folder)
    if html is not None:
        from rowlock.proof.page import page

        html.write_text(page(report), encoding="utf-8")
    if figures is not None:
        figures.write_text(json.dumps(report.as_dict(), indent=2) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
    if not report.good:
        raise typer.Exit(1)


def _run(plan: "Plan", folder: Path | None) -> "Report":
    from rich.console import Console

    console = Console(highlight=False)
    with _folder(folder) as place:
        report = _play(console, plan, place)
    console.print(_table(report))
    for line in (
        f"{name}: {example}" for name, lines in report.findings.examples.items() for example in lines
    ):
        console.print(printable(line), style="red", markup=False)
    _say_verdict(console, report, folder)
    return report


@contextmanager
def _folder(wanted: Path | None) -> Iterator[Path]:
    from rowlock.proof.arena import empty_folder

    if wanted is not None:
        yield empty_folder(wanted)
        return
    with tempfile.TemporaryDirectory(prefix="rowlock-proof-") as made:
        yield Path(made)


def _play(console: "Console", plan: "Plan", folder: Path) -> "Report":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from rowlock.proof.prover import Prover

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("settled", total=plan.records)

        def show(settled: int, records: int, faults: int) -> None:
            bars.update(bar, completed=min(settled, records), description=f"settled, {faults} faults")

        def tell(text: str) -> None:
            bars.console.print(f"• {printable(text)}", markup=False)

        return Prover(plan, folder, tell=tell, show=show).run()


def _table(report: "Report") -> "RenderableType":
    from rich.table import Table

    figures = report.as_dict()
    table = Table(title=f"Proof, seed {report.plan.seed}", title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("", justify="right")
    for name in _SHOWN:
        if isinstance(figures[name], int) and (figures[name] or name in report.findings.counts):
            table.add_row(name.replace("_", " "), f"{figures[name]:,}")
    for name, count in report.findings.counts.items():
        style = "bold green" if count == 0 else "bold red"
        table.add_row(name.replace("_", " "), f"[{style}]{count:,}[/]")
    for kind, recovery in report.findings.recoveries.items():
        table.add_row(f"waited after {kind}", f"p50 {recovery.p50:.2f} s, p99 {recovery.p99:.2f} s")
    table.add_row("records per second", f"{figures['records_per_second']:,.0f}")
    return table


_SHOWN = (
    "records", "kills_mid_flight", "kills", "stops", "stops_over_lease", "terms", "backends_terminated",
    "database_crashes", "commit_losses", "reply_losses", "partitions", "pooler_deaths", "clock_jumps", "takeovers",
    "stale_refused", "redriven",
)  # fmt: skip


def _say_verdict(console: "Console", report: "Report", folder: Path | None) -> None:
    if report.good:
        console.print("[bold green]Nothing was lost, nothing was done twice.[/]")
        return
    console.print("[bold red]The promises were broken.[/] The same run again:")
    console.print(report.command, markup=False, soft_wrap=True)
    if folder is None:
        console.print("With --folder FOLDER it keeps its facts, its journal and the workers' logs.")
