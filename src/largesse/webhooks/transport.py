"""Makes attempts: each is a POST over a connection to an address that was checked.

For each connection the name is looked up and its addresses are checked. The connection goes to a checked address, never to the name.
So a name that changes its address, a host in an unusual spelling, or a redirect cannot reach a forbidden address.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import Self

from largesse.base import clock
from largesse.base.errors import InvalidRequest
from largesse.webhooks.channel import KEPT_BYTES, BadAnswerError, Channel, Response
from largesse.webhooks.outcomes import AttemptResult
from largesse.webhooks.resolver import UnresolvedError
from largesse.webhooks.targets import Address, LookUp, Network, Target, parse_target, permits

_KEPT_OPEN_S = 5.0  # how long a connection stays open after an answer
_FIRST_ADDRESSES_S = (
    3.0  # the time limit for each address of a name except the last, so that there is time for the next
)

_Place = tuple[str, str, int]  # scheme, host and port


class ForbiddenAddressError(OSError):
    """The address is forbidden. The error does not contain the address, as customers read errors."""


class _ConnectError(Exception):
    """No address could be connected to."""


class HttpTransport:
    """Makes attempts, and looks names up with `look_up`. Close it, or use it as a context manager."""

    def __init__(
        self, allowed_networks: tuple[Network, ...], timeout_s: float, look_up: LookUp, *, most_bytes: int = KEPT_BYTES
    ) -> None:
        self._most_bytes = most_bytes
        self._allowed_networks = allowed_networks
        self._read_target = lru_cache(maxsize=4096)(partial(_read_target, allowed_networks))
        self.timeout_s = timeout_s
        self._look_up = look_up
        self._tls = ssl.create_default_context()
        self._idle: dict[_Place, list[tuple[float, Channel]]] = defaultdict(list)
        self._sweeping: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the idle connections. Call it when there are no current attempts."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for idle in self._idle.values():
            for _, channel in idle:
                channel.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # the transports close in the next iteration of the event loop

    async def post(self, target_url: str, body: bytes, headers: Mapping[str, str], customer_id: int) -> AttemptResult:
        """Posts `body` and returns the result. For faults of the receiver, it also returns a result, and does not raise.

        The time-out includes the look-up of the name. The body may be sent twice if the receiver closes an idle connection.
        """
        return await self._attempt("POST", target_url, body, headers, customer_id, is_repeatable=True)

    async def request(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], customer_id: int
    ) -> AttemptResult:
        """Sends a request and returns the result, as `post` does. Only a GET may be sent twice."""
        return await self._attempt(method, url, body, headers, customer_id, is_repeatable=method == "GET")

    async def _attempt(
        self,
        method: str,
        target_url: str,
        body: bytes,
        headers: Mapping[str, str],
        customer_id: int,
        *,
        is_repeatable: bool,
    ) -> AttemptResult:
        started = clock.passed_s()
        try:
            target, head = self._read_target(method, target_url)
        except InvalidRequest:  # fewer networks are allowed now than when the subscription was created
            return AttemptResult(None, "forbidden_target", None, b"", 0.0)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        request = f"{head}{lines}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body
        try:
            ends = started + self.timeout_s
            response = await self._send(target, request, customer_id, ends, is_repeatable=is_repeatable)
        except (OSError, _ConnectError, BadAnswerError) as failure:
            return AttemptResult(None, name_of(failure), None, b"", clock.passed_s() - started)
        taken_s = clock.passed_s() - started
        return AttemptResult(response.status, None, response.retry_after, response.body, taken_s)

    async def _send(
        self, target: Target, request: bytes, customer_id: int, ends: float, *, is_repeatable: bool
    ) -> Response:
        place = (target.scheme, target.host, target.port)
        idle = self._idle[place] if is_repeatable else []
        while idle:
            _, channel = idle.pop()
            if not channel.reusable:
                continue
            try:
                response = await channel.post(request, ends - clock.passed_s())
            except ConnectionError:
                if channel.heard:
                    raise
                # The receiver has closed the idle connection without an answer, so the next connection is tried.
                continue
            self._keep(place, channel)
            return response
        async with asyncio.timeout(ends - clock.passed_s()):
            channel = await self._connect(target, customer_id)
        response = await channel.post(request, ends - clock.passed_s())
        self._keep(place, channel)
        return response

    async def _connect(self, target: Target, customer_id: int) -> Channel:
        """Returns a connection to a permitted address. Raises ForbiddenAddressError if there is none."""
        addresses: Sequence[Address] = (
            [target.address] if target.address is not None else await self._look_up(target.host, customer_id)
        )
        permitted = [address for address in addresses if permits(target, address, self._allowed_networks)]
        if not permitted:
            raise ForbiddenAddressError
        for address in permitted[:-1]:
            try:
                async with asyncio.timeout(_FIRST_ADDRESSES_S):
                    return await self._dial(target, address)
            except (OSError, _ConnectError):
                continue
        return await self._dial(target, permitted[-1])

    async def _dial(self, target: Target, address: Address) -> Channel:
        tls = self._tls if target.scheme == "https" else None
        try:
            transport, channel = await asyncio.get_running_loop().create_connection(
                partial(Channel, self._most_bytes),
                str(address),
                target.port,
                ssl=tls,
                server_hostname=target.host if tls is not None else None,
            )
        except (ssl.SSLError, TimeoutError):
            raise
        except OSError as error:
            raise _ConnectError from error
        if ip_address(transport.get_extra_info("peername")[0]) != address:
            channel.abort()
            raise ForbiddenAddressError
        return channel

    def _keep(self, place: _Place, channel: Channel) -> None:
        if not channel.reusable:
            return
        self._idle[place].append((clock.passed_s(), channel))
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(_KEPT_OPEN_S, self._sweep)

    def _sweep(self) -> None:
        """Closes the connections that have been idle too long."""
        now = clock.passed_s()
        for place, idle in list(self._idle.items()):
            for since, channel in idle:
                if since < now - _KEPT_OPEN_S:
                    channel.abort()
            idle[:] = [(since, channel) for since, channel in idle if channel.reusable]
            if not idle:
                del self._idle[place]
        self._sweeping = asyncio.get_running_loop().call_later(_KEPT_OPEN_S, self._sweep) if self._idle else None


def _read_target(allowed_networks: tuple[Network, ...], method: str, url: str) -> tuple[Target, str]:
    """Returns the target and the head of every request to it."""
    target = parse_target(url, allowed_networks)
    host = f"[{target.host}]" if ":" in target.host else target.host
    if target.port != {"https": 443, "http": 80}[target.scheme]:
        host = f"{host}:{target.port}"
    return target, f"{method} {target.path_and_query} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n"


def name_of(failure: Exception) -> str:
    """Returns the name of a failure for customers and metrics. Its text is not shown, as it may describe the internal network."""
    if isinstance(failure, ForbiddenAddressError):
        return "forbidden_address"
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, UnresolvedError):
        return "dns"
    if isinstance(failure, ssl.SSLError):
        return "tls"
    if isinstance(failure, _ConnectError):
        return "connect"
    return "bad_answer" if isinstance(failure, BadAnswerError) else "connection_lost"
