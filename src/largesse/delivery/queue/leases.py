"""The leases a process holds, and whether they certainly hold: what is done under one is done only while they do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from largesse.base.clock import Seconds, running_s
from largesse.database.pool import Connection
from largesse.delivery.queue.leasing import LEASE_S, Lease, Queue, Terms

_CERTAIN = 0.8  # of a lease's length: the rest is for what was begun while it was certain


class Leases:
    """Leases of one queue, with the time until which each is certain by this machine's clock.

    A lease's time begins in the database after it was asked for here. So by the clock alone, and without asking anybody,
    one that was taken or renewed a short while ago is certain; when in doubt, renewing tells.
    """

    def __init__(self, queue: Queue, *, lease_s: float = LEASE_S, clock: Seconds = running_s) -> None:
        self.lease_s = lease_s
        self._queue = queue
        self._clock = clock
        self._certain_until: dict[Lease, float] = {}

    def now(self) -> float:
        """The instant that `hold` wants: read it before the leases are asked for."""
        return self._clock()

    def hold(self, leases: Iterable[Lease], asked_at: float) -> None:
        """Holds leases that were just taken."""
        certain_until = asked_at + self.lease_s * _CERTAIN
        self._certain_until.update(dict.fromkeys(leases, certain_until))

    def drop(self, leases: Iterable[Lease]) -> None:
        """Holds these no longer: they were given back, or what was done under them is written."""
        for lease in leases:
            self._certain_until.pop(lease, None)

    @property
    def terms(self) -> Terms:
        """On what terms to take more."""
        return Terms(self.lease_s, {lease.key for lease in self._certain_until})

    def certain_s(self, lease: Lease) -> float:
        """For how many seconds from now the lease certainly holds; 0 when that is in doubt."""
        return max(self._certain_until.get(lease, 0.0) - self._clock(), 0.0)

    def doubt(self) -> None:
        """Takes none for certain until it is renewed."""
        self._certain_until = dict.fromkeys(self._certain_until, 0.0)

    async def renew(self, connection: Connection) -> None:
        """Prolongs all that still hold; they are certain again. The others are left in doubt."""
        held = list(self._certain_until)
        if not held:
            return
        asked_at = self._clock()
        renewed = await self._queue.renew(connection, held, lease_s=self.lease_s)
        # Some may have been dropped meanwhile.
        self.hold(
            (lease for lease in held if lease.key in renewed and lease in self._certain_until), asked_at
        )

    async def give_back(self, connection: Connection, leases: Sequence[Lease]) -> None:
        """Frees leases for any worker to take."""
        self.drop(leases)
        await self._queue.give_back(connection, leases)
