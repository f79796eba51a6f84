"""Icons: drawn into the page, hidden from screen readers, and styled by the style sheet alone."""

from __future__ import annotations

import re

import lucide
import pytest

from largesse.web.console.routes import ROUTES
from largesse.web.kit.assets import icon


def test_an_icon_is_hidden_and_has_no_style_of_its_own() -> None:
    drawn = icon("gift")
    assert drawn.startswith('<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><')
    assert drawn.endswith("</svg>")
    assert not re.search(r"xmlns|stroke|fill|width=\"24\"|\s/>|\n", drawn)
    assert len(drawn) < 500


def test_a_name_that_is_no_icon_is_an_error() -> None:
    with pytest.raises(lucide.IconDoesNotExist):
        icon("no-such-icon")


def test_every_page_of_the_menu_has_an_icon_of_its_own() -> None:
    icons = [route.icon for route in ROUTES if route.group]
    assert all(icon(name) for name in icons)
    assert len(set(icons)) == len(icons)
