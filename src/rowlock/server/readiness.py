"""Readiness: whether this server can serve. Anybody may ask, so the ledger is asked once a second at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from rowlock import clock
from rowlock.errors import LedgerError, SchemaMismatch
from rowlock.server.problem import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.ledger.ledger import Ledger

FRESH_SECONDS = 1.0
# Whoever asks whether we are ready does not want to wait for a network that swallows packets.
_READY_SECONDS = 5.0


class Readiness:
    """What the ledger said last: nothing, or why not."""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._asking = anyio.Lock()
        self._asked_at = float("-inf")
        self._problem: Exception | None = None

    async def check(self) -> None:
        """Raises what is wrong, if something is."""
        async with self._asking:
            if clock.monotonic() - self._asked_at >= FRESH_SECONDS:
                self._problem = await self._ask()
                self._asked_at = clock.monotonic()
        if self._problem is not None:
            raise self._problem

    def _check(self) -> None:
        self._ledger().schema.check()  # on the thread: opening a ledger may take as long

    async def _ask(self) -> Exception | None:
        try:
            with anyio.fail_after(_READY_SECONDS):
                await run_sync(self._check, abandon_on_cancel=True)
        except TimeoutError:
            return Refusal(503, f"The ledger did not answer within {_READY_SECONDS:g} s.", kind="not-ready")
        except SchemaMismatch as error:
            return error
        except LedgerError:
            return Refusal(503, "The ledger cannot be reached now.", kind="not-ready")
        return None
