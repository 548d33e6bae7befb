"""Queries: a colon is a parameter only where SQL would read it as one."""

from __future__ import annotations

import pytest

from rowlock import ConfigurationError
from rowlock.jobs.query import SqlQuery


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT 1", ()),
        ("SELECT :a, :b, :a", ("a", "b", "a")),
        ("SELECT x::int, ':no', \":no\", 'it''s :no' -- :no\n, :a /* :no\n */", ("a",)),
        ("SELECT E'\\':no', $$ :no $$, $t$ :no $$ :no $t$, :a::text", ("a",)),
        ("SELECT '12:30', a[1:2], :a;", ("a",)),
    ],
)
def test_parameters_are_found_where_they_are(text, names):
    query = SqlQuery("db", text)
    assert query.names == names
    assert query.filled([f":{name}" for name in names]).replace("(:", ":").count(":a") == names.count("a")


def test_sqlalchemy_sees_the_same_parameters():
    clause = SqlQuery("db", "SELECT '12:30', x::int, \":no\", '100%' WHERE y = :a").clause()
    assert set(clause.compile().params) == {"a"}
    assert "'12:30', x::int, \":no\"" in str(clause)


def test_literals_stand_in_brackets():
    assert SqlQuery("db", "SELECT E:a, 'x':b").filled(["'1'", "'2'"]) == "SELECT E('1'), 'x'('2')"


def test_an_empty_query_is_refused():
    with pytest.raises(ConfigurationError):
        SqlQuery("db", " ; ")
