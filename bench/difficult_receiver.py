"""`python -m bench.difficult_receiver PORT`: a webhook receiver whose path says how it behaves.

`/well/…` always answers 200. `/hang/…` never answers, `/drip/…` sends a byte a second, `/error/…` answers 500, and
`/reset/…` breaks the connection off; after `GET /healed` they answer 200 too, until `GET /ill`.
"""

import asyncio
import sys
from collections.abc import Iterator
from typing import cast

import httptools
import uvloop

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\nno"
_healed = False


class DifficultReceiver(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._kind = url.split(b"/")[1]

    def on_message_complete(self) -> None:
        global _healed  # noqa: PLW0603 - of the process, which is a receiver and nothing else
        if self._kind in {b"healed", b"ill"}:
            _healed = self._kind == b"healed"
        if self._kind == b"hang" and not _healed:
            return
        if self._kind == b"drip" and not _healed:
            self._drip(iter(_OK))
        elif self._kind == b"error" and not _healed:
            self._transport.write(_ERROR)
        elif self._kind == b"reset" and not _healed:
            self._transport.abort()
        else:
            self._transport.write(_OK)

    def _drip(self, left: Iterator[int]) -> None:
        byte = next(left, None)
        if byte is not None and not self._transport.is_closing():
            self._transport.write(bytes([byte]))
            asyncio.get_running_loop().call_later(1, self._drip, left)


async def main() -> None:
    """Serves until it is killed."""
    server = await asyncio.get_running_loop().create_server(
        DifficultReceiver, "127.0.0.1", int(sys.argv[1]), backlog=1024
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
