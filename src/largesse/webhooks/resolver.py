"""Resolves host names without a thread for each, so that names without an answer delay nothing else.

The system's `getaddrinfo` blocks a thread while a name server is silent, and cannot be cancelled. c-ares sends all its
queries from one thread. It reads the same files as the system's resolver: /etc/hosts, /etc/nsswitch.conf, and the name
servers and search domains in /etc/resolv.conf, which it reads again when it changes
(docs/decisions/0017-webhook-host-names.md).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from functools import cached_property, partial
from ipaddress import ip_address
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from largesse.base import clock
from largesse.webhooks.targets import Address

if TYPE_CHECKING:
    import aiodns
    import pycares

LONGEST_S = 5.0  # the time limit of a look-up, including the wait for its turn
AT_ONCE = 512  # look-ups of a process at the same time
OF_ONE_CUSTOMER = 16
_KEPT_S = 10.0  # how long addresses are cached
_NAMES_KEPT = 4_096
# The wait before a query is repeated: at first this, later five times the server's average (which c-ares measures), at least 0.25 s.
# Each try waits twice as long as the one before, and accepts only its own answer.
# With two tries, a normally quick server that pauses for a second would get only 0.75 s.
_TRY_S = 1.5
_TRIES = 4


class UnresolvedError(OSError):
    """A name has no address, or its name servers did not answer in time."""


class Resolver:
    """Looks up many names at once, but a bounded number for one customer. Close it.

    `nameservers` (`address` or `address:port`) replace the system's.
    """

    def __init__(self, *, nameservers: Sequence[str] = ()) -> None:
        self._nameservers = nameservers
        self._asked: dict[str, asyncio.Future[pycares.AddrInfoResult]] = {}
        self._found: dict[str, tuple[float, list[Address]]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._closed = False
        # The semaphore of a customer exists only while a look-up uses it or waits for it.
        self._places_of: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    @cached_property
    def _questions(self) -> aiodns.DNSResolver:
        import aiodns

        return aiodns.DNSResolver(self._nameservers or None, timeout=_TRY_S, tries=_TRIES)

    async def close(self) -> None:
        """Ends the current and the waiting look-ups, which raise UnresolvedError."""
        self._closed = True
        if "_questions" in self.__dict__:
            await self._questions.close()

    async def look_up(self, host: str, customer_id: int) -> list[Address]:
        """Returns the addresses of a host name, in the order to try them. Raises UnresolvedError if none are found within LONGEST_S."""
        found = self._found.get(host)
        if found is not None and found[0] > clock.passed_s():
            return found[1]
        import aiodns  # imported by the first look-up, so that a service starts faster

        try:
            async with asyncio.timeout(LONGEST_S):
                asked = self._asked.get(host) or await self._ask(host, customer_id)
                # If a caller is cancelled, the query continues and keeps its slots, for other callers.
                result = await asyncio.shield(asked)
        except (TimeoutError, aiodns.error.DNSError) as error:
            raise UnresolvedError(f"no address of the name was found: {type(error).__name__}") from None
        addresses = list(dict.fromkeys(ip_address(node.addr[0].decode()) for node in result.nodes))
        self._keep(host, addresses)
        return addresses

    async def _ask(self, host: str, customer_id: int) -> asyncio.Future[pycares.AddrInfoResult]:
        """Starts a query for a name as soon as its customer and the process may have one more. Returns its future result."""
        places = self._places_of.get(customer_id)
        if places is None:
            places = self._places_of[customer_id] = asyncio.Semaphore(OF_ONE_CUSTOMER)
        await places.acquire()
        try:
            await self._places.acquire()
        except BaseException:
            places.release()
            raise
        if (
            self._closed or host in self._asked
        ):  # another caller has started the query meanwhile, or the resolver was closed
            self._leave(places)
            if self._closed:
                raise UnresolvedError("the process is ending")
            return self._asked[host]
        asked = self._asked[host] = asyncio.create_task(self._question(host))
        asked.add_done_callback(partial(self._answered, host, places))
        return asked

    async def _question(self, host: str) -> pycares.AddrInfoResult:
        """Returns the answer for a name. Raises TimeoutError after LONGEST_S, even if c-ares would continue."""
        async with asyncio.timeout(LONGEST_S):
            return await self._questions.getaddrinfo(host, type=socket.SOCK_STREAM)

    def _answered(self, host: str, places: asyncio.Semaphore, asked: asyncio.Future[pycares.AddrInfoResult]) -> None:
        del self._asked[host]
        self._leave(places)
        if not asked.cancelled():
            asked.exception()  # marks an error as retrieved, as there may be no caller any more

    def _leave(self, places: asyncio.Semaphore) -> None:
        self._places.release()
        places.release()

    def _keep(self, host: str, addresses: list[Address]) -> None:
        if len(self._found) >= _NAMES_KEPT:
            self._found.clear()
        self._found[host] = (clock.passed_s() + _KEPT_S, addresses)
