"""Serves the product for a benchmark: `python -m bench.server PORT [MAX_ORDERS]`.

The application, uvicorn and their options are those of `largesse serve`; two things are added. MAX_ORDERS bounds the
orders of one transaction: 1 shows what one commit an order costs through the same code. And beside the product's paths
`/fixed/SIZE` answers SIZE bytes that never change, with the least work this server can do.
"""

import sys

import uvicorn

from largesse.base.logs import configure_logs
from largesse.base.settings import load_settings
from largesse.main import build_app
from largesse.orders.placer import MAX_ORDERS
from largesse.serving import server_options
from largesse.web.kit.asgi import Message, Receive, Scope, Send


class WithFixedBytes:
    """The product's application, and `/fixed/SIZE` before anything of it runs."""

    def __init__(self, max_orders: int) -> None:
        self._application = build_app(load_settings(), max_orders=max_orders)
        self._answers: dict[str, tuple[Message, Message]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/fixed/"):
            start, body = self._answer(scope["path"])
            await send(start)
            await send(body)
        else:
            await self._application(scope, receive, send)

    def _answer(self, path: str) -> tuple[Message, Message]:
        if path not in self._answers:
            body = b"x" * int(path.removeprefix("/fixed/"))
            headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")]
            self._answers[path] = (
                {"type": "http.response.start", "status": 200, "headers": headers},
                {"type": "http.response.body", "body": body},
            )
        return self._answers[path]


def main() -> None:
    """Serves until told to stop."""
    port, max_orders = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else MAX_ORDERS
    configure_logs("json")
    uvicorn.run(WithFixedBytes(max_orders), **server_options("127.0.0.1", port))


if __name__ == "__main__":
    main()
