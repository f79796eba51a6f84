"""Templates of pages: one way to make a Jinja environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

from largesse.base.i18n import CATALOGUES, DEFAULT, template_environment


def page_templates(
    folder: Path,
    language: str = DEFAULT.tag,
    catalogues: Path = CATALOGUES,
    **filters: Callable[..., Any],
) -> jinja2.Environment:
    """The templates of `folder` in that language, as `catalogues` say it, with filters of the room's own.

    What is put into a page is escaped, a name that a template asks for must be given, and nothing is read twice.
    """
    environment = template_environment(folder, language, catalogues)
    environment.filters.update(filters)
    return environment
