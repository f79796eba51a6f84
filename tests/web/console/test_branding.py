"""Branding: set by an administrator, seen in mail, on claim pages and on sheets of codes, and never a way in."""

import base64
import hashlib
import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.catalogue.images import jpeg, png, webp_lossy
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient, link, sent_code
from tests.web.console.conftest import Browser, SignIn
from tests.web.console.sending import WORLD, browser_text, place, ready

from largesse.branding.model import MOST_WRAPPINGS
from largesse.branding.service import MOST_PICTURES
from largesse.catalogue.pictures import MAX_BYTES, MAX_SIDE
from largesse.db.pool import Database
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.mail.letter import Letter, write
from largesse.mail.messages import fan_out, take

__all__ = ["WORLD"]

TEXTS = {
    "colour": "#ffdd00",
    "sender_name": "Acme Gifts",
    "reply_to": "Acme <people@acme.example>",
    "subject": "{sender} thought of you",
    "footer": "Acme Ltd\n1 High Street",
}
SCRIPT = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture(autouse=True)
def as_before(service: Service) -> Iterator[None]:
    yield
    for table in ("own_wrappings", "brand_pictures", "brands"):
        service.sql(f"DELETE FROM {table}")


@pytest.fixture
def ada(sign_in: SignIn) -> Browser:
    browser = sign_in("ada@acme.example")
    browser.get("/app/branding")
    return browser


def upload(browser: Browser, part: str, field: str, content: bytes, **fields: str) -> Any:
    browser.get("/app/branding")
    return browser.upload(f"/app/branding/{part}", content, field=field, **fields)


def seen(answer: Any) -> str:
    return html.unescape(browser_text(answer.text))


def save(browser: Browser, texts: dict[str, str]) -> Any:
    return browser.submit("/app/branding", **texts)


def wrapping(browser: Browser, name: str = "Autumn", picture: bytes = b"", **other: str) -> Any:
    fields = {"name": name, "pattern": "leaves", "paper": "#8a4210", "ribbon": "#f6c453", **other}
    return upload(browser, "wrappings", "picture", picture, **fields)


def sent(browser: Browser, service: Service, key: str = "default") -> str:
    path = ready(browser, service)
    answer = browser.submit(f"{path}/message", wrapping_key=key, from_name="Ada", message="Hello")
    assert answer.status_code == 303, answer.text
    return place(browser, path)


def letters(service: Service) -> list[Letter]:
    """The mail that is due, as a worker reads it."""

    async def read(database: Database, vault: Vault) -> list[Letter]:
        async with database.transaction(WORKER) as connection:
            await fan_out(connection, limit=100)
            found = await take(connection, 100, vault, lambda _: "https://gifts.example")
        return [one.letter for one in reversed(found)]

    letters: list[Letter] = service.on_pool(read)
    return letters


def claim_page(service: Service, reference: str, *, again: bool = False) -> Any:
    """Returns the page of the first gift's link; `again`, what it answers to the right PIN after the gift was claimed."""
    code = sent_code(service, reference)
    if not again:
        return Recipient(service).get(link(code))
    assert Recipient(service).claim(code).status_code == 303
    return Recipient(service).claim(code)


def test_texts_and_colour_are_in_mail_and_on_the_claim_page(service: Service, ada: Browser) -> None:
    assert save(ada, TEXTS).status_code == 303
    assert upload(ada, "logo", "logo", png()).status_code == 303
    page = ada.get("/app/branding").text
    assert "darker, so that it can be read" in ada.text
    logo = re.findall(r'src="(/pictures/[^"]+)"', page)[0]
    assert service.client().get(logo).content == png()
    reference = sent(ada, service)

    letter = letters(service)[0]
    mail = write(letter, "Largesse <gifts@example.com>", at=0).decode()
    assert "From: Ada via Acme Gifts <gifts@example.com>" in mail
    assert "Reply-To: people@acme.example" in mail
    assert "Subject: Ada thought of you" in mail
    assert "1 High Street" in mail
    unfolded = mail.replace("=\r\n", "").replace("=3D", "=")
    assert f'src="https://gifts.example{logo}" height="40" alt="Acme Ltd"' in unfolded
    assert 'bgcolor="#ffdd00"' in unfolded

    shown = claim_page(service, reference)
    assert f'<img src="{logo}" alt="Acme Ltd">' in shown.text
    assert "1 High Street" in shown.text
    [sheet] = re.findall(r"<style>(.*?)</style>", shown.text)
    assert "--accent:#ffdd00;--accent-ink:#000000" in sheet
    digest = base64.b64encode(hashlib.sha256(html.unescape(sheet).encode()).digest()).decode()
    assert f"'sha256-{digest}'" in shown.headers["content-security-policy"]
    assert "unsafe" not in shown.headers["content-security-policy"]

    told = claim_page(service, reference, again=True)
    assert told.status_code == 409
    assert f'<img src="{logo}" alt="Acme Ltd">' in told.text


