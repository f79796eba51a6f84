"""`tools.check_site` finds what is wrong with a built site; `make docs` builds ours and asks it."""

from pathlib import Path

import pytest
from tools.check_site import faults


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/picture one.png").touch()
    for name in ("searchindex.js", "search.html"):
        (tmp_path / name).touch()
    (tmp_path / "llms.txt").write_text("- [A](pages/a.html)")
    (tmp_path / "index.html").write_text(
        '<a href="pages/a.html#here">a</a> <a href="https://elsewhere.example/">e</a> <script src="searchindex.js"></script>'
    )
    (tmp_path / "pages/a.html").write_text(
        '<h1 id="here">A</h1><a href="#here">up</a><a href="../index.html">i</a><img src="picture%20one.png">'
    )
    return tmp_path


def test_a_good_site(site: Path) -> None:
    assert list(faults(site)) == []


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="b.html">', "pages/a.html leads to b.html, which is not there"),
        ('<a href="#there">', "pages/a.html leads to #there, where there is no such place"),
        ('<a href="../index.html#here">', "pages/a.html leads to ../index.html#here, where there is no such place"),
        ('<img src="two.png">', "pages/a.html loads two.png, which is not there"),
        (
            '<script src="https://elsewhere.example/x.js">',
            "pages/a.html loads https://elsewhere.example/x.js from elsewhere",
        ),
        ("<pre>", "pages/a.html has pre without tabindex"),
        ('<p role="heading">', "pages/a.html has p without aria-level"),
        ("<aside>", "pages/a.html has aside without aria-label"),
        ('<link href="//elsewhere.example/x.css">', "pages/a.html loads //elsewhere.example/x.css from elsewhere"),
    ],
)
def test_a_fault_of_a_page(site: Path, page: str, fault: str) -> None:
    with (site / "pages/a.html").open("a") as file:
        file.write(page)
    assert list(faults(site)) == [fault]


def test_a_page_that_language_models_do_not_find(site: Path) -> None:
    (site / "pages/b.html").touch()
    assert list(faults(site)) == ["llms.txt does not name pages/b.html"]


def test_a_site_that_cannot_be_searched(site: Path) -> None:
    (site / "searchindex.js").unlink()
    assert list(faults(site)) == ["searchindex.js is missing", "index.html loads searchindex.js, which is not there"]
