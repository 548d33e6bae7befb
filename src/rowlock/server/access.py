"""Access: who is calling. One statement serves all requests of two seconds, and a revocation counts as soon."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from rowlock import clock
from rowlock.errors import LedgerError, LedgerUnavailable
from rowlock.server.tokens import Caller, Role, TokenBook, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlock.ledger.ledger import Ledger

logger = logging.getLogger("rowlock.server")

# How old the tokens may be when a request is decided on, and how old when a secret is unknown: it may be new.
FRESH_SECONDS = 2.0
_UNKNOWN_SECONDS = 0.25
_NOTE_SECONDS = 60.0
# A network that swallows packets must not make every caller wait for its turn to find out.
_READ_SECONDS = 5.0

ANYBODY = Caller(None, Role.ADMIN)


class Access:
    """Reads the tokens when it must, on a thread, once however many ask."""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._book = TokenBook([])
        self._read_at = self._failed_at = float("-inf")
        self._reading = anyio.Lock()
        self._noted: dict[int, float] = {}

    async def is_open(self) -> bool:
        """True while the ledger has never had a token."""
        return (await self._tokens(FRESH_SECONDS)).empty

    async def find(self, secret: str) -> Caller | None:
        """Whose secret this is; None if nobody's, or if it was revoked or has expired."""
        caller = (await self._tokens(FRESH_SECONDS)).find(secret)
        if caller is None:
            caller = (await self._tokens(_UNKNOWN_SECONDS)).find(secret)
        if caller is not None and caller.token_id is not None:
            await self._note(caller.token_id)
        return caller

    async def _tokens(self, age: float) -> TokenBook:
        asked = clock.monotonic()
        if asked - self._read_at >= age:
            async with self._reading:
                if self._failed_at >= asked:  # whoever waited for the same read shares its failure
                    raise LedgerUnavailable("The tokens cannot be read: the ledger does not answer.")
                if clock.monotonic() - self._read_at >= age:
                    await self._read()
        return self._book

    async def _read(self) -> None:
        began = clock.monotonic()
        try:
            with anyio.fail_after(_READ_SECONDS):
                self._book = await run_sync(lambda: Tokens(self._ledger()).book(), abandon_on_cancel=True)
        except TimeoutError:
            self._failed_at = clock.monotonic()
            raise LedgerUnavailable(f"The tokens could not be read within {_READ_SECONDS:g} s.") from None
        except LedgerError:
            self._failed_at = clock.monotonic()
            raise
        self._read_at = began

    async def _note(self, token_id: int) -> None:
        now = clock.monotonic()
        if now - self._noted.get(token_id, float("-inf")) >= _NOTE_SECONDS:
            self._noted[token_id] = now
            try:
                await run_sync(lambda: Tokens(self._ledger()).note_use(token_id))
            except LedgerError as error:  # a full disk must not lock out whoever could free it
                logger.warning("the last use of token %s could not be written: %s", token_id, error)
