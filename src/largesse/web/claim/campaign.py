"""The pages of a campaign's link: what the campaign gives, the mailed code, and the gift. A GET changes nothing."""

import re
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from largesse.base.email import EmailError, pasted_email
from largesse.base.text import trimmed
from largesse.base.zones import last_whole_day, zones_of
from largesse.campaigns.model import CODE_LASTS, State
from largesse.campaigns.visiting import Outcome, Seen, Visit
from largesse.web.claim.rendering import HEADERS, Layout, chosen_tag
from largesse.web.kit.asgi import client_address
from largesse.web.kit.forms import read_form
from largesse.web.kit.page_services import PageServices
from largesse.web.kit.pages import see
from largesse.web.kit.sessions import give_cookie, open_cookie, read_cookie, seal_cookie

HERE = "/claim/campaign"
_COOKIE = "campaign"  # holds the e-mail address of a visitor who requested a code
_CODE = re.compile(r"\d{6}", re.ASCII)
_BLANKS = re.compile(r"[\s-]+")


class CampaignPages:
    """The pages of visitors of campaigns."""

    def __init__(self, services: PageServices, layout: Layout) -> None:
        self._services = services
        self._layout = layout

    async def show(self, request: Request) -> Response:
        """Shows what the campaign gives and the form for an e-mail address, or why it gives nothing now. Raises NotFound."""
        seen = await self._services.visiting.see(request.path_params["campaign"])
        return await self._show(request, seen, typed=await self._remembered_email(request))

    async def ask(self, request: Request) -> Response:
        """Mails a code to the typed address, if it may take part. The answer is the same for any address. Raises NotFound and TooManyRequests."""
        token, form = request.path_params["campaign"], await read_form(request)
        typed = trimmed(form.get("email", ""))
        try:
            email = pasted_email(typed)
        except EmailError:
            seen = await self._services.visiting.see(token)
            error = "invalid" if typed else "required"
            return await self._show(request, seen, status=422, typed=typed, error=error)
        host = client_address(request.scope) or ""
        seen = await self._services.visiting.ask(token, email, host, chosen_tag(request) or "")
        if seen.state is not State.OPEN:
            return await self._show(request, seen, status=409)
        response = see(f"{self._address(token)}/code", HEADERS)
        await self._remember(response, token, email)
        return response

    async def type_code(self, request: Request) -> Response:
        """Shows the form for the mailed code. Redirects to the campaign if the browser has requested no code. Raises NotFound."""
        token = request.path_params["campaign"]
        email = await self._remembered_email(request)
        if not email:
            return see(self._address(token), HEADERS)
        seen = await self._services.visiting.see(token)
        if seen.state is not State.OPEN:
            return await self._show(request, seen)
        return await self._show(request, seen, template="campaign_code.html", email=email)

    async def take(self, request: Request) -> Response:
        """Answers the right code with the gift and the form that opens it. Raises NotFound and TooManyRequests.

        By the time a code has expired, the browser has lost the cookie with the address. The campaign's first page then says so.
        """
        token, form = request.path_params["campaign"], await read_form(request)
        email = await self._remembered_email(request)
        if not email:
            return await self._show(request, await self._services.visiting.see(token), status=403, error="late")
        code = _BLANKS.sub("", form.get("code", ""))
        if not _CODE.fullmatch(code):
            seen = await self._services.visiting.see(token)
            return await self._show(
                request, seen, status=422, template="campaign_code.html", email=email, error="digits"
            )
        visit = await self._services.visiting.take(token, email, code, client_address(request.scope) or "")
        return await self._taken(request, token, email, visit)

    async def _taken(self, request: Request, token: str, email: str, visit: Visit) -> Response:
        seen = await self._services.visiting.see(token)
        match visit.outcome:
            case Outcome.REFUSED:
                values = {"template": "campaign_code.html", "email": email, "error": "wrong"}
                return await self._show(request, seen, status=403, **values)
            case Outcome.NOT_OPEN:
                return await self._show(request, seen, status=409)
            case Outcome.WITHDRAWN:
                return await self._show(request, seen, status=410, template="withdrawn.html", lapsed=False)
        return await self._show(
            request,
            seen,
            template="campaign_gift.html",
            email=email,
            had=visit.outcome is Outcome.HAD,
            gift_address=urlsplit(visit.link).path,
            pin=visit.pin,
        )

    async def _show(
        self, request: Request, seen: Seen, *, status: int = 200, template: str = "campaign.html", **values: Any
    ) -> Response:
        order, campaign = seen.order, seen.campaign
        assert order is not None, "a campaign is seen with its order"
        country = order["country"]
        return await self._layout.page_for(
            request,
            template,
            campaign.customer_id,
            status=status,
            country=country,
            wrapping=order["wrapping_key"],
            sender=order["from_name"],
            campaign=campaign,
            state=seen.state.value,
            address=self._address(campaign.token),
            opens=max(campaign.opens_at.astimezone(zone).date() for zone in zones_of(country)),
            until=last_whole_day(campaign.closes_at, country) if seen.days_left else None,
            minutes=CODE_LASTS.seconds // 60,
            **{"error": "", "typed": "", **values},
        )

    def _address(self, token: str) -> str:
        return f"{self._layout.base}{HERE}/{token}"

    def _purpose(self, token: str) -> str:
        return f"campaign/{self._services.settings.environment}/{token}"

    async def _remember(self, response: Response, token: str, email: str) -> None:
        """Stores the e-mail address in a cookie for the pages of this campaign, as long as the code is valid."""
        ends_at = await self._services.gifts.now() + CODE_LASTS
        give_cookie(
            response,
            _COOKIE,
            seal_cookie(self._services.vault, self._purpose(token), email.encode(), ends_at),
            lasts_s=CODE_LASTS.seconds,
            path=self._address(token),
            is_secure=self._layout.is_secure,
            same_site="strict",
        )

    async def _remembered_email(self, request: Request) -> str:
        """Returns the e-mail address for which the browser requested a code; empty without one."""
        cookie, token = read_cookie(request, _COOKIE), request.path_params["campaign"]
        if not cookie or not token.isascii():
            return ""
        about = open_cookie(self._services.vault, self._purpose(token), cookie, await self._services.gifts.now())
        return "" if about is None else about.decode()
