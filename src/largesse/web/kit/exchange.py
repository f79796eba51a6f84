"""What a connection of ours offers beside ASGI's messages: a body that has come whole, and an answer that leaves whole.

Most requests come in one piece and are answered in one. Those need no coroutine that waits for messages, no time-out, and no second
look at headers that we have written ourselves. It is an extension of the scope, as ASGI calls it: who does not know it uses `receive` and
`send` as ever, and so does whoever finds none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from largesse.web.kit.asgi import Scope

NAME = "largesse.exchange"


class Exchange(TypedDict):
    """A request that is whole, and how to answer it at once."""

    body: bytearray
    # Writes status, lines of headers and body, unless the connection can take no whole answer now: then False, and nothing was written.
    answer: Callable[[int, bytes, bytes], bool]


def exchange_of(scope: Scope) -> Exchange | None:
    """The exchange of a request; None where its body has still to come, or the server is another."""
    extensions = scope.get("extensions")
    exchange: Exchange | None = extensions.get(NAME) if extensions else None
    return exchange
