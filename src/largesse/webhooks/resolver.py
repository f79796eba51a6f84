"""Host names to addresses, without a thread for each: names that never answer must hold up nothing else.

The system's `getaddrinfo` blocks a thread for as long as a name server is silent, and cannot be called off; c-ares
sends its questions from one thread for all of them. It reads what the system's resolver does: /etc/hosts,
/etc/nsswitch.conf, name servers and search domains of /etc/resolv.conf, the latter again when it changes
(docs/decisions/0017-webhook-host-names.md).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from weakref import WeakValueDictionary

import aiodns
import pycares

from largesse.base import clock
from largesse.webhooks.targets import Address

LONGEST_S = 5.0  # one look-up, the wait for its turn included
AT_ONCE = 512  # look-ups of one process
OF_ONE_CUSTOMER = 16
_KEPT_S = 10.0  # what was found
_NAMES_KEPT = 4_096
# Until a name server is asked again: at first this, then five times what it takes in the middle, 0.25 s or more, which c-ares learns.
# Each try waits twice as long as the one before, and only for its own answer: two of them would give up within 0.75 s on a server that
# is quick as a rule and pauses for a second.
_TRY_S = 1.5
_TRIES = 4


class UnresolvedError(OSError):
    """A name that has no address, or whose name servers did not say in time."""


class Resolver:
    """Looks names up, many at once, a bounded number of them for one customer. Make it inside a running loop; close it.

    `nameservers` (`address` or `address:port`) are asked instead of the system's.
    """

    def __init__(self, *, nameservers: Sequence[str] = ()) -> None:
        self._questions = aiodns.DNSResolver(nameservers or None, timeout=_TRY_S, tries=_TRIES)
        self._asked: dict[str, asyncio.Future[pycares.AddrInfoResult]] = {}
        self._found: dict[str, tuple[float, list[Address]]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._closed = False
        # A customer's places last as long as somebody waits for one or has one.
        self._places_of: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    async def close(self) -> None:
        """Ends the look-ups under way and those that wait: they raise UnresolvedError."""
        self._closed = True
        await self._questions.close()

    async def look_up(self, host: str, customer_id: int) -> list[Address]:
        """Returns the addresses of a host name, in the order to try them. Raises UnresolvedError when it has none in LONGEST_S."""
        found = self._found.get(host)
        if found is not None and found[0] > clock.passed_s():
            return found[1]
        try:
            async with asyncio.timeout(LONGEST_S):
                asked = self._asked.get(host) or await self._ask(host, customer_id)
                # Whoever waits may be called off; the question goes on, and has its place, until it is answered.
                result = await asyncio.shield(asked)
        except (TimeoutError, aiodns.error.DNSError) as error:
            raise UnresolvedError(f"no address of the name was found: {type(error).__name__}") from None
        addresses = list(dict.fromkeys(ip_address(node.addr[0].decode()) for node in result.nodes))
        self._keep(host, addresses)
        return addresses

    async def _ask(self, host: str, customer_id: int) -> asyncio.Future[pycares.AddrInfoResult]:
        """Resolves a name as soon as its customer and the process may have one more query."""
        places = self._places_of.get(customer_id)
        if places is None:
            places = self._places_of[customer_id] = asyncio.Semaphore(OF_ONE_CUSTOMER)
        await places.acquire()
        try:
            await self._places.acquire()
        except BaseException:
            places.release()
            raise
        if self._closed or host in self._asked:  # by another one, meanwhile
            self._leave(places)
            if self._closed:
                raise UnresolvedError("the process is ending")
            return self._asked[host]
        asked = self._asked[host] = asyncio.create_task(self._question(host))
        asked.add_done_callback(partial(self._answered, host, places))
        return asked

    async def _question(self, host: str) -> pycares.AddrInfoResult:
        """Returns its answer. Raises TimeoutError when there is none in LONGEST_S, however long c-ares would go on."""
        async with asyncio.timeout(LONGEST_S):
            return await self._questions.getaddrinfo(host, type=socket.SOCK_STREAM)

    def _answered(self, host: str, places: asyncio.Semaphore, asked: asyncio.Future[pycares.AddrInfoResult]) -> None:
        del self._asked[host]
        self._leave(places)
        if not asked.cancelled():
            asked.exception()  # nobody may be waiting for it any more

    def _leave(self, places: asyncio.Semaphore) -> None:
        self._places.release()
        places.release()

    def _keep(self, host: str, addresses: list[Address]) -> None:
        if len(self._found) >= _NAMES_KEPT:
            self._found.clear()
        self._found[host] = (clock.passed_s() + _KEPT_S, addresses)
