"""The routes of the recipient's pages. Reading one changes nothing; every change is a form posted by a person."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from largesse.fulfilment.gifts import NotPossible
from largesse.web.claim.entering import Entering
from largesse.web.claim.frame import Frame
from largesse.web.claim.gift import GiftPages
from largesse.web.kit.forms import BadForm
from largesse.web.kit.pages import Endpoint, guarded
from largesse.web.kit.services import Services

_GIFT = "/claim/gift/{handle:str}"


def claim_pages(services: Services) -> Sequence[BaseRoute]:
    """The routes under `/claim`, for the gifts of the process's environment."""
    frame = Frame(services.settings)
    entering, gift = Entering(services, frame), GiftPages(services, frame)

    def see_gift(request: Request) -> Response:
        return frame.see_gift(request.path_params["handle"])

    # Who does what a gift is past is shown how it stands.
    expected = {BadForm: frame.ended, NotPossible: see_gift}

    def route(method: str, path: str, endpoint: Endpoint) -> Route:
        shown = guarded(endpoint, services.patience, frame.wrong, expected, name=path)
        return Route(path, shown, methods=[method])

    return [
        route("GET", "/claim", entering.type_code),
        route("POST", "/claim", entering.claim_typed),
        *frame.assets.routes(),
        route("GET", _GIFT, gift.show),
        route("POST", f"{_GIFT}/choose", gift.choose),
        route("POST", f"{_GIFT}/address", gift.address),
        route("POST", f"{_GIFT}/email", gift.email),
        route("GET", "/claim/{token:str}", entering.link),
        route("POST", "/claim/{token:str}", entering.claim_link),
        route("POST", "/claim/{token:str}/opened", entering.opened),
    ]
