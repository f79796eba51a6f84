"""Reading what a form of ours posts."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from largesse.base.errors import Problem
from largesse.web.kit.body import BodyLimits, receive_body

FORM_LIMITS = BodyLimits(most_bytes=16 * 1024, whole_s=15.0, pause_s=15.0)
_MAX_FIELDS = 40


class BadForm(Exception):
    """A body that no form of ours posts, or a post that another site made a browser send."""


def require_own_site(request: Request) -> None:
    """Raises BadForm for what a page of another site made a browser send: browsers tell (Fetch Metadata)."""
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise BadForm


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a urlencoded body, the first of each name. Raises BadForm, for one from another site too."""
    return dict(reversed(await read_fields(request)))


async def read_fields(
    request: Request, limits: BodyLimits = FORM_LIMITS, *, most_fields: int = _MAX_FIELDS
) -> list[tuple[str, str]]:
    """The same, each field in its place, also those of one name. Raises BadForm."""
    require_own_site(request)
    media_type = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise BadForm
    try:
        body = await receive_body(request.receive, limits)
    except Problem:
        raise BadForm from None
    try:
        return parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="replace", max_num_fields=most_fields
        )
    except ValueError:
        raise BadForm from None
