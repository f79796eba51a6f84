"""How `make docs` makes one site of these pages and of the client's docstrings; its source folder is the repository's.

Strict: whatever Sphinx doubts, a link that leads nowhere included, ends it. The site needs no network, and opens from a folder.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "sdk/python/src"))

project = "Largesse"
author = "The authors of Largesse"
copyright = f"{author}; Apache License 2.0"  # noqa: A001 - Sphinx asks for this name
_build = (ROOT / "sdk/python/release/largesse_build.py").read_text()
release = re.findall(r'^RELEASE = "(.+)"', _build, re.MULTILINE)[0]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "docs/**.md",
    "docs/**.rst",
    "CHANGELOG.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "sdk/python/README.md",
    "sdk/typescript/README.md",
    "sdk/conformance/README.md",
]
exclude_patterns = [".venv", ".git", "build", "dist", "node_modules", "**/node_modules", "largesse-data"]
default_role = "code"
highlight_language = "none"
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"Largesse {release}"
html_copy_source = False
html_show_sphinx = False
html_permalinks_icon = "#"
html_search_scorer = str(ROOT / "docs/search.js")
html_theme_options = {"navigation_with_keys": False}
html_extra_path = ["site"]  # the way from the site's own folder to its first page

_CODE = re.compile(r" {4}")
_ANSWERED = re.compile(r"\b(Call|Pages)\[(.*)\]$")


def _mark_code(app: Sphinx, what: str, name: str, documented: Any, options: Any, lines: list[str]) -> None:
    """Marks code as reStructuredText wants it: our docstrings say it by an indented block, as Markdown does."""
    marked: list[str] = []
    for line in lines:
        begins = _CODE.match(line) and not (marked and marked[-1].strip())
        within = any(_CODE.match(before) for before in marked[-2:])
        marked += ["::", ""] if begins and not within else []
        marked.append(line)
    lines[:] = marked


def _tell_what_is_answered(
    app: Sphinx, what: str, name: str, documented: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """An operation is written as the request it makes, and called for what that is answered."""
    found = _ANSWERED.search(returns or "")
    if found is None:
        return signature, returns
    return signature, found[2] if found[1] == "Call" else f"Iterator[{found[2]}]"


def _copy_pictures(app: Sphinx, error: Exception | None) -> None:
    """The README shows them by HTML, which Sphinx does not read."""
    shutil.copytree(ROOT / "docs/pictures", Path(app.outdir) / "docs/pictures", dirs_exist_ok=True)


# What the theme leaves out for people who listen to pages or use a keyboard, by what it writes.
_ACCESSIBLE = {
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',  # a wide one is scrolled
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results">': '<h1>Search</h1><div id="search-results" tabindex="-1">',
}


def _make_accessible(app: Sphinx, error: Exception | None) -> None:
    """Completes the pages as they are written."""
    for path in Path(app.outdir).rglob("*.html"):
        page = whole = path.read_text("utf-8")
        for written, complete in _ACCESSIBLE.items():
            page = page.replace(written, complete)
        if page != whole:
            path.write_text(page, "utf-8")


def _index_for_models(app: Sphinx, error: Exception | None) -> None:
    """Writes llms.txt (llmstxt.org), an index of all pages for language models, as the menu of the first page has them."""
    from docutils import nodes
    from sphinx import addnodes

    lines: list[str] = []

    def add(page: str) -> None:
        lines.append(f"- [{app.env.titles[page].astext()}]({page}.html)")
        for below in app.env.toctree_includes.get(page, ()):
            add(below)

    first = app.env.get_doctree(app.config.root_doc)
    for menu in first.findall(addnodes.toctree):
        lines += ["", f"## {menu['caption']}", ""]
        for page in menu["includefiles"]:
            add(page)
    about = next(first.findall(nodes.paragraph)).astext().replace("\n", " ")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(["# Largesse", "", f"> {about}", *lines, ""]), "utf-8")


def setup(app: Sphinx) -> None:
    """What Sphinx calls first."""
    from largesse_client.binding import listing, operation

    for decorator in (operation, listing):  # on the class they stand for the functions they are made of
        decorator.__get__ = lambda self, instance, owner=None: self.__wrapped__
    app.connect("build-finished", _copy_pictures)
    app.connect("build-finished", _make_accessible)
    app.connect("build-finished", _index_for_models)
    app.connect("autodoc-process-docstring", _mark_code)
    app.connect("autodoc-process-signature", _tell_what_is_answered)
