"""Work that one instance of all does in the background: whoever holds the lease, until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlock.leases.acquisition import Acquisition, try_to_take

if TYPE_CHECKING:
    from rowlock.leases.instance import Instance
    from rowlock.leases.lease import Lease
    from rowlock.ledger.ledger import Ledger


class Elected:
    """Tries whenever it is asked and does not hold it; never waits."""

    def __init__(self, instance: Instance, ledger: Ledger, name: str, ttl: float) -> None:
        self._instance = instance
        self._ledger = ledger
        self._name = name
        self._ttl = ttl
        self._lease: Lease | None = None

    @property
    def here(self) -> bool:
        """True on one instance of all; the lease is kept until this instance ends."""
        if self._lease is None or not self._lease.held:
            keeper = self._instance.keeper
            wish = Acquisition(keeper, self._name, ttl=self._ttl, wait=0, owner=self, writes=self._ledger)
            self._lease = try_to_take(wish)
        return self._lease is not None
