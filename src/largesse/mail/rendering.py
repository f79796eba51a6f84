"""Themes: how a wrapped gift looks in the recipient's mail. Renders a letter as text and HTML, in the language of its recipient."""

import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from jinja2.nodes import EvalContext
from markupsafe import Markup, escape
from msgspec.structs import replace

from largesse.base.i18n.languages import Language
from largesse.base.i18n.templates import template_environment
from largesse.branding.model import NO_BRAND, Brand, ink_on, mixed
from largesse.orders.options import DEFAULT_WRAPPING, known_wrapping


class Theme(msgspec.Struct, frozen=True):
    """Colours that mail clients show without loading a picture."""

    paper: str  # the area around the card
    ribbon: str  # the band on top, the button
    ink: str  # text on the ribbon
    motif: str  # a line of symbols in the ribbon, in fonts every client has


THEMES = {
    "default": Theme("#f3f0ea", "#1f4d4a", "#ffffff", ""),
    "confetti": Theme("#fff0d9", "#b93c22", "#ffffff", "● ◆ ● ◆ ●"),
    "birthday": Theme("#f6f1fe", "#6437bd", "#ffffff", "✦ ● ✦ ● ✦"),
    "thank-you": Theme("#fbe1e8", "#b01e52", "#ffffff", "♥ ♥ ♥"),
    "winter": Theme("#edf4fb", "#234a78", "#ffffff", "✻ ✼ ✻ ✼ ✻"),
    "elegant": Theme("#f5f3ef", "#25282e", "#cdb07a", "· · ·"),
    "stars": Theme("#eff1fb", "#1b2d6e", "#ffffff", "★ ☆ ★ ☆ ★"),
    "gold": Theme("#fbf6e8", "#6f5110", "#ffffff", "◆ ◇ ◆"),
    "garden": Theme("#e3f1d8", "#34662a", "#ffffff", "✿ ❀ ✿"),
}


def theme(key: str, brand: Brand = NO_BRAND) -> Theme:
    """Returns the theme of the wrapping `key`: the brand's own, or a shared one. The default theme has the brand's colour."""
    if own := brand.wrapping(key):
        return Theme(mixed(own.paper, "#ffffff", 0.88), own.paper, ink_on(own.paper), "")
    known = THEMES[known_wrapping(key)]
    if brand.colours and known is THEMES[DEFAULT_WRAPPING]:
        return replace(known, paper="#f1f1f1", ribbon=brand.colours.fill, ink=brand.colours.ink)
    return known


def button_theme(shown: Theme, brand: Brand) -> Theme:
    """Returns the theme with the brand's colour for buttons, if it has one."""
    return replace(shown, ribbon=brand.colours.fill, ink=brand.colours.ink) if brand.colours else shown


# The values of the brand for a mail without one.
UNBRANDED = {"logo": "", "company": "", "paper_picture": "", "footer": ""}
TEMPLATES = Path(__file__).parent / "templates"

_RIGHT_TO_LEFT = {"R", "AL", "AN"}
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"


def render(template: str, language: Language, values: Mapping[str, Any]) -> str:
    """Returns the template rendered in that language."""
    return _template(language.tag, template).render(values, language=language)


@lru_cache(maxsize=1_000)
def what_to_do(language: Language, comes_as: str, days: int | None, *, is_one: bool) -> tuple[tuple[str, ...], str]:
    """Returns the steps to get the gifts, and a sentence that says until when. The sentence is empty if `days` is None."""
    said = render("steps.txt", language, {"comes_as": comes_as, "days": days, "is_one": is_one})
    lines = tuple(said.splitlines())
    return (lines[:-1], lines[-1]) if days else (lines, "")


@jinja2.pass_eval_context
def apart(context: EvalContext, text: str) -> str:
    """Returns a name for a sentence, isolated so that name and sentence each keep their own direction of writing (UAX 9).

    In plain text this needs characters that some clients show as boxes, so they are added only for names written from right to left.
    """
    if context.autoescape:
        return Markup(f'<span dir="auto">{escape(text)}</span>')  # noqa: S704 - escaped
    if not text.isascii() and any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return f"{_FIRST_STRONG_ISOLATE}{text}{_POP_ISOLATE}"
    return text


@cache
def _template(tag: str, name: str) -> jinja2.Template:
    return _templates(tag).get_template(name)


@cache
def _templates(tag: str) -> jinja2.Environment:
    environment = template_environment(TEMPLATES, tag)
    environment.filters["apart"] = apart
    for name in environment.list_templates():
        # A single dict of all globals: to search Jinja's chain of dicts takes longer than to render a letter.
        template = environment.get_template(name)
        template.globals = dict(template.globals)
    return environment
