"""Waiting on an event loop for something that must not be left half-done."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")


async def to_its_end(future: asyncio.Future[_T]) -> _T:
    """The future's result. A task that is cancelled meanwhile, however often, is so only once the future is done."""
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        raise
