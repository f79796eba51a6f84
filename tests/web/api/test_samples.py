"""Every Python sample of the documentation, run: none has an error in it, whatever else its own test asks of it.

The samples of a page are run one after another, as somebody who reads on would, with a service of the address that they take from the
environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [
    path for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]) if "\n```python\n" in path.read_text()
]
# Those of the guides share a client and need an order: test_guide.py runs them.
RUN_HERE = [path for path in PAGES if path.parent.name != "guides"]


def samples(page: Path) -> Iterator[tuple[int, str]]:
    """The samples of a page, each with the line it begins on."""
    text = page.read_text()
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start(1)), found[1]


def test_there_are_samples() -> None:
    assert PAGES


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.name)
def test_the_samples_of_a_page_run(page: Path, service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGESSE", service.url)
    monkeypatch.setenv("LARGESSE_API_KEY", service.keys["hr"])
    names: dict[str, Any] = {"__name__": "sample"}
    try:
        for line, sample in samples(page):
            code = compile("\n" * line + sample, str(page), "exec")  # an error names the page's own line
            exec(code, names)  # noqa: S102 - text of our own
    finally:
        for value in names.values():
            if hasattr(value, "close") and hasattr(value, "base_url"):
                value.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sample_escapes(page: Path) -> None:
    """A block of Python under another name, or indented, would not be run."""
    fences = re.findall(r"^ *```(?:python3?|py|pycon)\b.*$", page.read_text(), re.MULTILINE)
    assert fences == ["```python"] * len(list(samples(page)))
