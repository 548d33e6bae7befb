"""`rowlock init`: a first project."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rowlock.cli.options import LedgerUrl
from rowlock.cli.output import say
from rowlock.errors import Refused

if TYPE_CHECKING:
    from rowlock.settings import Settings

_EXAMPLE_FLOW = "hello"
_EXAMPLE = f'''"""A first Rowlock program. Start it with: rowlock worker tasks"""

from rowlock import Record, Rowlock

app = Rowlock()


@app.flow("{_EXAMPLE_FLOW}")
def {_EXAMPLE_FLOW}(record: Record) -> str:
    return f"Hello, {{record.payload['name']}}!"
'''
_NEXT_STEPS = f"""
Next:
  rowlock worker tasks                                  (in one terminal)
  rowlock enqueue {_EXAMPLE_FLOW} --payload '{{"name": "world"}}'   (in another)
  rowlock status"""


def init(
    ledger: LedgerUrl = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite rowlock.toml.")] = False,
) -> None:
    """Write rowlock.toml and an example program here, and make the ledger's tables."""
    from rowlock.ledger.ledger import Ledger
    from rowlock.settings import config_file, load_settings

    target = config_file()
    if target.exists() and not force:
        raise Refused(f"{target} is there already. Edit it, or overwrite it: rowlock init --force")
    settings = load_settings(ledger_url=ledger)
    example = Path("tasks.py")
    with Ledger.open(settings) as opened:
        # The ledger first: should it not be reachable, nothing half-made is left behind.
        opened.schema.migrate()
        if not example.exists():
            opened.run_safely("flow_register", flow=_EXAMPLE_FLOW, max_attempts=5, max_deaths=3)
        say(f"ledger    {opened}, version {opened.schema.latest}")
    target.write_text(_config(settings, named=ledger is not None), encoding="utf-8")
    say(f"settings  {target}")
    if example.exists():
        say(f"example   {example} is there already, and stays as it is")
        return
    example.write_text(_EXAMPLE, encoding="utf-8")
    say(f"example   {example}")
    say(_NEXT_STEPS)


def _config(settings: "Settings", *, named: bool) -> str:
    """Every setting with its meaning and its default; only the ledger's URL is set."""
    from rowlock.settings import Settings

    lines = [
        "# Rowlock's settings. ROWLOCK_… environment variables win over this file. Times are in seconds.",
        "",
    ]
    for name, field in Settings.model_fields.items():
        lines.append(f"# {field.description}")
        if name == "ledger_url":
            lines += _ledger_lines(settings.ledger_url, named=named)
        else:
            lines.append(f"# {name} = {json.dumps(field.default, default=str)}")
        lines.append("")
    return "\n".join(lines)


def _ledger_lines(url: str, *, named: bool) -> list[str]:
    from sqlalchemy.engine import make_url

    from rowlock.databases.url import masked

    if masked(url) != make_url(url).render_as_string(hide_password=False):
        # A file like this one ends in version control, and a password must not.
        return [
            "# Its URL holds a secret: set it as ROWLOCK_LEDGER_URL.",
            f"# ledger_url = {json.dumps(masked(url))}",
        ]
    if "ROWLOCK_LEDGER_URL" in os.environ and not named:
        return ["# It is set as ROWLOCK_LEDGER_URL here.", f"# ledger_url = {json.dumps(url)}"]
    return [f"ledger_url = {json.dumps(url)}"]
