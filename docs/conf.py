"""How `make docs` makes one site of these pages; its source folder is the repository's.

Strict: whatever Sphinx doubts, a link that leads nowhere included, ends it. The site needs no network, and opens from a folder.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

project = "Largesse"
author = "The authors of Largesse"
copyright = f"{author}; Apache License 2.0"  # noqa: A001 - Sphinx asks for this name
release = re.findall(r'^__version__ = "(.+)"', (ROOT / "src/largesse/__init__.py").read_text(), re.MULTILINE)[
    0
]

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/**.rst",
    "CHANGELOG.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "sdk/python/README.md",
]
exclude_patterns = [".venv", ".git", "build", "dist", "node_modules", "**/node_modules", "largesse-data"]
default_role = "code"
highlight_language = "none"
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"Largesse {release}"
html_copy_source = False
html_show_sphinx = False
html_permalinks_icon = "#"
html_theme_options = {"navigation_with_keys": False}
html_extra_path = ["site"]  # the way from the site's own folder to its first page
