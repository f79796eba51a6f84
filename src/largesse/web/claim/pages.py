"""The routes of claim pages, and previews of them for senders. A GET changes nothing; every change is a posted form."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse.base.i18n.languages import Language
from largesse.base.settings import Settings
from largesse.branding.model import Brand
from largesse.catalogue.model import Details, Product
from largesse.fulfilment.gifts import NotPossible
from largesse.web.claim.campaign import HERE as CAMPAIGNS
from largesse.web.claim.campaign import CampaignPages
from largesse.web.claim.gift import GiftPages, PinEntry
from largesse.web.claim.rendering import Layout, Renderer
from largesse.web.kit.assets import Assets
from largesse.web.kit.forms import BadForm
from largesse.web.kit.page_services import PageServices
from largesse.web.kit.pages import Endpoint, guarded, public_path


class Previews:
    """Renders claim pages of gifts that are not sent yet."""

    def __init__(self, settings: Settings) -> None:
        self._base = public_path(settings.public_url)
        self._assets = Assets(Path(__file__).parent / "assets", "/claim/assets")

    def link(
        self,
        language: Language,
        *,
        environment: str,
        sender: str | None,
        brand: Brand,
        wrapping: str | None = None,
        recipient: str | None = None,
        until: date | None = None,
    ) -> str:
        """Returns the page of a claim link. Its form and links do nothing."""
        values = {
            "wrapping": wrapping,
            "sender": sender,
            "recipient": recipient,
            "state": "issued",
            "until": until,
            "brand": brand,
            "is_preview": True,
        }
        return Renderer(self._base, environment, self._assets).render("link.html", language, values)

    def choice(
        self,
        language: Language,
        *,
        environment: str,
        value_minor: int,
        currency: str,
        choices: Sequence[Product],
        details: Mapping[int, Details],
        brand: Brand,
    ) -> str:
        """Returns the page on which the recipient chooses from a collection. Its forms and links do nothing."""
        values = {
            "line": {"value_minor": value_minor, "currency": currency, "message": None},
            "gift": {"product": None, "choices": choices, "details": details, "note": None, "may_thank": False},
            "step": "choose",
            "expires_on": None,
            "errors": {},
            "sender": None,
            "gift_address": "",
            "form_key": "",
            "brand": brand,
            "is_preview": True,
        }
        return Renderer(self._base, environment, self._assets).render("gift.html", language, values)


_GIFT = "/claim/gift/{handle:str}"
_CAMPAIGN = f"{CAMPAIGNS}/{{campaign:str}}"


def claim_pages(services: PageServices) -> Sequence[BaseRoute]:
    """Returns the routes under `/claim`, for the gifts of the process's environment."""
    layout = Layout(services)
    entering, gift = PinEntry(services, layout), GiftPages(services, layout)
    campaign = CampaignPages(services, layout)

    def see_gift(request: Request) -> Response:
        return layout.see_gift(request.path_params["handle"])

    # A form for a step that is over shows the gift.
    expected = {BadForm: layout.ended, NotPossible: see_gift}

    def route(method: str, path: str, endpoint: Endpoint) -> Route:
        shown = guarded(endpoint, services.timeouts, layout.wrong, expected, name=path)
        return Route(path, shown, methods=[method])

    return [
        route("GET", "/claim", entering.type_code),
        route("GET", "/claim/", layout.see_entrance),  # people type it like this from a card
        route("POST", "/claim", entering.claim_typed),
        *layout.assets.routes(),
        route("GET", _GIFT, gift.show),
        route("GET", f"{_GIFT}/choose", gift.ask),
        route("POST", f"{_GIFT}/choose", gift.choose),
        route("POST", f"{_GIFT}/address", gift.address),
        route("POST", f"{_GIFT}/email", gift.email),
        route("POST", f"{_GIFT}/thank", gift.thank),
        *(route("GET", f"{_GIFT}/{form}", gift.show_again) for form in ("address", "email", "thank")),
        route("GET", _CAMPAIGN, campaign.show),
        route("POST", _CAMPAIGN, campaign.ask),
        route("GET", f"{_CAMPAIGN}/code", campaign.type_code),
        route("POST", f"{_CAMPAIGN}/code", campaign.take),
        route("GET", "/claim/{token:str}", entering.link),
        route("POST", "/claim/{token:str}", entering.claim_link),
        route("POST", "/claim/{token:str}/opened", entering.opened),
        route("GET", "/claim/{token:str}/reminders", entering.reminders),
        route("POST", "/claim/{token:str}/reminders", entering.end_reminders),
        route("GET", "/claim/{rest:path}", entering.lost),  # a page for people, not JSON
    ]
