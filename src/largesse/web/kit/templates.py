"""Templates of pages: one way to make a Jinja environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import segno
from markupsafe import Markup

from largesse.base.i18n.languages import DEFAULT
from largesse.base.i18n.templates import CATALOGUES, template_environment


def qr_code(text: str) -> Markup:
    """The QR code of a text as an inline SVG without any style of its own."""
    code = segno.make(text, error="m", micro=False)
    return Markup(  # noqa: S704 - segno writes path data, none of the text
        code.svg_inline(border=2, dark="#000", light="#fff", omitsize=True, svgclass="qr", lineclass=None)
    )


def page_templates(
    folder: Path, language: str = DEFAULT.tag, catalogues: Path = CATALOGUES, **filters: Callable[..., Any]
) -> jinja2.Environment:
    """The templates of `folder` in that language, as `catalogues` say it, with filters of the room's own.

    What is put into a page is escaped, a name that a template asks for must be given, and nothing is read twice.
    """
    environment = template_environment(folder, language, catalogues)
    environment.filters.update(filters)
    return environment
