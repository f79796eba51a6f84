"""A TCP proxy before a database server, on which connections break, or fall silent, where a test wants them to."""

import asyncio
import contextlib
from typing import Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit

# Where a connection that commits is broken: before the server hears of it, once the server has done it, or in between:
# the server hears of it, and the client does not wait. Or it falls silent: neither side hears of anything any more.
AtCommit = Literal["before", "after", "during", "swallowed"]
_CHUNK_BYTES = 65536
_READY_AND_IDLE = b"Z\x00\x00\x00\x05I"  # ReadyForQuery outside a transaction: the COMMIT is done, or refused


class Proxy:
    """Passes connections on to a database server, until told otherwise."""

    def __init__(self, target_url: str) -> None:
        self.target_url = target_url
        self._parts = urlsplit(target_url)
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._swallows_new = False
        self.last_heard: bytes | None = None  # whoever says this is heard to the end of it, and then no more
        self.at_commit: AtCommit | None = (
            None  # what becomes of the next connection that commits what it begins from now on
        )
        self.broken = asyncio.Event()  # that has happened
        self.port = 0

    @property
    def url(self) -> str:
        """The database's address through the proxy."""
        parts = self._parts
        user = f"{quote(unquote(parts.username or ''))}"
        password = f":{parts.password}" if parts.password else ""
        return f"postgresql://{user}{password}@127.0.0.1:{self.port}{parts.path}?sslmode=disable"

    async def restore(self) -> None:
        """Takes connections, and passes on all that they say."""
        self._swallows_new = False
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Refuses new connections and breaks those there are, wherever they stand."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for link in list(self._links):
            link.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.sleep(0)  # the transports take note

    def swallow(self, *, new: bool = False) -> None:
        """Nothing that is said on the connections there are arrives any more, nor that one of them ends.

        For ever: `restore` only ends what `new` begins, that connections made from now on are silent from the start.
        """
        self._swallows_new = new
        for link in self._links:
            link.is_silent = True

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        link = _Link(self, writer, is_silent=self._swallows_new)
        self._links.add(link)
        try:
            if link.is_silent:
                await link.pass_requests(reader)
                return
            their_reader, link.server = await self._dial()
            await asyncio.gather(link.pass_requests(reader), link.pass_answers(their_reader))
        except OSError:  # the server is away
            link.abort()
        finally:
            if link.is_silent:
                link.abort()
            self._links.discard(link)
            self._tasks.discard(task)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        query = parse_qs(self._parts.query)
        host = query.get("host", [self._parts.hostname or "127.0.0.1"])[0]
        port = int(query.get("port", [self._parts.port or 5432])[0])
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)


class _Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: asyncio.StreamWriter, *, is_silent: bool) -> None:
        self._proxy = proxy
        self._client = client
        self._is_answerless = False
        self._began_since = False  # since what becomes of a COMMIT was said
        self.server: asyncio.StreamWriter | None = None
        self.is_silent = is_silent

    def abort(self) -> None:
        """Breaks both ends."""
        self._client.transport.abort()
        if self.server is not None:
            self.server.transport.abort()

    async def pass_requests(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                if self.is_silent or self.server is None:
                    continue
                # Transactions that were begun before are not those that the test is about.
                if b"BEGIN" in data:
                    self._began_since = self._proxy.at_commit is not None
                if self._proxy.at_commit is not None and self._began_since and b"COMMIT" in data:
                    data = self._break_at_commit(data, self._proxy.at_commit)
                    self._proxy.at_commit = None
                    self._proxy.broken.set()
                if self._proxy.last_heard is not None and self._proxy.last_heard in data:
                    self.is_silent = True
                self.server.write(data)
                await self.server.drain()
        if self.server is not None and not self.is_silent:
            self.server.close()

    def _break_at_commit(self, data: bytes, at_commit: AtCommit) -> bytes:
        """Breaks the connection as told; returns what the server still hears."""
        if at_commit == "after":
            self._is_answerless = True
            return data
        if at_commit == "swallowed":
            self.is_silent = True
            return b""
        self._client.transport.abort()
        if at_commit == "before":
            return b""
        self.is_silent = True  # the server is not to learn that its client has gone
        return data

    async def pass_answers(self, reader: asyncio.StreamReader) -> None:
        kept = b""
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                if self._is_answerless:
                    # The statement before the COMMIT may be answered first.
                    kept = kept[1 - len(_READY_AND_IDLE) :] + data
                    if _READY_AND_IDLE in kept:
                        self._client.transport.abort()
                        break
                    continue
                if self.is_silent:
                    continue
                self._client.write(data)
                await self._client.drain()
        if not self.is_silent:
            self._client.close()
