"""The executable model: what it says is in the documentation, in the pictures, and in the ledger's SQL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowlock.ledger.statements import load_statements
from rowlock.proof.model import INSTANCE, LEASE, NOTHING, RECORD, TIME, Machine, rows
from rowlock.queue.inspector import LIVE, SETTLED

EXPLANATION = Path(__file__).parents[2] / "docs" / "explanation"
TABLES = {"record": RECORD, "lease": LEASE, "instance": INSTANCE}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_transition_is_on_the_page(table):
    page = (EXPLANATION / "state-machines.md").read_text(encoding="utf-8")
    for row in rows(table):
        assert f"| {' | '.join(row)} |" in page, "run: make docs"


@pytest.mark.parametrize("name", TABLES)
def test_every_state_and_action_is_in_the_picture_and_no_other(name):
    picture = (EXPLANATION / f"{name}-states.svg").read_text(encoding="utf-8")
    states = {state for arrow in TABLES[name] for state in (*arrow.sources, arrow.target)} - {NOTHING}
    assert set(re.findall(r'class="name"[^>]*>([^<]+)<', picture)) == states
    labels = re.findall(r'class="label"[^>]*>([^<]+)<', picture)
    shown = {action.strip() for text in labels for action in text.split(",")}
    assert shown == {
        arrow.action + (" (+1)" if arrow.token == "+1" else "")  # noqa: S105 - no password
        for arrow in TABLES[name]
    }


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_statement_that_is_named_exists_and_does_to_the_token_what_it_says(table):
    for arrow in table:
        for dialect, names in (("postgresql", arrow.postgresql), ("sqlite", arrow.sqlite)):
            if names == TIME:
                continue
            texts = [load_statements(dialect, "rowlock")[name] for name in names.split(", ")]
            where = f"{arrow.action} on {dialect}"
            if arrow.fenced:
                assert any(re.search(r"token = |tokens\)", text) for text in texts), where
            if arrow.token == "+1":  # noqa: S105
                assert any("token + 1" in text for text in texts), where
            if arrow.token == "same" and not arrow.holds:  # noqa: S105
                # `fail`, `claim` and `exchange` do both: there the ledger is compared with the model.
                assert (
                    not all("token + 1" in text for text in texts) or "fail" in names or "exchange" in names
                )


def test_the_records_states_are_those_of_the_ledger():
    states = {state for arrow in RECORD for state in (*arrow.sources, arrow.target)} - {NOTHING}
    assert states == set(LIVE + SETTLED)


def test_whatever_takes_a_live_record_from_its_holder_raises_the_token():
    """Unless it settles it for good, under the very token that the history then has."""
    for arrow in RECORD:
        if "processing" in arrow.sources and arrow.target != "processing":
            settles = arrow.fenced and arrow.target in SETTLED
            assert settles != (arrow.token == "+1"), arrow.action  # noqa: S105


def test_the_machine_plays_its_table():
    machine = Machine(RECORD)
    assert not machine.do("claim", 1, holder="a")  # it is not there
    assert machine.do("enqueue", 1)
    assert not machine.do("enqueue", 1)
    assert machine.do("claim", 1, holder="a")
    assert machine.held_by("a") == [1]
    assert machine.do("take over", 1)
    assert machine.held_by("a") == []
    assert not machine.do("complete", 1, token=1)  # a zombie
    assert machine.do("claim", 1, holder="b")
    assert not machine.do("complete", 1, token=1)
    assert machine.do("complete", 1, token=3)
    assert machine.within("completed") == [1]
    assert machine.holdings == [(1, 1), (1, 3)]
    with pytest.raises(KeyError, match="fly"):
        machine.do("fly", 1)
