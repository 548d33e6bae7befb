"""The documentation is true: its code runs, its links lead somewhere, its names exist, its reference is up to date."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from string import Template
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import rowlock
import rowlock.client
from rowlock.cli.main import app as command_line
from rowlock.settings import Settings
from tests.docs.pages import ROOT, blocks_of, run, wants_postgresql

DOCS = ROOT / "docs"
PAGES = sorted(path for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.md")) + sorted(
    ROOT.glob("*.md")
)
# Decisions are dated letters to the future, not instructions; the reference is made from the code.
OURS = [page for page in PAGES if not {"decisions", "reference"} & set(page.parts)]
RUNBOOKS = sorted((DOCS / "runbooks").glob("*.md"))
RUNNABLE = [
    page
    for page in OURS
    if page.is_relative_to(DOCS) and page not in RUNBOOKS and any(block.runs for block in blocks_of(page))
]
# Not settings of a program: what names the file of settings, a client's token, and how long our own tests search.
OTHER_VARIABLES = {"ROWLOCK_CONFIG", "ROWLOCK_TOKEN", "ROWLOCK_PROTOCOL_EXAMPLES"}
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")


def name(page) -> str:
    return str(page.relative_to(ROOT))


def postgres_environment(server, page) -> dict[str, str]:
    """A database of its own on the server, for one page."""
    database = f"{page.stem.replace('-', '_')}_{uuid4().hex[:8]}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{database}"')
    url = urlsplit(server.url)._replace(path=f"/{database}").geturl()
    return {
        "ROWLOCK_LEDGER_URL": url,
        "ADMIN_URL": url,
        "PGHOST": "127.0.0.1",
        "PGPORT": str(server.port),
        "PGDATABASE": database,
    }


@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_the_code_of_a_page_runs(page, tmp_path, request):
    environment = {}
    if wants_postgresql(page):
        environment = postgres_environment(request.getfixturevalue("postgres"), page)
    run(page, tmp_path, environment)


@pytest.fixture
def troubled(tmp_path, monkeypatch):
    """A ledger with a dead letter, a record that waits, a failed job and a lock that is held, and what runbooks call them."""
    monkeypatch.setenv("ROWLOCK_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    with rowlock.Rowlock() as app:
        app.flow("score", max_attempts=1)(lambda record: None)
        app.enqueue("score", [{"id": "dead"}, {"id": "waits"}], key=lambda payload: payload["id"])
        with app.processor() as processor:
            [record] = processor.claim_records_batch("score", 1)
            processor.mark_record_failed(record, ValueError("no answers"))
        [group] = app.dead_letters.groups()
        app.exporter("levels", max_attempts=1)(lambda fields: [])
        job, _ = app.jobs.submit([{"indexKey": "ABC", "effectiveDate": 20240202, "asofindicator": "CLS"}])
        with app.processor() as processor:
            [one] = processor.claim_records_batch("export.levels", 1)
            processor.mark_record_failed(one, LookupError("no levels"))
        assert app.try_lock("edgar_monitor", note="polls")
        yield {
            "FLOW": "score",
            "KEY": "waits",
            "RECORD": str(record.id),
            "JOB": job.key,
            "FINGERPRINT": group["fingerprint"],
            "LOCK": "edgar_monitor",
        }


@pytest.mark.parametrize("page", RUNBOOKS, ids=name)
def test_the_commands_of_a_runbook_work(page, troubled):
    lines = [
        line for block in blocks_of(page) if block.language == "bash" for line in block.text.splitlines()
    ]
    assert lines
    for line in lines:
        words = shlex.split(Template(line).substitute(troubled))
        assert words[0] == "rowlock"
        if "--watch" in words:  # it would not end by itself
            continue
        result = CliRunner().invoke(command_line, words[1:], prog_name="rowlock")
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("page", OURS, ids=name)
def test_python_blocks_compile_and_import_what_is_there(page):
    for block in blocks_of(page):
        if block.language == "python":
            tree = ast.parse(block.text, filename=str(page))
            imported = [
                alias.name
                for node in ast.walk(tree)
                if isinstance(node, ast.ImportFrom) and node.module == "rowlock"
                for alias in node.names
            ]
            assert set(imported) <= set(rowlock.__all__)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{name(page)}: {target}"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{name(page)}: {target}"


def anchors(page) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", OURS, ids=name)
def test_commands_and_their_options_exist(page):
    text = page.read_text(encoding="utf-8")
    lines = re.findall(r"`(rowlock [^`]+)`", text)
    for block in blocks_of(page):
        if block.language == "bash":
            lines += re.findall(r"\browlock [a-z].*", block.text)
    for line in lines:
        check_command(line, name(page))


def check_command(line: str, where: str) -> None:
    command, words = get_command(command_line), line.split()[1:]
    if words[0].startswith("-"):
        return
    while hasattr(command, "commands"):
        assert words[0] in command.commands, f"{where}: {line}"
        command = command.commands[words.pop(0)]
        if not words:
            return
    options = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    for word in words:
        if word in ("&", "&&", "|", "#", ">"):
            return
        if re.fullmatch(r"--?[a-z][a-z-]*", word):
            assert word in options, f"{where}: {line}: {word}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_settings_that_are_named_exist(page):
    named = set(re.findall(r"\bROWLOCK_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8")))
    assert named <= {f"ROWLOCK_{field.upper()}" for field in Settings.model_fields} | OTHER_VARIABLES


@pytest.mark.parametrize("page", OURS, ids=name)
def test_tests_that_are_named_exist(page):
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for path, test in re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", page.read_text(encoding="utf-8")):
        source = (ROOT / path).read_text(encoding="utf-8") if path else sources
        assert f"def {test}(" in source, f"{name(page)}: {path} {test}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_names_a_machine_or_a_registry(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"/(?:home|root|work|tmp|Users|opt)/", text)
    assert not re.search(r"(?i)--(index|extra-index|find-links)|\.(whl|deb|tgz)\b", text)


def test_every_skip_has_a_reason():
    for page in OURS:
        for block in blocks_of(page):
            assert block.skip is None or len(block.skip) > 8, f"{name(page)}: {block.text}"


def test_every_page_is_on_the_map():
    linked = {
        (DOCS / target.partition("#")[0]).resolve()
        for target in LINK.findall((DOCS / "index.md").read_text())
    }
    pages = {page for page in PAGES if page.is_relative_to(DOCS) and "decisions" not in page.parts}
    assert pages - linked == {DOCS / "index.md"}


# -- the reference -------------------------------------------------------------------------------------------


def test_the_reference_is_up_to_date():
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_is_in_the_reference():
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    for command in walk(get_command(command_line), "rowlock"):
        assert re.search(rf"^#+ {command}$", text, re.MULTILINE), command


def walk(command, path):
    for key, found in command.commands.items():
        yield f"{path} {key}"
        if hasattr(found, "commands"):
            yield from walk(found, f"{path} {key}")


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    for public in rowlock.__all__:
        assert f"\n## {public}\n" in text
    text = (DOCS / "reference" / "client.md").read_text(encoding="utf-8")
    for public in rowlock.client.__all__:
        assert f"\n## {public}\n" in text
