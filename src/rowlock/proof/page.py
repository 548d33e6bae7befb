"""The report as one page of HTML. It loads nothing from anywhere: it can be mailed, kept, and opened in ten years."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.proof.report import Report

    _Scale = Callable[[float], float]  # a second of the run → its place on the page

_WIDTH, _LEFT, _RIGHT = 1080, 96, 12
_PLOT, _GAP, _LANE = 190, 34, 17
_POINTS = 400  # a longer run is drawn in wider steps

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #667080; --line: #d5dae1; --page: #fff; --good: #1a7f37;
        --bad: #cf222e; --flow: #2563a8; --over: #b06a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #96a0ad; --line: #3a424c; --page: #14171b;
        --good: #4cc26b; --bad: #ff6b6b; --flow: #6cb0f0; --over: #e0a94a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 1080px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
.verdict { font-size: 1.15rem; font-weight: 600; margin: .3rem 0 1rem } .good { color: var(--good) } .bad { color: var(--bad) }
.figures { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 1rem 0 }
.figures div { min-width: 6.5rem } .figures b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums }
.figures span, .dim { color: var(--dim); font-size: .85rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums } td, th { text-align: right; padding: .15rem .9rem .15rem 0 }
td:first-child, th:first-child { text-align: left } th { color: var(--dim); font-weight: 500; border-bottom: 1px solid var(--line) }
pre { background: color-mix(in srgb, var(--ink) 6%, transparent); padding: .7rem; overflow-x: auto; font-size: .85rem }
svg { width: 100%; height: auto; display: block } svg text { font: 11px system-ui, sans-serif; fill: var(--dim) }
"""


