"""The leased messages of a worker and their outcomes, shared by its connections to the mail server.

A connection ends the text of a message only when the outcome of the message before is in the database and the lease is certain. So
at most one message of a connection has been sent and is not yet recorded. Whatever goes wrong (a process killed or stopped for a
minute, a database unavailable), at most one message for each connection is sent twice.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

import structlog

from largesse.base import clock
from largesse.db.pool import DATABASE_FAILED, Database
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.jobs.leases import LEASE_S, Lease, Leases, StillHeldError
from largesse.jobs.recorder import Recorder
from largesse.mail import messages
from largesse.mail.messages import MESSAGES, Message
from largesse.mail.outcomes import Sent, need_transaction, record

log = structlog.get_logger(__name__)


# How old the last check of a message's row may be when its text is sent. A cancellation after the check comes too late.
FRESH_S = 0.05


class NotNowError(Exception):
    """A message may not be sent now, and was not sent."""


class MessageLeases:
    """Leases messages and writes their outcomes, for all connections of a process."""

    def __init__(self, database: Database, *, lease_s: float = LEASE_S) -> None:
        self._database = database
        self._leases = Leases(MESSAGES, lease_s=lease_s)
        self._recorder: Recorder[Sent] = Recorder("mail", self._write)
        # Messages being sent, by lease. With each, whether it could be sent when outcomes were last written, and the time of that.
        self._watched: dict[Lease, tuple[Message, bool | None, float]] = {}

    async def take(self, limit: int, vault: Vault, public_url_of: Callable[[str], str]) -> list[Message]:
        """Leases up to `limit` due messages; none while outcomes cannot be written."""
        if self._recorder.is_stuck:
            return []
        asked_at = self._leases.now()
        try:
            async with self._database.transaction(WORKER) as connection:
                taken = await messages.take(connection, limit, vault, public_url_of, self._leases.terms)
        except StillHeldError:
            await self.renew()
            return []
        self._leases.hold((message.lease for message in taken), asked_at)
        return taken

    async def renew(self) -> None:
        """Renews the leases of all current messages, and of messages whose outcome is not written yet."""
        async with self._database.connection(WORKER) as connection:
            await self._leases.renew(connection)

    async def is_ours(self, message: Message) -> bool:
        """Returns whether the message's lease is certainly valid. If the clock cannot tell, renews it in the database."""
        if not self._leases.certain_s(message.lease):
            await self.renew()
        return self._leases.certain_s(message.lease) > 0

    @contextlib.contextmanager
    def watch(self, message: Message) -> Iterator[None]:
        """Watches a message while it is handed over: statements that write outcomes meanwhile read its row too."""
        self._watched[message.lease] = message, None, 0.0
        try:
            yield
        finally:
            del self._watched[message.lease]

    async def allow(self, message: Message, last: asyncio.Future[bool] | None) -> None:
        """Checks a message for the last time before it is sent. Raises NotNowError unless it may be sent.

        Reads its row too, as its gift may have been cancelled since it was leased. Waits for `last`, the outcome of the message before it
        on the connection, as long as the lease is certain. If a statement that just wrote outcomes read the row, this saves a round trip.
        """
        try:
            await self._settle_last(message, last)
            _, stands, looked_at = self._watched[message.lease]
            if stands is None or clock.passed_s() - looked_at > FRESH_S:
                async with self._database.connection(WORKER) as connection:
                    stands = await messages.still_stands(connection, message)
            is_ours = await self.is_ours(message)
        except DATABASE_FAILED as error:
            raise NotNowError(f"the lease is in doubt ({type(error).__name__})") from None
        if not is_ours:
            raise NotNowError("the lease has run out")
        if not stands:
            raise NotNowError("its order was cancelled meanwhile")

    async def _settle_last(self, message: Message, last: asyncio.Future[bool] | None) -> None:
        if last is not None and not last.done():
            self._recorder.hasten()
            await asyncio.wait({last}, timeout=self._leases.certain_s(message.lease))
            if not last.done():
                raise NotNowError("the outcome of the last message cannot be written")

    def write_down(self, sent: Sent) -> asyncio.Future[bool]:
        """Writes an outcome, now or when the database is back. The future is done once it is written."""
        return self._recorder.add(sent)

    async def settle(self) -> None:
        """Waits until all outcomes are written, or a try has failed."""
        await self._recorder.settle()

    async def give_back(self, leases: Sequence[Lease], reason: str | None = None) -> None:
        """Frees messages that were not sent, with the reason if it is the mail server's fault."""
        self._leases.drop(leases)
        async with self._database.connection(WORKER) as connection:
            if reason is None:
                await self._leases.give_back(connection, leases)
            else:
                await messages.put_back(connection, leases, reason)

    async def close(self) -> None:
        """Waits until all outcomes are written, for ten seconds at most."""
        await self._recorder.close()

    async def _write(self, sent: list[Sent]) -> None:
        # A single statement needs no transaction, which saves two round trips.
        is_one = not need_transaction(self._database, sent)
        async with self._database.connection(WORKER) if is_one else self._database.transaction(WORKER) as connection:
            looked_at = clock.passed_s()
            watched = [message for message, _, _ in self._watched.values()]
            lost, standing = await record(connection, sent, watched)
        for message in watched:
            if message.lease in self._watched:
                self._watched[message.lease] = message, message.lease.key in standing, looked_at
        self._leases.drop(one.message.lease for one in sent)
        if lost:
            # Another worker has leased them, as this process was stopped for longer than its clock shows.
            log.warning("mail.lease_lost", messages=lost)
            self._leases.doubt()
