"""The checker sees every violation that it is there for, in histories made up for it, and none in a good one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowlock.proof.checker import check, violations
from rowlock.proof.facts import Facts

T = 1_000_000.0  # the ledger's clock


class History:
    """A good little history; each test breaks it in one place."""

    def __init__(self):
        self.facts = Facts(":memory:")
        self.rows: dict[str, list[tuple]] = {
            "expected": [
                ("fast", "1", "completed", "ledger", None, None),
                ("plain", "2", "completed", None, None, None),
                ("elsewhere", "3", "completed", "second", None, None),
                ("doomed", "4", "completed", "ledger", 3, None),
                ("poison", "5", "dead", None, 9, 3),
            ],
            # id, flow, key, status, token, instance, attempt, deaths, redrives, claimed, settled, result's token, reason
            "records": [
                (1, "fast", "1", "completed", 3, 71, 1, 1, 0, T + 5, T + 6, None, None),
                (2, "plain", "2", "completed", 1, 71, 1, 0, 0, T + 1, T + 2, 1, None),
                (3, "elsewhere", "3", "completed", 3, 72, 2, 0, 0, T + 1, T + 2, 3, None),
                (4, "doomed", "4", "completed", 8, 71, 1, 0, 1, T + 8, T + 9, None, None),
                (5, "poison", "5", "dead", 6, 73, 3, 3, 0, T + 7, T + 9, None, "its workers died 3 times"),
            ],
            "keys": [(flow, key, int(key)) for flow, key in (("fast", "1"), ("plain", "2"), ("elsewhere", "3"))],
            "effects": [
                ("ledger", 1, "fast", "1", 3, 71),
                ("second", 3, "elsewhere", "3", 1, 70),
                ("ledger", 4, "doomed", "4", 8, 71),
            ],
            "attempts": [
                (1, 1, 1, "died", T + 4),
                (3, 1, 1, "failed", T + 1),
                (4, 1, 1, "failed", T + 1),
                (4, 3, 2, "failed", T + 2),
                (4, 5, 3, "failed", T + 3),
                (4, 6, 0, "redriven", T + 4),
                (5, 1, 1, "died", T + 3),
                (5, 3, 2, "died", T + 6),
                (5, 5, 3, "died", T + 9),
            ],
            "fenced": [(1, 1, 801, T + 1), (2, 1, 801, T + 2), (3, 3, 802, T + 5)],
            "lock_holdings": [(1, 71, T, T + 3, "released"), (3, 72, T + 4, T + 6, "expired")],
            "faults": [(0, "kill", "worker", T + 2, None)],
            "struck": [(0, 1, 1, 1)],
        }  # fmt: skip

    def find(self):
        for table, rows in self.rows.items():
            self.facts.add(table, rows)
        self.facts.index()
        return check(self.facts)

    def replace(self, table, number, **columns):
        names = [row[1] for row in self.facts.connection.execute(f"PRAGMA table_info({table})")]
        row = list(self.rows[table][number])
        for name, value in columns.items():
            row[names.index(name)] = value
        self.rows[table][number] = tuple(row)


@pytest.fixture
def history():
    made = History()
    yield made
    made.facts.close()


def broken(found) -> set[str]:
    return {name for name, count in found.counts.items() if count}


def test_a_good_history_is_good(history):
    found = history.find()
    assert found.good
    assert found.counts == dict.fromkeys(violations(), 0)
    assert found.takeovers == 4


def test_the_time_to_recover_is_from_the_fault_until_the_record_could_be_worked_on_again(history):
    history.rows["faults"].append((1, "stop", "long", T + 1.5, 4.0))
    history.rows["struck"] += [(1, 3, 1, 0), (1, 2, 1, 0)]
    found = history.find()
    assert found.recoveries["kill"].p50 == 2.0  # taken over at T + 4
    assert found.recoveries["stop"].records == 1  # the other one had moved on before it was struck
    assert found.recoveries["stop"].longest == 0.5


def test_a_record_that_is_nowhere_is_lost(history):
    del history.rows["records"][1]
    found = history.find()
    assert broken(found) == {"lost"}
    assert found.examples["lost"] == ["plain/2: it is nowhere in the ledger"]


def test_a_record_that_is_still_live_is_lost(history):
    history.replace("records", 1, status="processing", settled_at=None, result_token=None)
    assert broken(history.find()) == {"lost"}


@pytest.mark.parametrize("number", [0, 1], ids=["in the ledger", "in the second database"])
def test_a_completed_record_without_its_effect_is_lost(history, number):
    del history.rows["effects"][number]
    assert broken(history.find()) == {"lost"}


@pytest.mark.parametrize("number", [0, 1], ids=["in the ledger", "in the second database"])
def test_an_effect_that_happened_twice_is_duplicated(history, number):
    history.rows["effects"].append(history.rows["effects"][number])
    found = history.find()
    assert broken(found) == {"duplicated"}
    assert found.counts["duplicated"] == 1


def test_a_key_that_was_accepted_twice_is_duplicated(history):
    history.rows["records"].append((9, "plain", "2", "completed", 1, 71, 1, 0, 0, T, T + 1, 1, None))
    assert broken(history.find()) == {"duplicated"}


def test_an_effect_of_a_record_that_never_was_is_a_phantom(history):
    history.rows["effects"].append(("ledger", 99, "fast", "99", 1, 71))
    assert broken(history.find()) == {"phantom"}


def test_an_effect_of_a_record_that_is_dead_is_a_phantom(history):
    history.rows["effects"].append(("ledger", 5, "poison", "5", 3, 73))
    found = history.find()
    assert broken(found) == {"phantom"}
    assert "dead" in found.examples["phantom"][0]


def test_an_effect_in_a_place_where_the_flow_has_none_is_a_phantom(history):
    history.rows["effects"].append(("second", 2, "plain", "2", 1, 71))
    assert broken(history.find()) == {"phantom"}


def test_a_record_that_nobody_enqueued_is_a_phantom(history):
    history.rows["records"].append((9, "plain", "77", "completed", 1, 71, 1, 0, 0, T, T + 1, 1, None))
    assert broken(history.find()) == {"phantom"}


@pytest.mark.parametrize("columns", [{"token": 1}, {"instance": 70}])
def test_an_effect_under_another_token_or_instance_than_the_completion_was_settled_by_a_stale_one(
    history, columns
):
    history.replace("effects", 0, **columns)
    assert broken(history.find()) == {"stale_settled"}


def test_a_result_made_under_another_token_was_settled_by_a_stale_one(history):
    history.replace("records", 1, token=3)
    assert broken(history.find()) == {"stale_settled"}


def test_an_effect_elsewhere_may_be_older_than_the_completion(history):
    assert history.rows["effects"][1][4] != history.rows["records"][2][4]
    assert history.find().good


@pytest.mark.parametrize(
    ("table", "number", "columns"),
    [
        ("attempts", 3, {"token": 0}),
        ("attempts", 0, {"token": 4}),
        ("attempts", 0, {"token": 3}),
        ("fenced", 2, {"token": 0}),
    ],
    ids=["of one record", "beyond the end", "used twice", "in the fenced log"],
)
def test_tokens_that_do_not_rise(history, table, number, columns):
    history.replace(table, number, **columns)
    assert broken(history.find()) == {"tokens_not_rising"}


def test_a_lock_taken_under_an_older_token(history):
    history.replace("lock_holdings", 1, token=0)
    assert "tokens_not_rising" in broken(history.find())


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("lock_holdings", {"acquired_at": T + 2.9}),
        ("fenced", {"at": T + 7}),
        ("fenced", {"token": 1, "pid": 802, "at": T + 2.5}),
    ],
    ids=["taken too early", "written too late", "two writers under one token"],
)
def test_overlapping_holdings(history, table, columns):
    history.replace(table, -1, **columns)
    assert broken(history.find()) == {"overlapping"}


def test_more_failures_than_attempts_are_allowed(history):
    history.rows["attempts"].insert(4, (4, 4, 4, "failed", T + 2.5))
    assert broken(history.find()) == {"attempts_over"}


def test_an_attempt_beyond_the_last(history):
    history.replace("records", 3, attempt=4)
    assert broken(history.find()) == {"attempts_over"}


def test_attempts_begin_anew_after_a_re_drive(history):
    history.rows["attempts"] += [(4, 7, 1, "failed", T + 8)]
    assert history.find().good


def test_more_deaths_than_are_allowed(history):
    history.replace("records", 4, deaths=4)
    assert broken(history.find()) == {"attempts_over"}


def test_poison_that_is_not_dead(history):
    history.replace("records", 4, status="completed")
    assert broken(history.find()) == {"poison_alive"}


def test_a_record_that_was_given_up_and_should_not_have_been(history):
    history.replace("records", 1, status="dead", reason="its workers died 3 times", result_token=None)
    found = history.find()
    assert broken(found) == {"wrongly_dead"}
    assert found.examples["wrongly_dead"] == ["plain/2: it is dead: its workers died 3 times"]


def test_every_violation_has_a_history_here_that_shows_it():
    source = Path(__file__).read_text(encoding="utf-8")
    for name in violations():
        assert f'{{"{name}"}}' in source, name
