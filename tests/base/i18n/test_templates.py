"""Templates are those of the code that runs, whatever is installed beside it since."""

from pathlib import Path

import jinja2
import pytest

import largesse.web.console
from largesse.base.i18n.templates import template_environment

CONSOLE = Path(largesse.web.console.__file__).parent / "templates"


def test_a_release_installed_later_changes_no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja2.FileSystemLoader, "get_source", lambda *_: ("of the next release", None, None))
    for path in CONSOLE.rglob("*.html"):
        source, *_ = template_environment(CONSOLE, "en").loader.get_source(None, str(path.relative_to(CONSOLE)))  # type: ignore[union-attr, arg-type]
        assert source == path.read_text(encoding="utf-8")
