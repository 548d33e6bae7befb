"""Files of index levels, on request: one exporter is this function, the other a query in rowlock.toml.

`rowlock serve exports` takes jobs, `rowlock worker exports` makes their files; start as many as you like.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import text

from rowlock import Backoff, Reject, Rowlock

app = Rowlock()  # sqlite:///rowlock.db here, or what ROWLOCK_LEDGER_URL says

LEVELS = "SELECT day, level FROM levels WHERE index_key = :indexKey AND day <= :effectiveDate ORDER BY day"
CORRECTED = "SELECT 1 FROM corrections WHERE index_key = :indexKey"


class BeingCorrected(Exception):
    """The levels are being corrected: another attempt, a little later, finds them right."""


# Many attempts, because a correction takes its time; an index without levels is dead at once.
@app.exporter("index_levels", max_attempts=20, backoff=Backoff(base=1, cap=4), concurrency=4, timeout=60)
def index_levels(fields: Any, context: Any) -> Iterator[dict[str, Any]]:
    """The levels up to the effective date, each with its change since the day before."""
    wanted = fields.model_dump()
    with context.databases.reading("market") as market:
        if market.execute(text(CORRECTED), wanted).first():
            raise BeingCorrected(f"the levels of {fields.indexKey} are being corrected")
        levels = market.execute(text(LEVELS), wanted).all()
    if not levels:
        raise Reject(f"there are no levels of {fields.indexKey} up to {fields.effectiveDate}")
    before = None
    for day, level in levels:
        change = None if before is None else round((level / before - 1) * 100, 4)
        yield {"index": fields.indexKey, "day": day, "level": level, "change_percent": change}
        before = level
