"""Mails use only HTML and CSS that the big mail clients show, or lose without harm, and obey the rules of Outlook's Word engine."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.mail.people.test_texts import KINDS, a_people_mail
from tests.mail.test_letter import CODE, a_letter, bodies, parse

from largesse.base.i18n.languages import LANGUAGES
from largesse.catalogue.model import MAX_DESCRIPTION, MAX_HOW_TO_REDEEM, MAX_TERMS, Details
from largesse.mail.people.writing import show
from largesse.mail.rendering import THEMES

SUPPORT = Path(__file__).with_name("client_support.txt")

# Tags and attributes of the first HTML, which every client shows.
PLAIN_TAGS = {"html", "head", "meta", "title", "br", "a"}
PLAIN_ATTRIBUTES = {
    "alt",
    "bgcolor",
    "border",
    "charset",
    "class",
    "content",
    "href",
    "name",
    "src",
    "style",
    "xmlns:o",
}
PLAIN_CSS = {"color", "font-family", "mso-hide", "mso-padding-alt"}
OF_TAGS = {
    "body": "html-body", "div": "html-div", "h1": "html-h1-h6", "img": "html-img", "li": "html-lists", "ol": "html-lists",
    "p": "html-p", "span": "html-span", "strong": "html-strong", "style": "html-style", "table": "html-table",
    "td": "html-table", "tr": "html-table",
}  # fmt: skip
OF_CSS = {
    "border-color": "css-border", "border-left": "css-border", "unicode-bidi": "css-direction", "display": "css-display",
    "padding-left": "css-padding", "padding-right": "css-padding",
}  # fmt: skip

# What some client drops, and what is then missing.
MISSED = {
    "css-at-media": "a light mail",
    "css-at-media-prefers-color-scheme": "a light mail, or the client's own dark one",
    "css-border-radius": "square corners",
    "css-direction": "dir says the same",
    "css-height": "a picture of its own height",
    "css-max-height": "the hidden preview is hidden by mso-hide in Word",
    "css-overflow": "the same",
    "css-overflow-wrap": "a very long word widens the mail",
    "css-selector-attribute": "Outlook alone marks what it recolours, and reads these selectors",
    "css-word-break": "a very long word widens the mail",
    "html-aria-hidden": "a row of ornaments is read aloud",
    "html-aria-label": "the mail has its heading",
    "html-body": "the first table has the colour",
    "html-doctype": "only attributes are used that need none",
}


def read_support() -> dict[str, str]:
    """The letters of each feature, one for each client."""
    lines = [line for line in SUPPORT.read_text().splitlines() if not line.startswith("#")]
    return dict(line.split(" ") for line in lines if not line.startswith("clients "))


@dataclass
class Tag:
    name: str
    attributes: dict[str, str]
    within: list[str] = field(default_factory=list)

    @property
    def styles(self) -> dict[str, str]:
        declared = (one.partition(":") for one in self.attributes.get("style", "").split(";") if one.strip())
        return {name.strip(): value.strip() for name, _, value in declared}


class Reader(HTMLParser):
    """The tags of a mail and its style sheets."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[Tag] = []
        self.sheets: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(Tag(tag, {name: value or "" for name, value in attrs}, list(self._open)))
        if tag not in ("meta", "br", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes another tag, which Word does not mend"

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.sheets.append(data)


def features_of(mail: Reader) -> Iterator[str]:
    """The names that caniemail has for what a mail uses."""
    for tag in mail.tags:
        if tag.name not in PLAIN_TAGS:
            yield OF_TAGS[tag.name]
        yield from (f"html-{name}" for name in tag.attributes if name not in PLAIN_ATTRIBUTES)
        for name, value in tag.styles.items():
            yield from _of_declaration(name, value)
    for sheet in mail.sheets:
        yield from ("css-at-media", "css-at-media-prefers-color-scheme") if "@media" in sheet else ()
        yield from ("css-selector-attribute", "css-selector-descendant") if "[" in sheet else ("css-selector-class",)
        for declared in re.findall(r"[{;]\s*([\w-]+): ([^;}]+)", sheet):
            yield from _of_declaration(*declared)


def _of_declaration(name: str, value: str) -> Iterator[str]:
    if "!important" in value:
        yield "css-important"
    if (name, value) == ("display", "none"):
        yield "css-display-none"
    elif name not in PLAIN_CSS:
        yield OF_CSS.get(name, f"css-{name}")
    yield from ("css-unit-px" for _ in re.findall(r"\dpx", value))
    yield from ("css-unit-percent" for _ in re.findall(r"\d%", value))


MORE = Details("A treat.", "Show it\nin the shop.", "No cash.")
LONG = Details(*("\N{WRAPPED PRESENT}" * most for most in (MAX_DESCRIPTION, MAX_HOW_TO_REDEEM, MAX_TERMS)))
PICTURE = "https://gifts.example.com/p.png"
LETTERS: dict[str, dict[str, object]] = {
    "whole": {"expiry_days": 9, "picture": PICTURE, "details": MORE, "environment": "staging", "is_test": True},
    "bare": {"sender": None, "name": None, "message": None, "value_minor": None},
    "many": {"codes": [CODE] * 1_000, "details": LONG},
    "several": {"codes": [CODE] * 3},
    "voucher_ready": {"kind": "voucher_ready", "carrier": "DHL", "tracking_number": "AB1", "details": MORE},
    "shipped": {"kind": "shipped", "carrier": "DHL", "tracking_number": "AB1", "details": MORE},
    "returned": {"kind": "returned"},
    **{key: {"wrapping_key": key} for key in THEMES},
}
MAILS = (*LETTERS, *(f"{kind}-{tag}" for tag in LANGUAGES for kind in KINDS))


@cache
def html_of(name: str) -> str:
    """One of MAILS, written when a test needs it and not in each process that collects tests."""
    if name in LETTERS:
        return bodies(parse(a_letter(**LETTERS[name])))[0]
    kind, _, tag = name.rpartition("-")
    return show(a_people_mail(kind, tag))[2]


@pytest.mark.parametrize("name", MAILS)
def test_a_mail_uses_what_the_big_clients_support(name: str) -> None:
    support = read_support()
    used = set(features_of(Reader(html_of(name))))
    assert used <= support.keys(), "caniemail has no such feature: name it in PLAIN_CSS or find its name"
    assert {one for one in used if set(support[one]) - set("ya")} <= MISSED.keys()


def test_nothing_is_excused_that_no_mail_uses() -> None:
    used = {one for name in MAILS for one in features_of(Reader(html_of(name)))} | {"html-doctype"}
    assert used >= MISSED.keys()


@pytest.mark.parametrize("name", MAILS)
def test_a_mail_obeys_the_rules_of_outlooks_word_engine(name: str) -> None:
    for tag in Reader(html_of(name)).tags:
        styles = tag.styles
        assert "background" not in styles, "Word reads background-color alone"
        if tag.name in ("body", "table", "td") and "background-color" in styles:
            assert tag.attributes["bgcolor"] == styles["background-color"]
        if "padding" in styles and styles["padding"] != "0":
            assert tag.name in ("td", "a"), f"Word takes no padding of {tag.name}"
        if "max-width" in styles and tag.name == "img":
            assert tag.attributes["width"] == styles["max-width"].removesuffix("px")
        if tag.name == "td" and "font-size" in styles:
            assert "font-family" in styles, "Word passes no font on to a table in a table"
        if tag.name == "table":
            assert tag.attributes["role"] == "presentation"
            assert {"cellpadding", "cellspacing", "border"} <= tag.attributes.keys()
        if tag.name == "a" and "padding" in styles:
            assert tag.within[-1] == "td", "the cell has the padding for Word (mso-padding-alt)"


@pytest.mark.parametrize("name", MAILS)
def test_gmail_reads_a_mail_whole(name: str) -> None:
    assert len(html_of(name).encode()) < 102 * 1024, "Gmail cuts what is longer"
    assert sum(map(len, Reader(html_of(name)).sheets)) < 16 * 1024, "Gmail drops more of style sheets"
    assert "[" not in Reader(html_of(name)).sheets[0], "Gmail drops a sheet with selectors that it does not read"


@pytest.mark.parametrize("name", MAILS)
def test_a_screen_reader_is_told_language_and_heading(name: str) -> None:
    tags = Reader(html_of(name)).tags
    assert [tag.name for tag in tags].count("h1") == 1
    assert all("alt" in tag.attributes for tag in tags if tag.name == "img")
    [whole] = [tag for tag in tags if tag.attributes.get("role") == "article"]
    assert whole.attributes["lang"] in LANGUAGES, "Gmail drops the tag that says it first"
