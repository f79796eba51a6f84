"""Pages of a gift that is not there yet: as its recipient will see them, for who puts it together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from largesse.base.i18n.languages import Language
from largesse.base.settings import Settings
from largesse.catalogue.details import Details
from largesse.catalogue.products import Product
from largesse.web.claim.rendering import Renderer
from largesse.web.kit.assets import Assets
from largesse.web.kit.pages import public_path


class Previews:
    """Shows the pages of one installation."""

    def __init__(self, settings: Settings) -> None:
        self._base = public_path(settings.public_url)
        self._assets = Assets(Path(__file__).parent / "assets", "/claim/assets")

    def link(
        self,
        language: Language,
        *,
        environment: str,
        wrapping: str | None,
        sender: str | None,
        recipient: str | None,
    ) -> str:
        """The page that the link leads to; what is on it leads nowhere."""
        said = {"wrapping": wrapping, "sender": sender, "recipient": recipient}
        values = {**said, "state": "issued", "is_preview": True}
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
    ) -> str:
        """The page that asks who opened a collection which of its products it is to be; what is on it leads nowhere."""
        values = {
            "line": {"value_minor": value_minor, "currency": currency, "message": None},
            "gift": {
                "product": None,
                "choices": choices,
                "details": details,
                "progress": {"expires_at": None},
            },
            "step": "choose",
            "sender": None,
            "gift_address": "",
            "form_key": "",
            "is_preview": True,
        }
        return Renderer(self._base, environment, self._assets).render("gift.html", language, values)
