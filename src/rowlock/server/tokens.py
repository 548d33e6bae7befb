"""Tokens: who may call the server. A secret is shown once; the ledger keeps its hash."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from enum import StrEnum
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from rowlock import clock
from rowlock.errors import InvalidInput, NotFound, Refused

if TYPE_CHECKING:
    from datetime import datetime

    from rowlock.ledger.ledger import Ledger

# What a secret begins with: people and secret scanners know it by that.
SIGN = "rl_"
_PREFIX = len(SIGN) + 6
_LONGEST_NAME = 100
_LONGEST_DAYS = 36_500


class Role(StrEnum):
    """What a caller may do; each role may do everything that the ones before it may."""

    READ = "read"
    SUBMIT = "submit"
    OPERATE = "operate"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True)
class Caller:
    """Whoever makes a request: the token's name, or nobody in particular while the ledger has no tokens."""

    name: str | None
    role: Role
    token_id: int | None = None


@dataclass(frozen=True)
class Created:
    """A new token. This is the only time that anybody sees its secret."""

    name: str
    role: Role
    secret: str
    expires_at: datetime | None


class TokenBook:
    """The tokens as they were at one moment."""

    def __init__(self, rows: list[Any]) -> None:
        self.empty = not rows
        self._by_prefix: dict[str, list[tuple[str, Caller]]] = {}
        for row in rows:
            if row.state == "active":
                caller = Caller(row.name, Role(row.role), row.id)
                self._by_prefix.setdefault(row.prefix, []).append((row.hash, caller))

    @property
    def usable(self) -> bool:
        """True if at least one token counts now."""
        return bool(self._by_prefix)

    def find(self, secret: str) -> Caller | None:
        """Whose secret this is. Hashes are compared in a time that says nothing about them."""
        digest = _hash(secret)
        for known, caller in self._by_prefix.get(secret[:_PREFIX], []):
            if compare_digest(known, digest):
                return caller
        return None


class Tokens:
    """The tokens of one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def create(self, name: str, role: str, days: float | None = None) -> Created:
        """A token of that name; Refused if there is one already."""
        if not (0 < len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip()):
            raise InvalidInput(
                f"A token's name is 1 to {_LONGEST_NAME} printable characters, as in ci-exports; not {name!r}."
            )
        if role not in list(Role):
            raise InvalidInput(f"role {role!r}: it is one of {', '.join(Role)}.")
        if days is not None and not 0 < days <= _LONGEST_DAYS:
            raise InvalidInput(f"A token lasts for 1 to {_LONGEST_DAYS} days, not {days:g}.")
        secret = SIGN + secrets.token_urlsafe(32)
        rows = self._ledger.run(
            "token_create",
            name=name,
            role=role,
            hash=_hash(secret),
            prefix=secret[:_PREFIX],
            seconds=None if days is None else days * 86400,
        )
        if not rows:
            raise Refused(
                f"There is a token {name!r} already. Take another name, or end that one first: rowlock tokens revoke {name}"
            )
        return Created(name, Role(role), secret, clock.as_datetime(rows[0].expires_at))

    def list(self) -> list[dict[str, Any]]:
        """Every token there ever was, without what could be used."""
        shown = ("name", "role", "prefix", "state", "created_at", "expires_at", "used_at", "revoked_at")
        return [{key: _shown(key, getattr(row, key)) for key in shown} for row in self._rows()]

    def revoke(self, name: str) -> None:
        """Ends a token; servers know of it within seconds."""
        if not self._ledger.run("token_revoke", name=name):
            raise NotFound(f"There is no token {name!r} that could be revoked. See: rowlock tokens list")

    def book(self) -> TokenBook:
        return TokenBook(self._rows())

    def note_use(self, token_id: int) -> None:
        self._ledger.run("token_used", id=token_id)

    def _rows(self) -> Any:
        return self._ledger.run_safely("tokens")


def _hash(secret: str) -> str:
    # 256 random bits need no salt and no slow hash: there is nothing to guess.
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def _shown(name: str, value: Any) -> Any:
    return clock.as_datetime(value) if name.endswith("_at") else value
