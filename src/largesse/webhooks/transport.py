"""Makes attempts: each is a POST over a connection to an address that was checked.

For each connection the name is looked up and its addresses are checked. The connection goes to a checked address, never to the name.
So a name that changes its address, a host in an unusual spelling, or a redirect cannot reach a forbidden address.

A connection posts and reads answers of HTTP/1.1: no redirects, no cookies, no decompression, bounded memory. A general client does more than
a delivery needs, and takes four times as long for a request (docs/decisions/0010-webhook-http-client.md).
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import Self, cast

import httptools
import msgspec

from largesse.base import clock
from largesse.base.errors import InvalidRequest
from largesse.webhooks.outcomes import AttemptResult
from largesse.webhooks.resolver import UnresolvedError
from largesse.webhooks.targets import Address, LookUp, Network, Target, parse_target, permits

KEPT_BYTES = 2_048  # the start of an answer's body that is stored, by default
_MAX_HEAD_BYTES = 65_536  # for the status line and headers, including interim answers
_MAX_BODY_BYTES = 65_536  # a longer body is cut off
# A body with its chunks may be so many times as long: the parser reads endless extensions of chunks, and endless trailers.
_MOST_FRAMING = 2


class BadAnswerError(Exception):
    """The answer is not HTTP, or its head is too large."""


class Response(msgspec.Struct, frozen=True):
    """A receiver's answer: its status, its `Retry-After` header if there is one, and the start of its body."""

    status: int
    retry_after: str | None
    body: bytes


class Channel(asyncio.Protocol):
    """A connection. `post` sends one request at a time. `reusable` tells whether it can send another.

    It stores `kept_bytes` of the body of an answer.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._most_bytes = max(kept_bytes, _MAX_BODY_BYTES)
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answered: asyncio.Future[Response] | None = None
        self._bytes = 0  # of the whole answer
        self._in_body = False
        self._body = bytearray()
        self._body_bytes = 0
        self._retry_after: str | None = None
        self._open = False
        self.heard = False  # whether any byte of the answer has arrived

    @property
    def reusable(self) -> bool:
        """Whether it is open and has no current request."""
        return self._open and self._answered is None

    async def post(self, request: bytes, within_s: float) -> Response:
        """Sends a whole request and returns the answer. Raises BadAnswerError, ConnectionError or TimeoutError."""
        if not self.reusable or self._transport is None:
            raise ConnectionResetError("the connection is closed")
        loop = asyncio.get_running_loop()
        self._answered = loop.create_future()
        self.heard = False
        self._begin_message()
        self._bytes = 0
        self._transport.write(request)
        late = loop.call_later(within_s, self._fail, TimeoutError())
        try:
            return await self._answered
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            late.cancel()
            self._answered = None

    def abort(self) -> None:
        """Drops the connection at once."""
        self._open = False
        if self._transport is not None:
            self._transport.abort()

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio when the connection is open."""
        self._transport = cast("asyncio.Transport", transport)
        self._open = True

    def data_received(self, data: bytes) -> None:
        """Called by asyncio with new bytes. Ends the connection on bytes without a request, on invalid HTTP, and on a head or body beyond the limit."""
        if self._answered is None or self._answered.done():
            self.abort()  # bytes came without a request
            return
        self.heard = True
        self._bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._finish(keep=False)
        except httptools.HttpParserError:
            self._fail(BadAnswerError())
        if self._answered.done():
            return
        if self._in_body and self._bytes > _MAX_HEAD_BYTES + _MOST_FRAMING * self._most_bytes:
            self._finish(keep=False)
        elif not self._in_body and self._bytes > _MAX_HEAD_BYTES:
            self._fail(BadAnswerError())

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's callback
        """Called by asyncio when the connection is closed. An answer whose head was read still counts."""
        self._open = False
        if self._in_body:
            self._finish(keep=False)  # the status is known, so an incomplete body does not matter
        else:
            self._fail(ConnectionResetError("the connection was closed"))

    # httptools' callbacks

    def on_message_begin(self) -> None:
        """Called by httptools when an answer begins. Ends the connection if there is no request for it."""
        if self._answered is None or self._answered.done():
            self.abort()  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools for each header. Stores only `Retry-After`."""
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Called by httptools at the end of a head. A body follows, unless the answer is an interim one."""
        self._in_body = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        """Called by httptools for each part of a body. Stores the start of the body, and stops reading beyond the limit."""
        self._body += body[: self._kept_bytes - len(self._body)]
        self._body_bytes += len(body)
        if self._body_bytes > self._most_bytes:
            self._finish(keep=False)

    def on_message_complete(self) -> None:
        """Called by httptools at the end of an answer."""
        if self._in_body:
            self._finish(keep=self._parser.should_keep_alive())
        else:
            self._begin_message()  # an interim answer (RFC 9110, 15.2); the final one follows

    def _begin_message(self) -> None:
        self._in_body = False
        self._body = bytearray()
        self._body_bytes = 0
        self._retry_after = None

    def _finish(self, *, keep: bool) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(Response(self._parser.get_status_code(), self._retry_after, bytes(self._body)))
        self._in_body = False
        if not keep:
            self.abort()

    def _fail(self, error: Exception) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)
        self.abort()


_KEPT_OPEN_S = 5.0  # how long a connection stays open after an answer
# The time limit for each address of a name except the last, so that there is time for the next.
_FIRST_ADDRESSES_S = 3.0

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
