"""The report of a run: a summary for people, an object for programs, a page for whoever was not there."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowlock.proof.checker import Findings
    from rowlock.proof.journal import Journal
    from rowlock.proof.prover import Plan


@dataclass(frozen=True)
class Report:
    plan: Plan
    faults: tuple[str, ...]
    skipped: dict[str, str]
    seconds: float
    findings: Findings
    journal: Journal
    starts: int
    unexpected: list[str]
    redriven: int
    stale_refused: int
    versions: dict[str, str]

    @property
    def good(self) -> bool:
        return self.findings.good

    @property
    def command(self) -> str:
        """What repeats this run. Not its ledger's URL, which may hold a password."""
        plan = self.plan
        words = [
            "rowlock", "prove", "--records", str(plan.records), "--workers", str(plan.workers),
            "--seed", str(plan.seed), "--kills", str(plan.wanted_kills), "--lease", f"{plan.lease:g}",
            "--faults", ",".join(self.faults),
        ]  # fmt: skip
        if plan.seconds:
            words += ["--seconds", f"{plan.seconds:g}"]
        if plan.own_server:
            words.append("--postgres")
        elif plan.ledger_url:
            words += ["--ledger", "URL"]
        return shlex.join(words)

    def as_dict(self) -> dict[str, Any]:
        """The last line of `--json`."""
        found, journal = self.findings, self.journal
        killed = found.recoveries.get("kill")
        return {
            "records": self.plan.records,
            "lost": found.counts["lost"],
            "duplicated": found.counts["duplicated"],
            "phantom": found.counts["phantom"],
            "violations": found.counts,
            "good": self.good,
            "kills": journal.count("kill"),
            "kills_mid_flight": journal.kills_mid_flight,
            "stops": journal.count("stop"),
            "stops_over_lease": journal.count("stop", "long"),
            "terms": journal.count("term"),
            "backends_terminated": journal.count("backend"),
            "database_crashes": journal.count("crash"),
            "commit_losses": journal.count("commit-loss", "COMMIT"),
            "reply_losses": journal.count("commit-loss", "statement"),
            "partitions": journal.count("partition"),
            "pooler_deaths": journal.count("pooler"),
            "clock_jumps": journal.count("clock"),
            "lock_holders_struck": sum(fault.has_lock for fault in journal.faults),
            "takeovers": found.takeovers,
            "stale_refused": self.stale_refused,
            "redriven": self.redriven,
            # Of what killed workers held: from the kill until it could be worked on again.
            "recovery_p50_s": killed and round(killed.p50, 3),
            "recovery_p99_s": killed and round(killed.p99, 3),
            "recovery": {
                kind: {name: round(value, 3) for name, value in asdict(recovery).items()}
                for kind, recovery in found.recoveries.items()
            },
            "process_starts": self.starts,
            "unexpected_ends": len(self.unexpected),
            "seconds": round(self.seconds, 1),
            "records_per_second": round(self.plan.records / self.seconds, 1),
            "faults": list(self.faults),
            "skipped": self.skipped,
            "workers": self.plan.workers,
            "lease_seconds": self.plan.lease,
            "seed": self.plan.seed,
            "versions": self.versions,
            "examples": found.examples,
            "command": self.command,
        }
