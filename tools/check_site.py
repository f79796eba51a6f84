"""Looks at a built site as it lies in its folder: every link leads somewhere, and nothing is loaded from elsewhere.

    python -m tools.check_site FOLDER

Sphinx has checked the sources; this checks what came of them, menus and pictures included. Links to other hosts are left alone.
It also finds what people who use a keyboard or a screen reader miss.
"""

import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, by tag and attribute.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "srcset")}
# What somebody with a keyboard or a screen reader needs, by tag and role: to scroll wide code, and to tell landmarks and headings apart.
_NEEDED = {("pre", None): "tabindex", ("aside", None): "aria-label", ("p", "heading"): "aria-level"}
# Lists that Sphinx makes, and the ways to the first page.
_NO_PAGES = {"index.html", "docs/index.html", "search.html", "genindex.html", "py-modindex.html"}


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places = {"", "top"}
        self.missing: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        needed = _NEEDED.get((tag, given.get("role")), "")
        if needed and needed not in given:
            self.missing.add(f"{tag} without {needed}")
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            elif (tag, name) in _LOADED:
                self.loaded.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)


def faults(folder: Path) -> Iterator[str]:
    """What is wrong with the site in a folder, a line each."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"{folder}: no page"
    for needed in ("index.html", "searchindex.js", "search.html", "llms.txt"):
        if not (folder / needed).is_file():
            yield f"{needed} is missing"
    index = (folder / "llms.txt").read_text("utf-8") if (folder / "llms.txt").is_file() else ""
    for path in folder.rglob("*.html"):
        page = path.relative_to(folder).as_posix()
        if page not in _NO_PAGES and f"]({page})" not in index:
            yield f"llms.txt does not name {page}"
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        yield from (f"{name} loads {fault}" for fault in _loaded_wrongly(path, page))
        yield from (f"{name} has {fault}" for fault in sorted(page.missing))
        yield from (f"{name} leads to {fault}" for fault in _led_astray(path, page, pages))


def _loaded_wrongly(path: Path, page: Page) -> Iterator[str]:
    for address in page.loaded:
        parts = urlsplit(address)
        if address.startswith("#"):  # the page itself
            continue
        if parts.netloc or parts.scheme not in {"", "data"}:
            yield f"{address} from elsewhere"
        elif not parts.scheme and not (path.parent / unquote(parts.path)).is_file():
            yield f"{address}, which is not there"


def _led_astray(path: Path, page: Page, pages: Mapping[Path, Page]) -> Iterator[str]:
    for address in page.links:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file():
            yield f"{address}, which is not there"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
            yield f"{address}, where there is no such place"


def main() -> None:
    found = list(faults(Path(sys.argv[1])))
    if found:
        sys.exit("\n".join(found))
    print(f"{sys.argv[1]}: every link leads somewhere, and nothing comes from elsewhere")


if __name__ == "__main__":
    main()
