"""`rowlock doctor`: is the ledger fit to work on?"""

from dataclasses import asdict

import typer

from rowlock.cli.ledgers import connect, require_file
from rowlock.cli.options import AsJson, LedgerUrl
from rowlock.cli.output import say, say_json

_COLOURS = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "problem": typer.colors.RED}


def doctor(as_json: AsJson = False, ledger: LedgerUrl = None) -> None:
    """Check the ledger, and say what to do about whatever is wrong.

    The exit code is 1 if there is a problem; a warning alone leaves it 0.
    """
    from rowlock.ledger.doctor import examine

    with connect(ledger) as opened:
        require_file(opened)
        findings = examine(opened)
    if as_json:
        say_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            typer.secho(f"{finding.verdict:<8}", fg=_COLOURS[finding.verdict], nl=False)
            say(f" {finding.check}: {finding.text}")
    if any(finding.verdict == "problem" for finding in findings):
        raise typer.Exit(1)
