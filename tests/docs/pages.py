"""Pages as programs: every page with code becomes one shell script, and that script is run.

A comment on the line before a code block says what is to be done with it:

    <!-- file: tasks.py -->        the block is written to this file
    <!-- expect: some text -->     its output has this text in it (may stand several times)
    <!-- skip: why -->             it is not run, for this reason

Without a comment, a `bash` block is run, a `python` block is run by Python, a `sql` block is sent to the PostgreSQL
server as its administrator, and every other kind is only text. A page with `<!-- ledger: postgresql -->` in it runs on
a database of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"((?:^<!-- [^\n]*-->\n)*)^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- (file|expect|skip): (.*?) -->")
_STEP = "=====step"
_SECONDS = 120
_SEND_SQL = """
import os, sys, psycopg
with psycopg.connect(os.environ["ADMIN_URL"], autocommit=True) as connection:
    connection.execute(sys.stdin.read())
"""


@dataclass
class Block:
    language: str
    text: str
    file: str | None = None
    skip: str | None = None
    expect: list[str] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        return not self.skip and (self.file is not None or self.language in ("bash", "python", "sql"))

    def script(self) -> str:
        here = f"<<'END_OF_BLOCK'\n{self.text}END_OF_BLOCK"
        if self.file:
            return (
                f"mkdir -p {shlex.quote(str(Path(self.file).parent))}\ncat > {shlex.quote(self.file)} {here}"
            )
        match self.language:
            case "bash":
                return self.text
            case "python":
                return f"python - {here}"
            case _:
                return f"python -c {shlex.quote(_SEND_SQL)} {here}"


def blocks_of(page: Path) -> list[Block]:
    found = []
    for marks, language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        block = Block(language, text)
        for name, value in _MARK.findall(marks):
            if name == "expect":
                block.expect.append(value)
            else:
                setattr(block, name, value)
        found.append(block)
    return found


def wants_postgresql(page: Path) -> bool:
    return "<!-- ledger: postgresql -->" in page.read_text(encoding="utf-8")


def run(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Runs a page from its top to its end in one shell, in an empty folder."""
    steps = [block for block in blocks_of(page) if block.runs]
    script = "set -euo pipefail\n" + "\n".join(
        f"printf '\\n{_STEP} {number}\\n' >&2\n{block.script()}" for number, block in enumerate(steps)
    )
    output, code = _shell(script, folder, environment)
    parts = re.split(rf"^{_STEP} (\d+)\n", output, flags=re.MULTILINE)
    told = {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}
    assert code == 0, (
        f"{page.name}: exit code {code} in:\n{steps[max(told)].text}\n--- it said:\n{told[max(told)]}"
    )
    for number, block in enumerate(steps):
        for wanted in block.expect:
            assert wanted in told[number], (
                f"{page.name}: {wanted!r} is not in what this says:\n{block.text}\n--- it said:\n{told[number]}"
            )


def _shell(script: str, folder: Path, environment: dict[str, str]) -> tuple[str, int]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ROWLOCK_")}
    clean |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder, env=clean | environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        try:
            code = shell.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            _end_group(shell.pid)
            shell.wait()
        output.seek(0)
        return output.read(), code


def _end_group(group: int) -> None:
    """Whatever the page started and did not end; the group is ours, and only ours."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
