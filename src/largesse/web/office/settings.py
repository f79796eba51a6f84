"""The settings of the installation, read only. Of secrets, the page only shows whether they are set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.responses import Response

from largesse.base.settings import secret_names, setting_names
from largesse.web.office.context import OfficeContext

# The member of `Settings` for each variable of a different name.
_NAMED: Mapping[str, str] = {
    "LARGESSE_DOCUMENTATION_URL": "docs_url",
    "LARGESSE_MASTER_KEY": "master_keys",
    "LARGESSE_STAGING_PUBLIC_URL": "other_public_url",
    "LARGESSE_WEBHOOK_TIMEOUT": "webhook_timeout_s",
}


async def show(context: OfficeContext) -> Response:
    """Shows each setting with its value."""
    settings = context.services.settings
    shown = [(name, _value(context, name, getattr(settings, member))) for name, member in sorted(names().items())]
    return context.page("settings.html", settings=shown)


def names() -> dict[str, str]:
    """Returns the member of `Settings` for each variable."""
    return {name: _NAMED.get(name, name.removeprefix("LARGESSE_").lower()) for name in setting_names()}


def _value(context: OfficeContext, name: str, value: Any) -> str:
    if name in secret_names():
        return context.say("Set") if value else context.say("Not set")
    if isinstance(value, tuple):
        return ", ".join(str(one) for one in value) or "\N{EN DASH}"
    if value is None or value == "":
        return "\N{EN DASH}"
    return str(value) if isinstance(value, str | Path) else context.language.number(value)
