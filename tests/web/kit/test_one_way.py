"""What the kit does is done nowhere else under `web`: one way for each thing, held by reading the code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import largesse.web

WEB = Path(largesse.web.__file__).parent
# What a room of `web` would write that did for itself what the kit does for all.
OF_THE_KIT = {
    "renders errors": r"HTTPException|exc_info",
    "reads bodies and forms": r"\.stream\(\)|\.form\(\)|\.body\(\)|more_body|sec-fetch-site",
    "sets security headers": r"Content-Security-Policy|X-Content-Type-Options|Referrer-Policy|X-Robots-Tag",
    "makes Jinja environments": r"jinja2\.Environment\(|PackageLoader|FileSystemLoader|\btemplate_environment\(",
    "serves assets": r"immutable|If-None-Match|sha256\(",
    "keeps sessions": r"set_cookie\(|\.cookies\b|urlsafe_b64|import hmac",
    "knows addresses": r"\[\"client\"\]|\.get\(\"client\"\)|request\.client|[Ff]orwarded",
    "redirects": r"RedirectResponse",
    "looks services up": r"request\.app|app\.state|Protocol\b",
}


def done_outside(sources: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Each thing of the kit's that a source does itself, with the source's name."""
    for name, text in sources.items():
        for thing, pattern in OF_THE_KIT.items():
            if re.search(pattern, text):
                yield name, thing


def test_rooms_of_web_leave_to_the_kit_what_is_the_kits() -> None:
    sources = {
        str(path.relative_to(WEB)): path.read_text()
        for path in WEB.rglob("*.py")
        if path.relative_to(WEB).parts[0] != "kit"
    }
    assert len(sources) > 30
    assert list(done_outside(sources)) == []


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ('response.set_cookie("gift", cookie)', "keeps sessions"),
        ('request.cookies.get("gift")', "keeps sessions"),
        ('headers = {"Content-Security-Policy": "default-src *"}', "sets security headers"),
        ("templates = jinja2.Environment(loader=None)", "makes Jinja environments"),
        ("form = await request.form()", "reads bodies and forms"),
        ("raise HTTPException(404)", "renders errors"),
        ("services = request.app.services", "looks services up"),
        ("host = request.client.host", "knows addresses"),
    ],
)
def test_a_room_that_did_for_itself_would_be_found(text: str, thing: str) -> None:
    assert list(done_outside({"room/pages.py": text})) == [("room/pages.py", thing)]
