"""Before a gift is claimed: entering a code, following a link, and the claim itself."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from largesse.base.errors import TooManyRequests
from largesse.base.vault import SealBroken
from largesse.lines.attempts import Attempt, read_typed_code, read_typed_pin
from largesse.lines.claiming import Claim, Outcome
from largesse.web.claim.frame import Frame
from largesse.web.claim.language import chosen_tag
from largesse.web.claim.rendering import HEADERS
from largesse.web.claim.session import new_session
from largesse.web.kit.client import client_address
from largesse.web.kit.forms import read_form, require_own_site
from largesse.web.kit.services import Services


class Entering:
    """The pages that lead to a claimed gift."""

    def __init__(self, services: Services, frame: Frame) -> None:
        self._services = services
        self._frame = frame

    async def type_code(self, request: Request) -> Response:
        """The form for a code and its PIN."""
        return self._frame.page(request, "enter.html")

    async def claim_typed(self, request: Request) -> Response:
        """Claims by a code that was typed in."""
        form = await read_form(request)
        return await self._claim(request, read_typed_code(form.get("code", "")), None, form)

    async def link(self, request: Request) -> Response:
        """What a claim link leads to: the gift in its wrapping, and the form for its PIN. Raises NotFound."""
        line, progress = await self._services.claiming.find(request.path_params["token"])
        return self._frame.page(
            request,
            "link.html",
            line=line,
            wrapping=line.wrapping_key,
            sender=line.from_name,
            recipient=line.recipient_name,
            state=progress.state,
        )

    async def claim_link(self, request: Request) -> Response:
        """Claims by the code that a link stands for."""
        form = await read_form(request)
        try:
            code, customer_id = self._services.vault.code_of_token(request.path_params["token"])
        except SealBroken:
            return await self._claim(request, None, None, form)
        return await self._claim(request, code, customer_id, form)

    async def opened(self, request: Request) -> Response:
        """Notes that a person did something on the page of a link."""
        require_own_site(request)
        await self._services.claiming.open(request.path_params["token"])
        return Response(status_code=204, headers=HEADERS)

    async def _claim(
        self, request: Request, code: bytes | None, customer_id: int | None, form: Mapping[str, str]
    ) -> Response:
        host = client_address(request.scope) or ""
        attempt = Attempt(code, read_typed_pin(form.get("pin", "")), host, customer_id)
        claim = await self._services.claiming.claim(attempt, chosen_tag(request))
        if claim.outcome is Outcome.REFUSED:
            return self._frame.page(request, "refused.html", status=403)
        if claim.outcome is Outcome.SLOWED:
            raise TooManyRequests(
                "Too many wrong codes and PINs came from there.", retry_after_s=claim.wait_s
            )
        if claim.outcome is Outcome.WITHDRAWN:
            return self._frame.page(request, "withdrawn.html", status=410)
        return self._begin(request, claim)

    def _begin(self, request: Request, claim: Claim) -> Response:
        """Lets the browser in to the claimed gift; whoever comes late is told that it was claimed before."""
        assert claim.line is not None, "code and PIN were right"
        assert claim.at is not None, "code and PIN were right"
        environment = self._services.settings.environment
        session = new_session(self._services.vault, environment, claim.line, claim.at)
        if claim.outcome is Outcome.CLAIMED:
            response = self._frame.see_gift(session.handle, "#open")
        else:
            address = self._frame.gift_address(session.handle)
            response = self._frame.page(request, "again.html", status=409, gift_address=address)
        self._frame.remember(response, session)
        return response
