"""The settings of the server, which are environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

# Each setting with its description in `largesse-mcp --help`.
SETTINGS = {
    "LARGESSE_URL": "the service's address",
    "LARGESSE_API_KEY": "the API key that orders are placed with",
    "LARGESSE_MCP_MOST_PER_ORDER": "what one order may cost, such as `250 GBP, 300 EUR`; unset: no limit",
    "LARGESSE_MCP_MOST_PER_DAY": "what all orders of a day (UTC) may cost together; unset: no limit",
    "LARGESSE_MCP_SHOW_PINS": "`yes`: answers contain the PINs of a code batch",
    "LARGESSE_MCP_TOKEN": "the bearer token that callers over HTTP must send, at least 24 characters",
    "LARGESSE_MCP_STATE_DIR": "the folder that stores the sums of the day, by default ~/.local/state/largesse-mcp",
}
_OWN = "LARGESSE_MCP_"  # the prefix of our settings: an unknown name with it is a mistake
_LEAST_TOKEN = 24
_AMOUNT = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,3})?)(?: +([A-Za-z]{3}))?")
# As in `1,250 GBP` and `100,50 EUR`: such a comma may separate thousands or decimals.
_COMMA_IN_AMOUNT = re.compile(r"[0-9],[0-9]")
_WORDS = {"": False, "no": False, "yes": True}


class SettingError(Exception):
    """A setting is missing or invalid. The text is one line that names it."""


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that may be spent, by currency. The entry None is for all other currencies. Without any entry, there is no cap."""

    most: Mapping[str | None, Decimal] = field(default_factory=dict)

    def of(self, currency: str) -> Decimal | None:
        """Returns the most in a currency, which is 0 if only others are named; None if there is no cap."""
        if not self.most:
            return None
        return self.most.get(currency, self.most.get(None, Decimal(0)))

    @classmethod
    def read(cls, name: str, text: str) -> Cap:
        """Reads a cap such as `250 GBP, 300 EUR`, or `100` for any currency. Raises SettingError."""
        most: dict[str | None, Decimal] = {}
        if _COMMA_IN_AMOUNT.search(text):
            raise SettingError(
                f"{name} must have no comma between digits: write amounts such as `1250.50 GBP, 300 EUR`"
            )
        for part in filter(None, (part.strip() for part in text.split(","))):
            found = _AMOUNT.fullmatch(part)
            currency = found and found[2] and found[2].upper()
            if found is None or currency in most:
                raise SettingError(f"{name} must be amounts such as `250 GBP, 300 EUR`, each currency once")
            most[currency] = Decimal(found[1])
        if text and not most:
            raise SettingError(f"{name} must be amounts such as `250 GBP, 300 EUR`, each currency once")
        return cls(most)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the server."""

    url: str
    api_key: str = field(repr=False)
    most_per_order: Cap = Cap()
    most_per_day: Cap = Cap()
    shows_pins: bool = False
    token: str | None = field(default=None, repr=False)
    state_dir: Path = field(default_factory=lambda: Path.home() / ".local/state/largesse-mcp")


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Reads the settings from environment variables. Raises SettingError for the first invalid one."""
    for name, value in environ.items():
        if name.startswith(_OWN) and name not in SETTINGS and value.strip():
            raise SettingError(
                f"{name} is not a setting, so it would limit nothing: `largesse-mcp --help` lists the settings"
            )
    given = {name: environ.get(name, "").strip() for name in SETTINGS}
    for name in ("LARGESSE_URL", "LARGESSE_API_KEY"):
        if not given[name]:
            raise SettingError(f"{name} must be set: {SETTINGS[name]}")
    if given["LARGESSE_MCP_SHOW_PINS"].lower() not in _WORDS:
        raise SettingError("LARGESSE_MCP_SHOW_PINS must be `yes` or `no`")
    token = given["LARGESSE_MCP_TOKEN"]
    if token and len(token) < _LEAST_TOKEN:
        raise SettingError(f"LARGESSE_MCP_TOKEN must have at least {_LEAST_TOKEN} characters")
    settings = Settings(
        url=given["LARGESSE_URL"],
        api_key=given["LARGESSE_API_KEY"],
        most_per_order=Cap.read("LARGESSE_MCP_MOST_PER_ORDER", given["LARGESSE_MCP_MOST_PER_ORDER"]),
        most_per_day=Cap.read("LARGESSE_MCP_MOST_PER_DAY", given["LARGESSE_MCP_MOST_PER_DAY"]),
        shows_pins=_WORDS[given["LARGESSE_MCP_SHOW_PINS"].lower()],
        token=token or None,
    )
    folder = given["LARGESSE_MCP_STATE_DIR"]
    return replace(settings, state_dir=_read_folder(folder)) if folder else settings


def _read_folder(text: str) -> Path:
    """Returns a folder. Expands `~`, as no shell does it in the configuration of an assistant. Raises SettingError."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise SettingError(f"LARGESSE_MCP_STATE_DIR cannot be read: {error}") from None
