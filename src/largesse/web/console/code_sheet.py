"""The sheet of codes to print: each with its PIN, its link, and a QR code that opens it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from starlette.responses import Response

from largesse.base.cooperative import Steps, finish_soon
from largesse.branding.model import Brand
from largesse.lines.codes import IssuedCode
from largesse.web.console.context import RequestContext
from largesse.web.kit.pages import qr_code

MOST_QR_CODES = 100  # a longer sheet has none: it would have megabytes


async def code_sheet(context: RequestContext, codes: Sequence[IssuedCode], brand: Brand) -> Response:
    """Returns a page that prints codes. Draws the QR codes in steps, so that other requests do not wait for them."""
    drawn = await finish_soon(_drawn(codes)) if len(codes) <= MOST_QR_CODES else [Markup()] * len(codes)
    return context.page(
        "send/codes.html", brand=brand, slips=list(zip(codes, drawn, strict=True)), most_qr_codes=MOST_QR_CODES
    )


def _drawn(codes: Sequence[IssuedCode]) -> Steps[list[Markup]]:
    drawn = []
    for one in codes:
        # The PIN is in the fragment, which browsers do not send to servers.
        drawn.append(qr_code(f"{one.redemption_url}#pin={one.pin}", mask=3))
        yield
    return drawn
