"""The layout of the back office: the web application's, with its own colour, menu and words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from largesse.base.i18n.templates import text
from largesse.web.console import layout as console
from largesse.web.console.words import WORDS, Word

HERE = Path(__file__).parent
CATALOGUES = HERE / "locale"
TEMPLATES = HERE / "templates"

ROLE_NAMES: Mapping[str, str] = {
    "owner": text("Owner"),
    "catalogue": text("Catalogue manager"),
    "finance": text("Finance staff"),
    "warehouse": text("Warehouse"),
    "support": text("Support"),
    "auditor": text("Auditor"),
}


class Group(Enum):
    """The groups of the menu, in order, and their names."""

    TODAY = text("Today")
    CUSTOMERS = text("Customers and gifts")
    GOODS = text("Catalogue and stock")
    MONEY = text("Money")
    SETUP = text("Settings")


class OfficeLayout(console.Layout):
    """The layout of all pages of the back office."""

    root = "/office"
    name = "Largesse Office"
    groups = Group
    templates = (TEMPLATES, console.TEMPLATES)
    catalogues = (console.CATALOGUES, CATALOGUES)
    asset_folders = (console.HERE / "assets", HERE / "assets")
    sheets = (*console.Layout.sheets, "office.css")
    words: Mapping[str, Word] = {"second-step": WORDS["second-step"]}
    role_names = ROLE_NAMES
