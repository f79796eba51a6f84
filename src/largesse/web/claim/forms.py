"""Reading what a form posts."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

_MAX_BYTES = 16 * 1024
_MAX_FIELDS = 40
_LONGEST_S = 15.0


class BadForm(Exception):
    """A body that no form of ours posts, or a post that another site made a browser send."""


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a urlencoded body, the first of each name. Raises BadForm.

    A browser says where a form was sent from (Fetch Metadata); one from another site is refused.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise BadForm
    media_type = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise BadForm
    try:
        async with asyncio.timeout(_LONGEST_S):
            body = await _read_body(request)
    except (TimeoutError, ClientDisconnect):
        raise BadForm from None
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        raise BadForm from None
    return dict(reversed(pairs))


async def _read_body(request: Request) -> bytearray:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise BadForm
    return body
