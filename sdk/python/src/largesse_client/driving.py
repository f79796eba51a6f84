"""The two drivers of calls: one blocks, one awaits. Nothing else differs between the two clients."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

import httpx

from largesse_client.answers import Answer
from largesse_client.asking import Asker, Send, Wait
from largesse_client.calls import Call, Pages
from largesse_client.errors import NoAnswer, Unreachable

T = TypeVar("T")

MAX_ANSWER_BYTES = 64 * 2**20
# The most calls of a client at once, each on a connection of its own; further ones wait for their turn. The pool of httpx is never asked for more:
# it compares each waiting request with each connection, again and again, so that hundreds of them would time out.
MAX_CALLS = 100
# How OpenSSL 1 and 3 call the answer of a server that speaks plain HTTP.
_NO_TLS = re.compile("WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG")
_NOT_CONNECTED = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.ProxyError,
)


# A forked process inherits open connections. If it used them, it and its parent would read the answers to each other's requests.
_drivers: WeakSet[Any] = WeakSet()


def _open_all() -> None:
    for driver in tuple(_drivers):
        driver.open()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_open_all)


class Driver:
    """Performs calls with an httpx client that blocks; `connect` returns a new one."""

    def __init__(self, connect: Callable[[], httpx.Client], asker: Asker, timeout_s: float) -> None:
        self._connect = connect
        self._asker = asker
        self._timeout_s = timeout_s
        self.open()
        _drivers.add(self)

    def open(self) -> None:
        """Begins anew, without connections."""
        self._client = self._connect()
        self._turns = threading.Semaphore(MAX_CALLS)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def perform(self, define: Callable[[], Call[T]]) -> T:
        """Returns the value of the answer to the call that `define` returns. Raises LargesseError."""
        return self._in_turn(define())

    def each(self, pages: Pages[T]) -> Iterator[T]:
        """Yields the items of all pages. Each page is requested when the one before is used up."""
        query = pages.query
        while True:
            page = self._in_turn(pages.fetch(query))
            yield from page
            following = pages.then(query, page)
            if following is None:
                return
            query = following

    def _in_turn(self, call: Call[T]) -> T:
        with self._turns:
            return self._converse(call)

    def _converse(self, call: Call[T]) -> T:
        steps = self._asker.converse(call)
        heard: Answer | NoAnswer | None = None
        while True:
            try:
                step = steps.send(heard)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(step, Wait):
                time.sleep(step.seconds)
                heard = None
            else:
                heard = self._send(step)

    def _send(self, send: Send) -> Answer | NoAnswer:
        body = _Body(self._timeout_s)
        try:
            with _as_no_answer(send):
                response = self._client.send(_request(self._client, send), stream=True)
                try:
                    for chunk in response.iter_bytes():
                        body.add(chunk)
                finally:
                    response.close()
        except NoAnswer as nothing:
            return nothing
        return Answer(response.status_code, response.headers, body.whole())


class AsyncDriver:
    """Performs calls with an httpx client that awaits; `connect` returns a new one."""

    def __init__(self, connect: Callable[[], httpx.AsyncClient], asker: Asker, timeout_s: float) -> None:
        self._connect = connect
        self._asker = asker
        self._timeout_s = timeout_s
        self.open()
        _drivers.add(self)

    def open(self) -> None:
        """Begins anew, without connections."""
        self._client = self._connect()
        self._turns = asyncio.Semaphore(MAX_CALLS)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def perform(self, define: Callable[[], Call[T]]) -> T:
        """Returns the value of the answer to the call that `define` returns. Raises LargesseError."""
        return await self._in_turn(define())

    async def each(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Yields the items of all pages. Each page is requested when the one before is used up."""
        query = pages.query
        while True:
            page = await self._in_turn(pages.fetch(query))
            for item in page:
                yield item
            following = pages.then(query, page)
            if following is None:
                return
            query = following

    async def _in_turn(self, call: Call[T]) -> T:
        loop = asyncio.get_running_loop()
        if self._loop not in {None, loop}:
            self.open()  # connections work only in the event loop that opened them
        self._loop, client = loop, self._client
        async with self._turns:
            return await self._converse(call, client)

    async def _converse(self, call: Call[T], client: httpx.AsyncClient) -> T:
        steps = self._asker.converse(call)
        heard: Answer | NoAnswer | None = None
        while True:
            try:
                step = steps.send(heard)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
                heard = None
            else:
                heard = await self._send(step, client)

    async def _send(self, send: Send, client: httpx.AsyncClient) -> Answer | NoAnswer:
        body = _Body(self._timeout_s)
        try:
            with _as_no_answer(send):
                response = await client.send(_request(client, send), stream=True)
                try:
                    async for chunk in response.aiter_bytes():
                        body.add(chunk)
                finally:
                    await response.aclose()
        except NoAnswer as nothing:
            return nothing
        return Answer(response.status_code, response.headers, body.whole())


class _Body:
    """The body of an answer while it arrives. It must be complete within the time limit, and not too large."""

    def __init__(self, timeout_s: float) -> None:
        self._until_s = time.monotonic() + timeout_s
        self._chunks: list[bytes] = []
        self._bytes = 0

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._bytes += len(chunk)
        if self._bytes > MAX_ANSWER_BYTES:
            raise NoAnswer(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        if time.monotonic() > self._until_s:
            raise NoAnswer("the answer was not complete in time")

    def whole(self) -> bytes:
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)


def _request(client: httpx.Client | httpx.AsyncClient, send: Send) -> httpx.Request:
    call = send.call
    headers = {"X-Request-Id": send.request_id}
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    return client.build_request(call.method, call.path, content=call.body, headers=headers)


@contextmanager
def _as_no_answer(send: Send) -> Generator[None, None, None]:
    """Translates what httpx raises into the client's errors."""
    try:
        yield
    except httpx.RequestError as error:
        what = f"{send.call.method} {send.call.path.partition('?')[0]}"
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if _NO_TLS.search(said):
            said += ": the server speaks no TLS there. Does `base_url` begin with http://?"
        if isinstance(error, _NOT_CONNECTED):
            raise Unreachable(f"{what}: no connection could be made ({said})") from error
        raise NoAnswer(f"{what}: no complete answer arrived ({said})") from error