def test_customers_without_a_brand_look_as_before(service: Service, ada: Browser) -> None:
    shown = claim_page(service, sent(ada, service))
    assert "<style>" not in shown.text
    assert "sha256" not in shown.headers["content-security-policy"]


def test_a_subject_for_nobody_and_reminders_stay_as_they_are(service: Service, ada: Browser) -> None:
    save(ada, TEXTS)
    path = ready(ada, service)
    place(ada, path)
    letter = next(one for one in letters(service) if one.sender is None)
    assert letter.subject == "There is a gift for you"


def test_the_preview_is_a_document_of_its_own(ada: Browser) -> None:
    save(ada, TEXTS)
    mail, claim = ada.get("/app/branding/mail?lang=de"), ada.get("/app/branding/claim?lang=fr")
    assert "sandbox" in mail.headers["content-security-policy"]
    assert "1 High Street" in mail.text
    assert 'lang="fr"' in claim.text
    assert "frame-ancestors 'self'" in claim.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("colour", "yellow", "Type a colour"),
        ("colour", "#fff;}body{display:none", "20 are allowed"),
        ("reply_to", "nobody", "Type an e-mail address"),
        ("reply_to", "jörg@acme.example", "Type an e-mail address with letters from A to Z"),
        ("reply_to", "a@acme.example\r\nBcc: b@evil.example", "not allowed"),
        ("subject", "{name} {sender}", "The only placeholder here is {sender}"),
        ("subject", "x" * 101, "100 are allowed"),
        ("subject", "two\nlines", "not allowed"),
        ("sender_name", "x" * 61, "60 are allowed"),
        ("sender_name", "Acme\u202eevil", "not allowed"),
        ("footer", "x" * 601, "600 are allowed"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    service: Service, ada: Browser, field: str, typed: str, said: str
) -> None:
    save(ada, TEXTS)
    answer = save(ada, {**TEXTS, field: typed})
    assert answer.status_code == 422
    error = re.search(rf'<span class="error" id="{field}-error">([^<]*)', answer.text)
    assert error is not None
    assert said in html.unescape(error[1])
    assert service.sql("SELECT colour, footer FROM brands")[0]["colour"] == "#ffdd00"


def test_texts_at_their_limits_are_taken(service: Service, ada: Browser) -> None:
    most = {"colour": "abc", "sender_name": "x" * 60, "reply_to": "", "subject": "x" * 100, "footer": "x" * 600}
    assert save(ada, most).status_code == 303
    assert service.sql("SELECT colour FROM brands")[0][0] == "#aabbcc"


# tests/catalogue/test_pictures.py has the others.
@pytest.mark.parametrize("content", [SCRIPT, png(MAX_SIDE + 1, 100), webp_lossy(), bytes(3 * MAX_BYTES)], ids=range(4))
def test_no_other_file_becomes_a_logo(service: Service, ada: Browser, content: bytes) -> None:
    answer = upload(ada, "logo", "logo", content)
    assert answer.status_code == 422
    assert "Choose a PNG or JPEG file of at most 256 KB, from 64 to 2,000 pixels each way." in seen(answer)
    assert wrapping(ada, picture=content).status_code == 422
    assert service.sql("SELECT count(*) FROM brand_pictures")[0][0] == 0
    assert service.sql("SELECT count(*) FROM own_wrappings")[0][0] == 0


