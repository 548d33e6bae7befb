"""What the monitors poll: stands in for EDGAR and an exchange. Every poll sees some old news again, as a real one does."""

import time
from typing import Any


def latest_filings() -> list[dict[str, Any]]:
    """The last ten filings; a new one comes five times a second."""
    newest = int(time.time() * 5)
    return [
        {"accession_number": f"0001-{number}", "company": f"Company {number % 7}"}
        for number in range(newest - 9, newest + 1)
    ]


def halts() -> list[dict[str, Any]]:
    """The halts of the last seconds; there is one every second."""
    newest = int(time.time())
    return [{"ticker": f"T{second % 5}", "halt_time": second} for second in range(newest - 4, newest + 1)]
