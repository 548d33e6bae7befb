"""Every line says who speaks: the instance, the record, the lock; in threads, on event loops and in processes."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import subprocess
import sys

import pytest

from rowlock import LogContext, Rowlock, log

logger = logging.getLogger("my.program")


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch):
    """Other tests may have left instances behind in this process, or run a handler in this very thread."""
    monkeypatch.setattr(log, "_instances", {})
    log.at_work.set(())


@pytest.fixture
def lines():
    """What the program logs, as the formatter of the containers writes it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log.JsonFormatter())
    handler.addFilter(LogContext())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logger.removeHandler(handler)


def work(app: Rowlock) -> int:
    """Works off everything; the instance that did it."""
    worker = app.worker(until_empty=True)
    worker.run()
    return worker.instance.id


def test_a_line_of_a_handler_carries_its_record(app: Rowlock, lines):
    @app.flow("score")
    def score(record) -> None:
        logger.info("scoring %s", record.payload, extra={"survey": 17, "flow": "mine"})

    [first, second] = app.enqueue("score", ["a", "b"]).ids
    instance = work(app)
    found = {line["message"]: line for line in lines()}
    assert (found["scoring a"]["record"], found["scoring b"]["record"]) == (first, second)
    assert found["scoring a"]["instance"] == instance
    assert found["scoring a"]["token"] == 1
    assert found["scoring a"]["survey"] == 17
    assert found["scoring a"]["flow"] == "mine", "what the caller says stays"
    assert "lock" not in found["scoring a"]


def test_on_an_event_loop_handlers_are_not_mixed_up(app: Rowlock, lines):
    met = asyncio.Event()

    @app.flow("score", concurrency=2)
    async def score(record) -> None:
        if record.payload == "first":
            await met.wait()
        met.set()
        await asyncio.gather(*(tell(record.id, n) for n in range(2)))
        await asyncio.to_thread(logger.info, "%s", record.id)

    async def tell(record_id: int, _number: int) -> None:
        await asyncio.sleep(0)
        logger.info("%s", record_id)

    app.enqueue("score", ["first", "second"])
    work(app)
    assert len(lines()) == 6
    assert all(line["message"] == str(line["record"]) for line in lines())


def test_a_batch_names_its_first_records(app: Rowlock, lines):
    @app.flow("score", batch=10)
    def score(records) -> None:
        logger.info("%d", len(records))

    app.enqueue("score", range(5))
    work(app)
    [line] = lines()
    assert line["record"] == "1,2,3,… (5)"
    assert line["flow"] == "score"


def test_a_line_under_a_lock_carries_it(app: Rowlock, lines):
    with app.lock("outer"):
        with app.lock("inner") as inner:
            logger.info("both")
        logger.info("outer")
    logger.info("none")
    with app.try_lock("tried"):
        logger.info("tried")
    asyncio.run(_hold(app))
    both, outer, none, tried, held, let_go = lines()
    assert (both["lock"], both["lock_token"]) == ("inner", inner.token)
    assert both["instance"] == app.locks.instance.id
    assert outer["lock"] == "outer"
    assert "lock" not in none
    assert tried["lock"] == "tried"
    assert held["lock"] == "async"
    assert "lock" not in let_go


async def _hold(app: Rowlock) -> None:
    async with app.lock("async"):
        logger.info("held")
    logger.info("let go")


def test_without_an_instance_a_line_is_as_it_was(app: Rowlock, lines):
    logger.info("alone")
    with app.processor() as processor:
        logger.info("as one")
    try:
        int("what")
    except ValueError:
        logger.exception("gone")
    alone, as_one, gone = lines()
    assert set(alone) == {"time", "level", "logger", "message", "process", "thread"}
    assert as_one["instance"] == processor.instance.id
    assert "instance" not in gone
    assert gone["exception"].endswith("literal for int() with base 10: 'what'")


def test_the_text_has_brackets_only_with_something_in_them():
    handler = logging.Handler()
    handler.setFormatter(log.TextFormatter())
    line = logging.makeLogRecord({"name": "n", "levelname": "INFO", "msg": "hello", "process": 7})
    assert handler.format(line).endswith(" 7 INFO n: hello")
    line.rowlock = "instance=5 record=3"
    assert handler.format(line).endswith(" 7 INFO n [instance=5 record=3]: hello")


PROGRAM = """
import logging
from rowlock import Rowlock
app = Rowlock()
logger = logging.getLogger("mine")

@app.flow("threads")
def threads(record):
    logger.info("here")

@app.flow("loop")
async def loop(record):
    with app.lock("edgar"):
        logger.info("here")

@app.flow("processes", executor="process")
def processes(record):
    logger.info("here")
"""


@pytest.mark.parametrize("shape", ["json", "text"])
def test_a_worker_process_logs_so(tmp_path, shape):
    (tmp_path / "program.py").write_text(PROGRAM)
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Rowlock(url) as app:
        for name in ("threads", "loop", "processes"):
            app.flow(name)(lambda record: None)
            app.enqueue(name, 1)
    done = subprocess.run(
        [sys.executable, "-m", "rowlock.cli", "worker", "program", "--until-empty"],
        cwd=tmp_path, env=os.environ | {"ROWLOCK_LEDGER_URL": url, "ROWLOCK_LOG_FORMAT": shape},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stderr.splitlines()
    if shape == "text":
        mine = [line for line in lines if " mine " in line]
        assert len(mine) == 3
        assert all(" mine [instance=1 flow=" in line for line in mine)
        assert any("[instance=1 flow=processes record=3 token=1]: here" in line for line in mine)
        assert any(" lock=edgar lock_token=1]: here" in line for line in mine)
    else:
        found = [json.loads(line) for line in lines]
        mine = {line["flow"]: line for line in found if line["logger"] == "mine"}
        assert {name: line["record"] for name, line in mine.items()} == {
            "threads": 1,
            "loop": 2,
            "processes": 3,
        }
        assert {line["instance"] for line in mine.values()} == {1}
        assert mine["processes"]["process"] != mine["threads"]["process"]
        assert all("instance" in line for line in found if line["logger"] == "rowlock.worker")


def test_a_format_that_is_none(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "rowlock.cli", "worker", "program"],
        cwd=tmp_path, env=os.environ | {"ROWLOCK_LOG_FORMAT": "xml"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "log_format" in done.stderr
    assert "Traceback" not in done.stderr
