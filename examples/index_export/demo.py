"""Export jobs, shown: an S3 server, the API, three workers, 500 files, a kill, dead inputs, a re-drive, and reuse.

`make demo-jobs` runs it. It ends with exit code 1 if any file is missing, wrong, or there twice.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from facts import Facts
from fleet import LEASE_SECONDS, DemoFailed, Fleet
from market import Market
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rowlock import Rowlock, RowlockError
from rowlock.client import Client, JobView
from rowlock.ledger.ledger import Ledger
from rowlock.server.tokens import Tokens

WORKERS = 3
NOT_LOADED = 7
CORRECTED = 12
LATER = 20
DAY = 20240131  # long enough ago that its levels do not change any more
_MEANINGS = {
    "files": "in the bucket, one for each input",
    "bytes": "read back from the bucket",
    "dead": "without levels at first, each with its reason",
    "redriven": "after their levels were loaded",
    "retried": "needed more than one attempt",
    "taken_over": "from the worker that was killed",
    "reused": "by the second job, not made again",
    "generated": "by the second job, for its new inputs",
    "differences": "between order, ledger and bucket",
}


@dataclass(frozen=True, slots=True)
class Tally:
    """What the demo counted at its end."""

    files: int
    bytes: int
    dead: int
    redriven: int
    retried: int
    taken_over: int
    reused: int
    generated: int
    differences: int


class Demo:
    """Plays the scenes in order. `tell` gets one sentence for each thing that happens, `show` the job as it is."""

    def __init__(
        self, fleet: Fleet, inputs: int, tell: Callable[[str], None], show: Callable[[JobView], None]
    ) -> None:
        self._fleet = fleet
        self._tell = tell
        self._show = show
        missing = min(NOT_LOADED, inputs // 4)
        self._loaded = [f"IDX{number:04d}" for number in range(1, inputs - missing + 1)]
        self._missing = [f"NEW{number:04d}" for number in range(1, missing + 1)]
        self._later = [f"LATER{number:04d}" for number in range(1, LATER + 1)]
        self._market = Market(fleet.folder / "market.db")
        self._stack = ExitStack()
        self._app: Rowlock
        self._client: Client

    def run(self) -> Tally:
        with self._stack:
            self._prepare()
            ordered = _inputs([*self._loaded, *self._missing])
            first = self._client.submit(ordered, exporter="index_levels", policy="continue").job_id
            self._tell(f"submitted {first}: {len(ordered):,} inputs, policy continue")
            before = self._taken_over()
            dead = self._play(first)
            redriven = self._redrive(first)
            more = ordered + _inputs(self._later)
            second = self._again(more)
            return self._count({first: ordered, second: more}, before, dead, redriven)

    # -- scenes ------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self._market.create()
        self._market.load([*self._loaded, *self._later])
        self._market.begin_corrections(self._loaded[::10][:CORRECTED])
        self._fleet.start_storage()
        settings = self._fleet.settings
        self._tell(f"an S3 server of our own at {settings.storage_endpoint}")
        with Ledger.open(settings) as ledger:
            ledger.schema.migrate()
        self._app = self._stack.enter_context(Rowlock(settings=settings))
        tokens, name = Tokens(self._app.ledger), f"demo-{uuid4().hex[:8]}"
        secret = tokens.create(name, "operate").secret
        self._stack.callback(tokens.revoke, name)
        self._fleet.start_workers(WORKERS)
        url = self._fleet.start_api()
        self._client = self._stack.enter_context(Client(url, secret))
        self._fleet.wait(lambda: len(self._held()) == WORKERS, "three workers at work")
        pids = ", ".join(str(worker.pid) for worker in self._fleet.workers)
        self._tell(f"the API at {url} ({self._client.ready().status}), and {WORKERS} workers (pids {pids})")

    def _play(self, key: str) -> int:
        """Watches the first job to its end: kills a worker in the middle, and lets the corrections end."""
        killed = corrected = False

        def look(job: JobView) -> None:
            nonlocal killed, corrected
            if not killed and job.done >= job.total // 4:
                killed = self._kill_the_busiest(job)
            if killed and not corrected and job.retry_wait:
                self._market.end_corrections()
                corrected = True
                self._tell(
                    f"{job.retry_wait} inputs wait to be tried again; the corrections they met are over now"
                )

        job = self._watch(key, look)
        self._tell(f"{key} is {job.status}: {job.done:,} done, {job.failed} dead")
        for one in self._client.inputs(key, status="DLQ"):
            self._tell(f"  dead: {one.error}")
        return job.failed

    def _kill_the_busiest(self, job: JobView) -> bool:
        held = self._held()
        worker = max(self._fleet.workers, key=lambda one: held.get(one.pid, 0))
        if not held.get(worker.pid) and job.running:
            return False  # it has just handed in what it had; a moment later it has more
        self._fleet.kill(worker)
        left = self._held().get(worker.pid, 0)
        self._tell(
            f"SIGKILL: worker {worker.pid} is gone with {left} inputs in its hands; they are somebody else's within "
            f"{LEASE_SECONDS:g} s"
        )
        return True

    def _redrive(self, key: str) -> int:
        self._market.load(self._missing)
        redriven = self._client.redrive(key).redriven
        self._tell(f"loaded the missing levels and drove {redriven} dead inputs again")
        self._follow(key)
        return redriven

    def _again(self, ordered: list[dict[str, Any]]) -> str:
        key = self._client.submit(ordered, exporter="index_levels").job_id
        self._tell(f"submitted {key}: the same inputs and {len(self._later)} new ones")
        self._follow(key)
        return key

    def _follow(self, key: str) -> None:
        job = self._watch(key)
        self._tell(
            f"{key} is {job.status}: {job.files_generated:,} files made, {job.files_reused:,} used again"
        )

    def _watch(self, key: str, look: Callable[[JobView], None] = lambda _job: None) -> JobView:
        """Shows the job until it has ended; a process that dies unasked ends the demo."""

        def ended() -> bool:
            job = self._client.job(key)
            self._show(job)
            look(job)
            return job.status not in ("SUBMITTED", "RUNNING")

        self._fleet.wait(ended, f"the end of {key}")
        return self._client.job(key)

    # -- counting ----------------------------------------------------------------------------------------------

    def _count(self, jobs: dict[str, list[dict[str, Any]]], before: int, dead: int, redriven: int) -> Tally:
        facts = Facts(self._client, self._app.store)
        found = []
        for key, ordered in jobs.items():
            self._fleet.wait(lambda key=key: facts.manifests(key) > 0, f"the manifest of {key}")
            found += facts.differences(key, ordered)
        first, second = (self._client.job(key) for key in jobs)
        found += [f"{job.job_id} is {job.status}" for job in (first, second) if job.status != "COMPLETED"]
        if (dead, redriven, second.files_reused) != (len(self._missing), len(self._missing), first.total):
            found.append("other inputs died, were driven again or were reused than should have been")
        found += self._downloaded(second.job_id)
        taken_over = self._taken_over() - before
        retried = sum(one.attempts > 1 for one in self._client.inputs(first.job_id))
        self._fleet.stop()
        for difference in found:
            self._tell(f"DIFFERENCE: {difference}")
        return Tally(
            files=facts.files,
            bytes=facts.bytes,
            dead=dead,
            redriven=redriven,
            retried=retried,
            taken_over=taken_over,
            reused=second.files_reused,
            generated=second.files_generated,
            differences=len(found),
        )

    def _downloaded(self, key: str) -> list[str]:
        """One file as a user would have it: by its signed address, checked on arrival."""
        one = next(self._client.inputs(key, page_size=1))
        file = self._client.download(key, one.input_id, to=self._fleet.folder)
        self._tell(f"downloaded {file.name} by a signed address: {one.bytes:,} bytes, sha256 {one.sha256}")
        return [] if file.stat().st_size == one.bytes else [f"{file.name} was not downloaded whole"]

    def _held(self) -> dict[int, int]:
        """Our workers that are in the registry, by pid, and how many inputs each holds."""
        ours = {worker.pid for worker in self._fleet.workers}
        rows = self._app.ledger.run("instances", everyone=False, limit=1000)
        return {row.pid: row.holds for row in rows if row.pid in ours and row.state != "stopped"}

    def _taken_over(self) -> int:
        return int(self._app.ledger.run("totals")[0].takeovers)


def _inputs(index_keys: list[str]) -> list[dict[str, Any]]:
    return [{"indexKey": key, "effectiveDate": DAY, "asofindicator": "CLS"} for key in index_keys]


# -- on the screen ---------------------------------------------------------------------------------------------


def play(console: Console, fleet: Fleet, inputs: int) -> Tally:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("starting", total=None)

        def show(job: JobView) -> None:
            counts = {
                "running": job.running,
                "retrying": job.retry_wait,
                "dead": job.failed,
                "reused": job.files_reused,
            }
            told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
            settled = job.done + job.failed
            bars.update(bar, total=job.total, completed=settled, description=f"{job.job_id} {told}")

        return Demo(
            fleet, inputs, lambda text: bars.console.print(f"• {text}", markup=False, soft_wrap=True), show
        ).run()


def summary(tally: Tally, seconds: float) -> Table:
    table = Table(title=f"What there is after {seconds:.0f} s", title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("meaning", style="dim")
    for name, count in asdict(tally).items():
        style = "" if name != "differences" else "bold red" if count else "bold green"
        table.add_row(
            name.replace("_", " "), f"[{style}]{count:,}[/]" if style else f"{count:,}", _MEANINGS[name]
        )
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--inputs", type=int, default=500, metavar="N", help="inputs of the first job (20 to 10,000)"
    )
    parser.add_argument(
        "--ledger", metavar="URL", help="another ledger than a SQLite file: one for demos, not a real one"
    )
    parser.add_argument("--json", action="store_true", help="the last line is a JSON object")
    given = parser.parse_args()
    if not 20 <= given.inputs <= 10_000:
        parser.error("--inputs: 20 to 10,000")
    # SIGTERM too ends what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console(highlight=False)
    began = time.monotonic()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="rowlock-demo-jobs-") as folder,
            Fleet(Path(folder), given.ledger) as fleet,
        ):
            tally = play(console, fleet, given.inputs)
    except KeyboardInterrupt:
        console.print("Stopped; nothing was left running.")
        return 130
    except (DemoFailed, RowlockError) as error:
        console.print(f"The demo could not be carried through: {error}", markup=False)
        return 1
    console.print(summary(tally, time.monotonic() - began))
    good = tally.differences == 0
    console.print(
        "[bold green]Every input has exactly one file, and every file is what the ledger says.[/]"
        if good
        else "[bold red]There are differences: please report them.[/]"
    )
    if given.json:
        print(json.dumps(asdict(tally)))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
