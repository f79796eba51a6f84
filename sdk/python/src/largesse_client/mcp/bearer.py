"""Requires the token for each HTTP request."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class RequireToken:
    """An application that answers 401 to every request without `Authorization: Bearer` and the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers 401 without the token, otherwise calls the application."""
        if scope["type"] == "http":
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            token = given.strip().encode("latin-1", "replace")
            if not (scheme.lower() == "bearer" and hmac.compare_digest(token, self._expected)):
                refusal = PlainTextResponse(
                    "A token is needed: Authorization: Bearer …\n",
                    status_code=401,
                    headers={"WWW-Authenticate": 'Bearer realm="largesse-mcp"'},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
