"""Numbers in plurals are written as the language writes them, and values are escaped."""

from __future__ import annotations

from pathlib import Path

import pytest

from largesse.base.i18n.templates import template_environment

SAID = "{% trans count=count, name=name %}{{ count }} gift of {{ name }}{% pluralize %}{{ count }} gifts of {{ name }}{% endtrans %}"


@pytest.mark.parametrize(("tag", "written"), [("en", "1,204"), ("de", "1.204"), ("fr", "1\u202f204")])
def test_a_count_is_written_as_the_language_does(tmp_path: Path, tag: str, written: str) -> None:
    (tmp_path / "one.html").write_text(SAID)
    (tmp_path / "one.txt").write_text(SAID)
    environment = template_environment(tmp_path, tag)
    assert environment.get_template("one.html").render(count=1204, name="<b>") == f"{written} gifts of &lt;b&gt;"
    assert environment.get_template("one.txt").render(count=1, name="<b>") == "1 gift of <b>"
