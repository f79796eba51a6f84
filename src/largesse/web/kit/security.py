"""Security headers of pages: each page may do no more than it needs.

Mail has its styles in the document. A policy can allow a style sheet of a document by its hash. It cannot allow the `style` attribute of a
tag without allowing any injected style. So `with_named_styles` turns the attributes into classes of one more sheet, and hashes each sheet.
"""

import base64
import hashlib
from collections.abc import Mapping
from html import escape
from html.parser import HTMLParser

_END_OF_HEAD = "</head>"


def with_named_styles(html: str) -> tuple[str, str]:
    """Returns the document with the styles of its tags moved to a sheet, and the `style_src` of its policy. It looks the same.

    A document without a head gets no styles. Rules of its sheets that override those of tags must be `!important`, as in mail.
    """
    reader = _Reader()
    # Browsers hash a sheet after they normalise its line ends.
    reader.feed(html.replace("\r\n", "\n"))
    reader.close()
    own = "".join(f".s{number}{{{style}}}" for style, number in reader.classes.items())
    document = "".join(reader.parts).replace(_END_OF_HEAD, f"<style>{own}</style>\n{_END_OF_HEAD}", 1)
    return document, " ".join(f"'sha256-{_hash(sheet)}'" for sheet in (*reader.sheets, own))


class _Reader(HTMLParser):
    """Copies the document, with classes in place of `style` attributes."""

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


# Headers of every answer to a browser: no guessing of media types, no referrer.
NO_REFERRER = {"Referrer-Policy": "no-referrer"}
COMMON = {"X-Content-Type-Options": "nosniff", **NO_REFERRER}
UNLISTED = {"X-Robots-Tag": "noindex, nofollow"}


def content_policy(*, frame_ancestors: str = "'none'", sandbox: str = "", **sources: str) -> str:
    """Returns a Content-Security-Policy that forbids everything but `sources`, such as `style_src="'self'"`.

    `frame_ancestors` says who may frame the page. `sandbox` lists what a sandboxed page may do.
    """
    rules = {name.replace("_", "-"): allowed for name, allowed in sources.items()}
    rules = {"default-src": "'none'", **rules}
    for name in ("base-uri", "form-action"):
        rules.setdefault(name, "'none'")
    rules["frame-ancestors"] = frame_ancestors
    if sandbox:
        rules["sandbox"] = sandbox
    return "; ".join(f"{name} {allowed}" for name, allowed in rules.items())


def page_headers(policy: str, *, max_age_s: int = 0) -> dict[str, str]:
    """Returns the headers of a page with that policy. With `max_age_s` 0 the page is private: it is never cached, and search engines skip it."""
    private = {"Cache-Control": "no-store", **UNLISTED}
    caching = {"Cache-Control": f"public, max-age={max_age_s}"} if max_age_s else private
    return {"Content-Security-Policy": policy, **COMMON, **caching}


_OF_FORMS = {
    "style_src": "'self'",
    "script_src": "'self'",
    "img_src": "'self'",
    "connect_src": "'self'",
    "form_action": "'self'",
}
# Headers of pages with forms: only their own styles, scripts and pictures, and no framing.
OF_FORMS: Mapping[str, str] = {
    **page_headers(content_policy(**_OF_FORMS)),
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
# The same for pages that show other pages of ours in frames.
OF_FORMS_WITH_FRAMES = {**OF_FORMS, **page_headers(content_policy(**_OF_FORMS, frame_src="'self'"))}


def named_style(sheet: str) -> str:
    """Returns the source by which a policy allows a sheet; empty for an empty sheet."""
    return f"'sha256-{_hash(sheet)}'" if sheet else ""


def with_styles(styles: str) -> dict[str, str]:
    """Returns the headers of a page with forms on which more sheets are allowed: `styles` names them, as `named_style` does."""
    return {**OF_FORMS, **page_headers(content_policy(**{**_OF_FORMS, "style_src": f"'self' {styles}"}))}