def page(report: Report) -> str:
    """The whole document."""
    figures = report.as_dict()
    verdict = (
        '<p class="verdict good">Nothing was lost, nothing was done twice.</p>'
        if report.good
        else '<p class="verdict bad">The promises were broken.</p>'
    )
    versions = ", ".join(f"{escape(name)} {escape(value)}" for name, value in report.versions.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Rowlock: proof</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>
<h1>Rowlock: proof</h1>
{verdict}
<p class="dim">Seed {report.plan.seed}, {report.plan.workers} workers, lease {report.plan.lease:g} s;
{report.seconds:,.0f} s at {figures["records_per_second"]:,.0f} records/s. {versions}.</p>
{_figures(figures)}
<h2>What happened when</h2>
{plot(report)}
<h2>Violations</h2>
{_violations(report)}
<h2>How long what was struck waited, until it could be worked on again (seconds)</h2>
{_recoveries(report)}
{_skipped(report)}
<h2>The same run again</h2>
<pre>{escape(report.command)}</pre>
</body></html>
"""


def _figures(figures: dict[str, object]) -> str:
    shown = {
        "records": "records", "lost": "lost", "duplicated": "effects duplicated", "phantom": "phantom effects",
        "kills_mid_flight": "kills mid-flight", "stops_over_lease": "stops over the lease",
        "database_crashes": "database crashes", "commit_losses": "COMMIT replies lost",
        "backends_terminated": "times sessions ended", "partitions": "partitions", "takeovers": "records taken over",
        "stale_refused": "stale writes refused",
    }  # fmt: skip
    cells = "".join(f"<div><b>{figures[key]:,}</b><span>{what}</span></div>" for key, what in shown.items())
    return f'<div class="figures">{cells}</div>'


def _violations(report: Report) -> str:
    found = report.findings
    rows = "".join(
        f'<tr><td>{escape(name.replace("_", " "))}</td><td class="{"bad" if count else "good"}">{count:,}</td></tr>'
        for name, count in found.counts.items()
    )
    examples = "\n".join(f"{name}: {line}" for name, lines in found.examples.items() for line in lines)
    return f"<table>{rows}</table>" + (f"<pre>{escape(examples)}</pre>" if examples else "")


def _recoveries(report: Report) -> str:
    rows = "".join(
        f"<tr><td>{escape(kind)}</td><td>{r.records:,}</td><td>{r.p50:.2f}</td><td>{r.p99:.2f}</td><td>{r.longest:.2f}</td></tr>"
        for kind, r in report.findings.recoveries.items()
    )
    head = "<tr><th>fault</th><th>records held</th><th>p50</th><th>p99</th><th>longest</th></tr>"
    return f"<table>{head}{rows}</table>"


def _skipped(report: Report) -> str:
    if not report.skipped:
        return ""
    items = "".join(f"<li>{escape(name)}: {escape(why)}</li>" for name, why in report.skipped.items())
    return f"<h2>Not tried here</h2><ul>{items}</ul>"


# -- the plot --------------------------------------------------------------------------------------------------


def plot(report: Report) -> str:
    """Throughput and takeovers over time, and below them a lane of ticks for each kind of fault."""
    seconds = max(1.0, report.seconds)
    kinds = [kind for kind in report.faults if any(fault.kind == kind for fault in report.journal.faults)]
    height = _PLOT + _GAP + len(kinds) * _LANE + 6

    def x(second: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(1.0, max(0.0, second / seconds))

    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="throughput, takeovers and faults over time">'
    ]
    parts += _curves(report, x)
    parts += _axis(seconds, x)
    for number, kind in enumerate(kinds):
        parts += _lane(report, kind, _PLOT + _GAP + number * _LANE, x)
    return "".join(parts) + "</svg>"


def _curves(report: Report, x: _Scale) -> list[str]:
    step = max(1.0, report.seconds / _POINTS)
    settled = _rates([(m.second, m.settled) for m in report.journal.moments], step)
    taken = _takeovers(report, step)
    most = max([rate for _, rate in settled] + [1.0])
    most_taken = max([count for _, count in taken] + [1.0])

    def y(share: float) -> float:
        return _PLOT - (_PLOT - 16) * share

    line = " ".join(f"{x(second):.1f},{y(rate / most):.1f}" for second, rate in settled)
    bars = "".join(
        f'<line x1="{x(s):.1f}" x2="{x(s):.1f}" y1="{_PLOT}" y2="{y(0.5 * count / most_taken):.1f}" '
        'stroke="var(--over)" stroke-width="1.5" opacity=".7"/>'
        for s, count in taken
    )
    return [
        bars,
        f'<polyline points="{line}" fill="none" stroke="var(--flow)" stroke-width="1.5"/>',
        f'<text x="0" y="16" style="fill:var(--flow)">{most:,.0f}/s settled</text>',
        f'<text x="0" y="{y(0.5) + 4:.0f}" style="fill:var(--over)">{most_taken:,.0f} taken over</text>',
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_PLOT}" y2="{_PLOT}" stroke="var(--line)"/>',
    ]


def _rates(points: list[tuple[float, int]], step: float) -> list[tuple[float, float]]:
    """Records a second, over at least so long a step."""
    rates: list[tuple[float, float]] = []
    before, count = 0.0, 0
    for second, settled in points:
        if second - before >= step:
            rates.append((second, max(0.0, (settled - count) / (second - before))))
            before, count = second, settled
    return rates


def _takeovers(report: Report, step: float) -> list[tuple[float, float]]:
    faults = report.journal.faults
    if not faults:
        return []
    begun = faults[0].at - faults[0].second  # the run's beginning, by the ledger's clock
    buckets: dict[int, float] = {}
    for at, count in report.findings.takeovers_at.items():
        bucket = int((at - begun) / step)
        buckets[bucket] = buckets.get(bucket, 0.0) + count
    return [(bucket * step, count) for bucket, count in sorted(buckets.items())]


def _axis(seconds: float, x: _Scale) -> list[str]:
    step = next(
        s
        for s in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 7200, 86400)
        if seconds / s <= 12 or s == 86400
    )
    marks = []
    for second in range(0, int(seconds) + 1, step):
        label = f"{second} s" if step < 60 else f"{second // 60} min"
        marks.append(f'<text x="{x(second):.1f}" y="{_PLOT + 15}" text-anchor="middle">{label}</text>')
    return marks


def _lane(report: Report, kind: str, top: float, x: _Scale) -> list[str]:
    faults = [fault for fault in report.journal.faults if fault.kind == kind]
    parts = [f'<text x="0" y="{top + 11}">{escape(kind)} {len(faults)}</text>']
    for fault in faults:
        left = x(fault.second)
        width = max(1.2, x(fault.second + (fault.lasted or 0.0)) - left)
        strong = "var(--bad)" if fault.started or fault.lasted else "var(--dim)"
        parts.append(
            f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_LANE - 5}" fill="{strong}" opacity=".75">'
            f"<title>{fault.second:.1f} s: {escape(kind)}, {escape(fault.detail)}; {len(fault.holdings)} records held, "
            f"{fault.started} handlers at work</title></rect>"
        )
    return parts
