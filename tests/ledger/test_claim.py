"""Claiming: one holder, never more than asked for, in the right order."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from rowlock.ledger.ledger import Ledger
from rowlock.ledger.rows import Wish
from rowlock.ledger.statements import load_statements
from tests.support.ledgers import FROM_START, add_flow, beat, claim, find, put, register, sql


@pytest.fixture(autouse=True)
def _flow(ledger):
    add_flow(ledger)


def test_a_claim_gives_the_record_a_holder_a_token_and_an_attempt(ledger):
    [record_id] = put(ledger, "a")
    me = register(ledger)
    [held] = claim(ledger, me)
    assert (held.id, held.token, held.key, held.attempt, held.payload) == (
        record_id,
        1,
        "a",
        1,
        '{"key":"a"}',
    )
    row = find(ledger, record_id)
    assert (row.status, row.holder, row.token) == ("processing", me, 1)


def test_a_claimed_record_is_not_claimed_again(ledger):
    put(ledger, "a")
    assert len(claim(ledger, register(ledger))) == 1
    assert claim(ledger, register(ledger)) == []


def test_many_claimers_share_without_overlap(ledger):
    put(ledger, *(f"k{n}" for n in range(400)))
    instances = [register(ledger) for _ in range(4)]

    def drain(instance):
        mine = []
        while got := claim(ledger, instance, limit=7):
            mine += [held.id for held in got]
        return mine

    with ThreadPoolExecutor(4) as pool:
        shares = list(pool.map(drain, instances))
    everything = [id_ for share in shares for id_ in share]
    assert len(everything) == len(set(everything)) == 400


def test_never_more_than_the_limit_even_with_stale_statistics(ledger):
    """The seed's IN (… LIMIT … SKIP LOCKED) claimed 51 for 10 when the planner believed the table held one row."""
    put(ledger, "first")
    if ledger.dialect == "postgresql":
        sql(ledger, "ALTER TABLE {s}processing_queue SET (autovacuum_enabled = off)")
        sql(ledger, "ANALYZE {s}processing_queue")
    put(ledger, *(f"k{n}" for n in range(500)))
    me = register(ledger)
    for limit in (1, 10, 100):
        assert len(claim(ledger, me, limit=limit)) == limit


def test_high_priority_first_then_oldest(ledger):
    put(ledger, "old", "older?")
    put(ledger, "urgent", priority=9)
    put(ledger, "soon", priority=5)
    put(ledger, "late")
    me = register(ledger)
    order = [held.key for _ in range(5) for held in claim(ledger, me, limit=1)]
    assert order == ["urgent", "soon", "old", "older?", "late"]


def test_a_position_skips_what_lies_before_it(ledger):
    if ledger.dialect == "sqlite":
        pytest.skip("SQLite claims under one lock, from the start")
    ids = put(ledger, "a", "b", "c")
    _, held = ledger.exchange(register(ledger), [], [Wish("f", 10, 0, ids[0])])
    assert sorted(row.key for row in held) == ["b", "c"]


def test_the_future_waits(ledger, ledger_clock):
    put(ledger, "later", run_at=datetime.now(UTC) + timedelta(hours=1))
    me = register(ledger, lease=1e5)
    assert ledger.promote(10) == 0
    assert claim(ledger, me) == []
    ledger_clock.advance(3601)
    assert ledger.promote(10) == 1
    assert [held.key for held in claim(ledger, me)] == ["later"]


def test_a_paused_flow_is_not_claimed(ledger):
    put(ledger, "a")
    me = register(ledger)
    assert ledger.set_flow_state("f", "paused", "deploy")
    assert claim(ledger, me) == []
    ledger.set_flow_state("f", "active", None)
    assert len(claim(ledger, me)) == 1


def test_a_draining_flow_is_claimed_to_its_end(ledger):
    put(ledger, "a")
    ledger.set_flow_state("f", "draining", "closing")
    assert len(claim(ledger, register(ledger))) == 1


def test_flows_are_claimed_side_by_side(ledger):
    add_flow(ledger, "g")
    put(ledger, *(f"k{n}" for n in range(50)))
    put(ledger, "x", "y", flow="g")
    _, held = ledger.exchange(register(ledger), [], [Wish("f", 5, *FROM_START), Wish("g", 5, *FROM_START)])
    assert sorted(row.flow for row in held) == ["f"] * 5 + ["g"] * 2


def test_an_instance_whose_lease_ran_out_claims_nothing(ledger, ledger_clock):
    put(ledger, "a")
    me = register(ledger, lease=30)
    ledger_clock.advance(31)
    assert claim(ledger, me) == []


def test_a_dead_instance_cannot_beat_again(ledger, ledger_clock):
    me = register(ledger, lease=30)
    assert beat(ledger, me)
    ledger_clock.advance(31)
    ledger.run("bury_instances")
    assert not beat(ledger, me)


@pytest.mark.parametrize("name", ["exchange", "claim"])
def test_the_lock_clause_is_there(name):
    """SQLAlchemy drops it silently for some dialects, so the SQL is ours, and this holds it."""
    claim_sql = load_statements("postgresql", "rowlock")[name]
    assert "FOR UPDATE SKIP LOCKED" in claim_sql
    assert "AS MATERIALIZED" in claim_sql
    assert "= ANY(ARRAY(SELECT id FROM wanted))" in claim_sql


def test_both_statements_claim_in_the_same_words():
    """claim.sql is the second half of exchange.sql, for workers that have nothing to settle."""
    statements = load_statements("postgresql", "rowlock")
    part = statements["claim"][
        statements["claim"].index("wanted AS") : statements["claim"].rindex("SELECT id, token")
    ]
    assert part in statements["exchange"]


CLAIM = {"flows": ["f"], "limits": [100], "ranks": [-32768], "afters": [0], "holder": 1}
SETTLE = {"ids": [1], "tokens": [1], "results": ["null"]}


@pytest.mark.parametrize("name", ["exchange", "claim"])
def test_the_claim_reads_the_index_even_if_its_plan_was_made_for_an_empty_table(settings_for, name):
    """The pump's plan is made once. It must be right at 0 rows, at 50,000 that nobody analysed, and in between."""
    with Ledger.open(settings_for(), control=True) as control:
        if control.dialect != "postgresql":
            pytest.skip("a plan of PostgreSQL's")
        control.schema.migrate()
        sql(control, "ALTER TABLE {s}processing_queue SET (autovacuum_enabled = off)")
        add_flow(control)
        params = (SETTLE if name == "exchange" else {}) | CLAIM
        with control.engine.connect() as connection:
            driver = connection.connection.driver_connection
            driver.execute(f"PREPARE pump AS {numbered(control.statements[name], list(params))}")
            values = ", ".join(literal(value) for value in params.values())
            driver.execute(f"EXECUTE pump({values})")
            driver.commit()
            put(control, *(f"k{n}" for n in range(50_000)))
            plan = "\n".join(row[0] for row in driver.execute(f"EXPLAIN (VERBOSE) EXECUTE pump({values})"))
            driver.rollback()
    assert "$4" in plan, "a plan made once, for any values"
    assert "processing_queue_ready" in plan
    assert "Seq Scan on processing_queue" not in plan
    assert "Sort" not in plan


def numbered(statement, names):
    """%(name)s → $n, as PREPARE wants it."""
    for number, name in enumerate(names, 1):
        statement = re.sub(rf"%\({name}\)[sb]", f"${number}", statement)
    return statement


def literal(value):
    if isinstance(value, list):
        return f"ARRAY[{', '.join(literal(one) for one in value)}]"
    return f"'{value}'" if isinstance(value, str) else str(value)
