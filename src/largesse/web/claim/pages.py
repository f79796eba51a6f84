"""The recipient's pages. Reading one changes nothing; every change is a form posted by a person."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from largesse.base.email import EmailError, normalise_email
from largesse.base.i18n import DEFAULT, Language, chosen_language, language_of_country
from largesse.base.patience import Patience
from largesse.base.settings import Settings
from largesse.base.vault import SealBroken, Vault
from largesse.database import DATABASE_AWAY, Database
from largesse.fulfilment import ClaimedGift, ClaimedGifts, NotPossible, Step, StockIssuer, TestIssuer
from largesse.lines.attempts import Attempt, read_typed_code, read_typed_pin
from largesse.lines.claiming import Claim, Claiming, Outcome, Turns
from largesse.lines.lines import Line
from largesse.web.claim import session as sessions
from largesse.web.claim.addresses import address_fields, check_address
from largesse.web.claim.assets import assets
from largesse.web.claim.rendering import HEADERS, Renderer
from largesse.web.kit.client import client_address
from largesse.web.kit.forms import BadForm, read_form

_LANGUAGE_COOKIE = "language"
_YEAR_S = 365 * 24 * 3600

_log = structlog.get_logger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


class Services(Protocol):
    """What the pages need of the running application."""

    @property
    def database(self) -> Database: ...

    @property
    def vault(self) -> Vault: ...

    @property
    def patience(self) -> Patience: ...


def claim_pages(settings: Settings, *, is_demo: bool = False) -> Sequence[BaseRoute]:
    """The routes under `/claim`. In the demo, as in staging, gifts without stock get test vouchers."""
    return _Pages(settings, is_demo=is_demo).routes()


@dataclass(frozen=True, slots=True)
class _Recipients:
    claiming: Claiming
    gifts: ClaimedGifts


class _Pages:
    def __init__(self, settings: Settings, *, is_demo: bool) -> None:
        self._environment = settings.environment
        self._default_expiry_days = settings.default_expiry_days
        self._is_demo = is_demo
        self._base = urlsplit(settings.public_url).path.rstrip("/")
        self._is_secure = settings.public_url.startswith("https://")
        self._renderer = Renderer(self._base, settings.environment)
        self._made: tuple[Services, _Recipients] | None = None

    def routes(self) -> list[BaseRoute]:
        gift = "/claim/gift/{handle:str}"
        return [
            Route("/claim", self._guarded(self._type_code), methods=["GET"]),
            Route("/claim", self._guarded(self._claim_typed), methods=["POST"]),
            Route("/claim/assets/{name:str}", self._asset, methods=["GET"]),
            Route(gift, self._guarded(self._gift), methods=["GET"]),
            Route(f"{gift}/choose", self._guarded(self._choose), methods=["POST"]),
            Route(f"{gift}/address", self._guarded(self._address), methods=["POST"]),
            Route(f"{gift}/email", self._guarded(self._email), methods=["POST"]),
            Route("/claim/{token:str}", self._guarded(self._link), methods=["GET"]),
            Route("/claim/{token:str}", self._guarded(self._claim_link), methods=["POST"]),
            Route("/claim/{token:str}/opened", self._guarded(self._opened), methods=["POST"]),
        ]

    # Entering a code

    async def _type_code(self, request: Request) -> Response:
        return self._page(request, "enter.html")

    async def _claim_typed(self, request: Request) -> Response:
        form = await read_form(request)
        return await self._claim(request, read_typed_code(form.get("code", "")), form)

    # Following a link

    async def _link(self, request: Request) -> Response:
        found = await self._recipients(request).claiming.find(request.path_params["token"])
        if found is None:
            return self._page(request, "unknown.html", status=404)
        line, progress = found
        return self._page(
            request,
            "link.html",
            line=line,
            wrapping=line.wrapping_key,
            sender=line.from_name,
            recipient=line.recipient_name,
            state=progress.state,
        )

    async def _claim_link(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            code = self._services(request).vault.code_of_token(request.path_params["token"])
        except SealBroken:
            code = None
        return await self._claim(request, code, form)

    async def _opened(self, request: Request) -> Response:
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise BadForm
        await self._recipients(request).claiming.open(request.path_params["token"])
        return Response(status_code=204, headers=HEADERS)

    async def _claim(self, request: Request, code: bytes | None, form: Mapping[str, str]) -> Response:
        attempt = Attempt(code, read_typed_pin(form.get("pin", "")), client_address(request.scope) or "")
        claim = await self._recipients(request).claiming.claim(attempt, _chosen_tag(request))
        if claim.outcome is Outcome.REFUSED:
            return self._page(request, "refused.html", status=403)
        if claim.outcome is Outcome.SLOWED:
            return self._slowed(request, claim)
        if claim.outcome is Outcome.WITHDRAWN:
            return self._page(request, "withdrawn.html", status=410)
        return self._begin(request, claim)

    def _slowed(self, request: Request, claim: Claim) -> Response:
        response = self._page(request, "slowed.html", status=429)
        response.headers["Retry-After"] = str(math.ceil(claim.wait_s))
        return response

    def _begin(self, request: Request, claim: Claim) -> Response:
        """Lets the browser in to the claimed gift; whoever comes late is told that it was claimed before."""
        assert claim.line is not None, "code and PIN were right"
        assert claim.at is not None, "code and PIN were right"
        vault = self._services(request).vault
        session = sessions.new_session(vault, self._environment, claim.line, claim.at)
        address = self._gift_address(session.handle)
        response: Response = (
            self._see(f"{address}#open")
            if claim.outcome is Outcome.CLAIMED
            else self._page(request, "again.html", status=409, gift_address=address)
        )
        self._remember(response, session)
        return response

    # A claimed gift

    async def _gift(self, request: Request) -> Response:
        session = await self._session(request)
        gift = None if session is None else await self._recipients(request).gifts.read(session.line)
        if session is None or gift is None:
            return self._page(request, "ended.html", status=403)
        return self._show(request, session, gift)

    async def _choose(self, request: Request) -> Response:
        session, form = await self._posted(request)
        gift = await self._recipients(request).gifts.read(session.line)
        chosen = next((p for p in gift.choices if str(p.id) == form.get("product")), None) if gift else None
        if gift is None or chosen is None:
            return self._see(self._gift_address(session.handle))
        if form.get("sure") != "yes":
            return self._show(request, session, gift, template="confirm.html", chosen=chosen)
        await self._recipients(request).gifts.choose(session.line, chosen.id, _chosen_tag(request))
        return self._see(f"{self._gift_address(session.handle)}#open")

    async def _address(self, request: Request) -> Response:
        session, form = await self._posted(request)
        gift = await self._recipients(request).gifts.read(session.line)
        if gift is None or gift.step is not Step.ADDRESS:
            return self._see(self._gift_address(session.handle))
        checked = check_address(gift.line.country, form)
        errors = dict(checked.errors)
        email = None if gift.has_email else self._typed_email(form, errors, is_required=False)
        if errors:
            typed = {**checked.address, "email": form.get("email", "")}
            return self._show(request, session, gift, status=422, typed=typed, errors=errors)
        await self._recipients(request).gifts.deliver_to(
            session.line, checked.address, email, _chosen_tag(request)
        )
        return self._see(self._gift_address(session.handle))

    async def _email(self, request: Request) -> Response:
        session, form = await self._posted(request)
        errors: dict[str, str] = {}
        email = self._typed_email(form, errors, is_required=True)
        if email is None:
            gift = await self._recipients(request).gifts.read(session.line)
            if gift is None:
                return self._see(self._gift_address(session.handle))
            typed = {"email": form.get("email", "")}
            return self._show(request, session, gift, status=422, typed=typed, errors=errors)
        await self._recipients(request).gifts.tell(session.line, email, _chosen_tag(request))
        return self._see(self._gift_address(session.handle))

    def _show(
        self,
        request: Request,
        session: sessions.Session,
        gift: ClaimedGift,
        *,
        template: str = "gift.html",
        status: int = 200,
        typed: Mapping[str, str] | None = None,
        errors: Mapping[str, str] | None = None,
        **values: Any,
    ) -> Response:
        is_form = gift.step is Step.ADDRESS
        return self._page(
            request,
            template,
            status=status,
            wrapping=gift.line.wrapping_key,
            sender=gift.line.from_name,
            gift=gift,
            line=gift.line,
            step=gift.step.name.lower(),
            gift_address=self._gift_address(session.handle),
            form_key=session.form_key(self._services(request).vault),
            fields=address_fields(gift.line.country) if is_form else [],
            typed=typed if typed is not None else {"name": gift.line.recipient_name or ""},
            errors=errors or {},
            **values,
        )

    def _typed_email(
        self, form: Mapping[str, str], errors: dict[str, str], *, is_required: bool
    ) -> str | None:
        """The normal form of the address typed; None when there is none. What is wrong goes into `errors`."""
        text = form.get("email", "").strip()
        if not text:
            if is_required:
                errors["email"] = "required"
            return None
        try:
            return normalise_email(text)
        except EmailError:
            errors["email"] = "invalid"
            return None

    # Plumbing

    async def _asset(self, request: Request) -> Response:
        asset = assets().get(request.path_params["name"])
        if asset is None:
            return Response(status_code=404, headers=HEADERS)
        headers = {
            "Cache-Control": f"public, max-age={_YEAR_S}, immutable",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return Response(asset.body, media_type=asset.media_type, headers=headers)

    async def _session(self, request: Request) -> sessions.Session | None:
        cookie = request.cookies.get(sessions.COOKIE, "")
        if not cookie:
            return None
        now = await self._recipients(request).gifts.now()
        vault = self._services(request).vault
        return sessions.read_session(vault, self._environment, cookie, request.path_params["handle"], now)

    async def _posted(self, request: Request) -> tuple[sessions.Session, dict[str, str]]:
        """The session and form of a post. Raises BadForm for one that none of the session's pages sent."""
        form = await read_form(request)
        session = await self._session(request)
        if session is None or form.get("key") != session.form_key(self._services(request).vault):
            raise BadForm
        return session, form

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        """`endpoint` with its failures shown as pages. Addresses are not logged: they hold claim tokens."""
        name = endpoint.__name__.strip("_")

        async def guarded(request: Request) -> Response:
            try:
                with self._services(request).patience.wait():
                    return await endpoint(request)
            except BadForm:
                return self._page(request, "ended.html", status=403)
            except NotPossible:
                return self._see(self._gift_address(request.path_params["handle"]))
            except DATABASE_AWAY as error:
                _log.warning("database_away", page=name, error=type(error).__name__)
                response = self._page(request, "trouble.html", status=503)
                response.headers["Retry-After"] = "5"
                return response
            except Exception:  # noqa: BLE001 - logged, and shown as a page
                _log.exception("claim_page_failed", page=name)
                return self._page(request, "trouble.html", status=500)

        return guarded

    def _page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        line: Line | None = values.get("line")
        language = _chosen(request) or (language_of_country(line.country) if line else DEFAULT)
        html = self._renderer.render(template, language, values)
        response = Response(html, status_code=status, media_type="text/html", headers=HEADERS)
        response.headers["Content-Language"] = language.tag
        response.headers["Vary"] = "Accept-Language, Cookie"
        if request.query_params.get("lang") == language.tag:
            response.set_cookie(
                _LANGUAGE_COOKIE,
                language.tag,
                max_age=_YEAR_S,
                path=f"{self._base}/claim",
                secure=self._is_secure,
                httponly=True,
                samesite="lax",
            )
        return response

    def _see(self, address: str) -> Response:
        return RedirectResponse(address, status_code=303, headers=HEADERS)

    def _remember(self, response: Response, session: sessions.Session) -> None:
        response.set_cookie(
            sessions.COOKIE,
            session.cookie,
            max_age=int(sessions.LASTS.total_seconds()),
            path=self._gift_address(session.handle),
            secure=self._is_secure,
            httponly=True,
            samesite="strict",
        )

    def _gift_address(self, handle: str) -> str:
        return f"{self._base}/claim/gift/{handle}"

    def _services(self, request: Request) -> Services:
        services: Services = request.app.services
        return services

    def _recipients(self, request: Request) -> _Recipients:
        """What recipients do, on the running application's services; made once."""
        services = self._services(request)
        if self._made is None or self._made[0] is not services:
            stock = StockIssuer()
            issuer: StockIssuer | TestIssuer = stock
            if self._environment == "staging":
                issuer = TestIssuer(services.vault)
            elif self._is_demo:
                issuer = TestIssuer(services.vault, stock)
            turns = Turns()
            gifts = ClaimedGifts(services.database, services.vault, self._environment, issuer, turns)
            claiming = Claiming(
                services.database,
                services.vault,
                self._environment,
                gifts,
                default_expiry_days=self._default_expiry_days,
                turns=turns,
            )
            self._made = (services, _Recipients(claiming, gifts))
        return self._made[1]


def _chosen(request: Request) -> Language | None:
    return chosen_language(
        request.query_params.get("lang"),
        request.cookies.get(_LANGUAGE_COOKIE),
        request.headers.get("accept-language", ""),
    )


def _chosen_tag(request: Request) -> str | None:
    chosen = _chosen(request)
    return chosen.tag if chosen else None