def test_a_form_without_a_file_asks_for_one(ada: Browser) -> None:
    answer = upload(ada, "logo", "logo", b"")
    assert answer.status_code == 422
    assert "Fill this in." in seen(answer)


@pytest.mark.parametrize("content", [png(MAX_SIDE, 64), jpeg(64, MAX_SIDE)])
def test_pictures_at_their_limits_are_taken(service: Service, ada: Browser, content: bytes) -> None:
    assert upload(ada, "logo", "logo", content).status_code == 303
    [name] = re.findall(r'/pictures/([^"]+)', ada.get("/app/branding").text)[:1]
    served = service.client().get(f"/pictures/{name}")
    assert served.content == content
    assert served.headers["x-content-type-options"] == "nosniff"
    assert served.headers["content-type"] in {"image/png", "image/jpeg"}
    ada.submit("/app/branding", "/app/branding/logo/remove")
    assert "/pictures/" not in ada.get("/app/branding").text


@pytest.mark.slow
def test_old_pictures_go_and_used_ones_stay(service: Service, ada: Browser) -> None:
    wrapping(ada, picture=png(shade=255))
    [used] = service.sql("SELECT picture FROM own_wrappings")[0]
    for shade in range(MOST_PICTURES + 5):
        assert upload(ada, "logo", "logo", png(shade=shade)).status_code == 303
    names = {row[0] for row in service.sql("SELECT name FROM brand_pictures")}
    assert used in names
    assert service.sql("SELECT logo FROM brands")[0][0] in names
    assert MOST_PICTURES <= len(names) <= MOST_PICTURES + 1


@pytest.mark.slow
def test_own_wrappings_are_chosen_drawn_and_named_by_their_key(service: Service, ada: Browser) -> None:
    assert wrapping(ada, "Acme <autumn>", picture=png()).status_code == 303
    assert wrapping(ada, "Winter").status_code == 303  # `winter` is everybody's
    assert "acme-autumn" in ada.get("/app/branding").text
    assert "winter-2" in ada.get("/app/branding").text
    reference = sent(ada, service, "acme-autumn")
    shown = claim_page(service, reference).text
    assert 'class="theme-own"' in shown
    assert 'fill="#8a4210"' in shown
    assert re.search(r'<image href="/pictures/[0-9a-f]{32}\.png"', shown)
    mail = write(letters(service)[0], "gifts@example.com", at=0).decode()
    assert 'bgcolor="#8a4210"' in mail
    # Once it is removed, gifts look like those without one.
    assert ada.submit("/app/branding", "/app/branding/wrappings/acme-autumn/remove").status_code == 303
    assert 'class="theme-default"' in claim_page(service, reference).text
    assert [row["key"] for row in service.sql("SELECT key FROM own_wrappings")] == ["winter-2"]
    assert ada.submit("/app/branding", "/app/branding/wrappings/acme-autumn/remove").status_code == 404


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("name", "", "Fill this in"),
        ("name", "x" * 41, "40 are allowed"),
        ("name", "AUTUMN", "There is a wrapping with that name"),
        ("pattern", "skulls", "Choose one of the options"),
        ("paper", "#12", "Type a colour"),
        ("ribbon", '"><script>', "Type a colour"),
    ],
)
def test_a_wrong_wrapping_is_refused(ada: Browser, field: str, typed: str, said: str) -> None:
    wrapping(ada)
    answer = wrapping(ada, **{"name": "Other", field: typed})
    assert answer.status_code == 422
    assert said in seen(answer)
    assert "<script>" not in answer.text.replace("<script src=", "")


@pytest.mark.long
def test_there_are_few_wrappings(ada: Browser) -> None:
    for number in range(MOST_WRAPPINGS):
        assert wrapping(ada, f"Number {number}").status_code == 303
        ada.get("/app/branding")
    assert "Add a wrapping" not in ada.text
    assert wrapping(ada, "One more").status_code == 422


def test_test_mode_says_that_live_gifts_change_too(ada: Browser) -> None:
    shared = "Test mode and live mode share the branding: what you change here changes real gifts too."
    assert shared not in ada.text
    assert ada.post("/app/environment", environment="staging").status_code == 303
    assert shared in ada.read("/app/branding")
