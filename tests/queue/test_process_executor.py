"""CPU-bound handlers in child processes, which can really be stopped."""

from __future__ import annotations

import json
import os

import pytest

from rowlock import ConfigurationError
from rowlock.queue.process_executor import find_flow
from tests.queue import process_flows
from tests.queue.test_worker import drain
from tests.support.ledgers import find, sql


@pytest.fixture
def children(make_app):
    app = make_app()
    app.flows.update(process_flows.app.flows)
    return app


def test_handlers_run_in_other_processes(children):
    ids = children.enqueue("pids", [{"n": n} for n in range(10)]).ids
    assert drain(children).completed == 10
    found = [json.loads(find(children.ledger, id_).result) for id_ in ids]
    assert [result["n"] for result in found] == list(range(10))
    assert os.getpid() not in {result["pid"] for result in found}


def test_whatever_happens_in_a_child_is_told(children):
    if children.ledger.dialect == "postgresql":
        sql(children.ledger, "CREATE TABLE IF NOT EXISTS public.effects (record_id bigint)")
    else:
        sql(children.ledger, "CREATE TABLE effects (record_id bigint)")
    words = ["raise", "reject", "die", "hang", "effect", "fine", "batch"]
    ids = dict(zip(words, children.enqueue("rough", words).ids, strict=True))
    drain(children)
    reasons = {word: find(children.ledger, id_).reason for word, id_ in ids.items()}
    assert reasons["raise"] == "failed 2 times; at last ValueError: in the child"
    assert reasons["reject"] == "Reject: never"
    assert reasons["die"] == "its workers died 2 times"
    assert "more than 2 s" in reasons["hang"]
    assert {word: find(children.ledger, ids[word]).status for word in ("effect", "fine", "batch")} == {
        "effect": "completed", "fine": "completed", "batch": "completed",
    }  # fmt: skip
    found = sql(children.ledger, "SELECT record_id FROM effects WHERE record_id = " + str(ids["effect"]))
    assert len(found) >= 1
    died = children.ledger.run("attempts", id=ids["die"])
    assert [(row.outcome, row.message) for row in died] == [
        ("died", "the handler's process died (signal 9)")
    ] * 2
    assert "ValueError" in children.ledger.run("attempts", id=ids["raise"])[0].traceback


def test_a_handler_that_no_other_process_can_find_is_named():
    with pytest.raises(ConfigurationError, match="top level of a module"):
        find_flow("tests.queue.process_flows:nothing")
