"""Documents that have their styles in themselves, as mail clients want them, under a policy that allows just those.

A policy can name a style sheet that stands in a document by its hash, but not the `style` of a tag, unless it allows whatever somebody
smuggles in. So those become classes of one more sheet, and each sheet is named.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from html.parser import HTMLParser

_END_OF_HEAD = "</head>"


def with_named_styles(html: str) -> tuple[str, str]:
    """The document with the styles of its tags in a sheet, and what its policy says as `style_src`. It looks as before.

    A document without a head gets no styles. Rules of its own sheets that are to win over those of tags are `!important`, as in mail.
    """
    reader = _Reader()
    # Browsers hash a sheet with the line ends that they read it with.
    reader.feed(html.replace("\r\n", "\n"))
    reader.close()
    own = "".join(f".s{number}{{{style}}}" for style, number in reader.classes.items())
    document = "".join(reader.parts).replace(_END_OF_HEAD, f"<style>{own}</style>\n{_END_OF_HEAD}", 1)
    return document, " ".join(f"'sha256-{_hash(sheet)}'" for sheet in (*reader.sheets, own))


class _Reader(HTMLParser):
    """Writes down what it reads, with classes for styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self.classes: dict[str, int] = {}
        self.sheets: list[str] = []
        self._is_sheet = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style":
            self._is_sheet = True
        style = given.pop("style", None)
        if style is None:
            self.parts.append(self.get_starttag_text() or "")
            return
        number = self.classes.setdefault(style.replace("<", ""), len(self.classes))
        given["class"] = " ".join(filter(None, (given.get("class"), f"s{number}")))
        written = "".join(
            f" {name}" if value is None else f' {name}="{escape(value)}"' for name, value in given.items()
        )
        self.parts.append(f"<{tag}{written}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._is_sheet = False
        self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._is_sheet:
            self.sheets.append(data)
        self.parts.append(data)

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self.parts.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.parts.append(f"<!{decl}>")


def _hash(sheet: str) -> str:
    return base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
