"""A reason: why something waits, or what became of it, as a sentence and the figures behind it."""

from __future__ import annotations

from typing import Any

Reason = dict[str, Any]


def reason(gate: str, text: str, **facts: Any) -> Reason:
    """One line, whatever an error's message holds."""
    return {"gate": gate, "text": " ".join(text.split()), **facts}
