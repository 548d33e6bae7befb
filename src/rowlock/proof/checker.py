"""The checker: looks at recorded facts only, and says what must not have been. One SQL file for each kind of violation."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowlock.proof.facts import Facts

_CHECKS = resources.files("rowlock.proof") / "checks"
_EXAMPLES = 5
# When did a struck record move on? Its attempt ended (taken over, failed), it was settled under the very token it was
# struck with, or its next holder claimed it.
_RECOVERIES = """
SELECT f.kind, min(t) - f.at AS seconds
FROM (SELECT s.fault, s.record_id, a.ended_at AS t
      FROM struck AS s JOIN attempts AS a ON a.record_id = s.record_id AND a.token = s.token
      UNION ALL
      SELECT s.fault, s.record_id, r.settled_at
      FROM struck AS s JOIN records AS r ON r.id = s.record_id AND r.token = s.token
      UNION ALL
      SELECT s.fault, s.record_id, r.claimed_at
      FROM struck AS s JOIN records AS r ON r.id = s.record_id AND r.token = s.token + 2)
JOIN faults AS f ON f.number = fault
WHERE t IS NOT NULL
GROUP BY fault, record_id
HAVING seconds >= 0
ORDER BY f.kind, seconds
"""


def violations() -> list[str]:
    """The names of everything that is looked for."""
    return sorted(file.name.removesuffix(".sql") for file in _CHECKS.iterdir() if file.name.endswith(".sql"))


@dataclass(frozen=True)
class Recovery:
    """How long struck records waited until they could be worked on again, in seconds."""

    records: int
    p50: float
    p99: float
    longest: float


@dataclass
class Findings:
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    recoveries: dict[str, Recovery] = field(default_factory=dict)
    takeovers: int = 0
    takeovers_at: dict[int, int] = field(default_factory=dict)  # second of the ledger's clock → records

    @property
    def good(self) -> bool:
        return not any(self.counts.values())


def check(facts: Facts) -> Findings:
    """Every violation: how many, and a few examples of each."""
    found = Findings()
    for name in violations():
        query = (_CHECKS / f"{name}.sql").read_text(encoding="utf-8")
        rows = facts.connection.execute(query).fetchall()
        found.counts[name] = len(rows)
        if rows:
            found.examples[name] = [f"{thing}: {detail}" for thing, detail in rows[:_EXAMPLES]]
    _measure(facts, found)
    found.takeovers_at = dict(
        facts.connection.execute(
            "SELECT CAST(ended_at AS INTEGER), count(*) FROM attempts WHERE outcome = 'died' GROUP BY 1"
        )
    )
    found.takeovers = sum(found.takeovers_at.values())
    return found


def _measure(facts: Facts, found: Findings) -> None:
    by_kind: dict[str, list[float]] = {}
    for kind, seconds in facts.connection.execute(_RECOVERIES):
        by_kind.setdefault(kind, []).append(seconds)
    found.recoveries = {kind: _recovery(seconds) for kind, seconds in by_kind.items()}


def _recovery(seconds: list[float]) -> Recovery:
    """Of sorted times."""
    last = len(seconds) - 1
    return Recovery(len(seconds), seconds[round(last * 0.5)], seconds[round(last * 0.99)], seconds[last])
