"""The Jinja environment of pages."""

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
    """Returns the QR code of a text as an inline SVG without styles."""
    code = segno.make(text, error="m", micro=False)
    return Markup(  # noqa: S704 - segno writes path data, none of the text
        code.svg_inline(border=2, dark="#000", light="#fff", omitsize=True, svgclass="qr", lineclass=None)
    )


def page_templates(
    folder: Path, language: str = DEFAULT.tag, catalogues: Path = CATALOGUES, **filters: Callable[..., Any]
) -> jinja2.Environment:
    """Returns the templates of a folder in a language, translated by `catalogues`, with further filters.

    Values are escaped, an unknown name in a template is an error, and templates are cached.
    """
    environment = template_environment(folder, language, catalogues)
    environment.filters.update(filters)
    return environment
