"""The pages of a campaign's link: what they say in each state, and that they tell nobody who is invited."""

import html
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.campaigns.conftest import code_of, on_desk, reserve, taken, work
from tests.campaigns.test_giving import campaign_id, move, prove, wrong
from tests.web.api.conftest import Service, on_database
from tests.web.claim.conftest import HOSTS

from largesse.base.i18n.languages import DEFAULT
from largesse.campaigns.service import close_campaign, pause_campaign
from largesse.campaigns.visiting import Outcome
from largesse.encryption.vault import Vault
from largesse.lines.attempts import FAILURES_TO_PAUSE
from largesse.mail.messages import Message
from largesse.mail.messages import take as take_messages

LONGEST = f"{'a' * 64}@{'b' * 63}.{'c' * 63}.acme.example"


@dataclass
class Visitor:
    """A visitor's browser without a browser: it keeps the cookies of the campaign and of the gift."""

    service: Service
    token: str
    language: str = "en"
    host: str = field(default_factory=lambda: next(HOSTS))
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, part: str = "") -> httpx.Response:
        return self.send("GET", self.path(part))

    def ask(self, email: str) -> httpx.Response:
        return self.send("POST", self.path(), data={"email": email})

    def type(self, code: str | None) -> httpx.Response:
        return self.send("POST", self.path("/code"), data={"code": code or ""})

    def path(self, part: str = "") -> str:
        return f"/claim/campaign/{self.token}{part}"

    def send(self, method: str, path: str, **extra: Any) -> httpx.Response:
        headers = {"X-Forwarded-For": self.host, "Accept-Language": self.language, **extra.pop("headers", {})}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        response = self.service.client().request(method, path, headers=headers, **extra)
        self.cookies.update({name: value for name, value in response.cookies.items() if value})
        self.service.client().cookies.clear()
        return response


def words(page: httpx.Response) -> str:
    """The texts of a page, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.text.split("<main>")[1])).split())


def test_a_visitor_asks_for_a_code_and_opens_the_gift(service: Service) -> None:
    token = reserve(service, greeting="To a good summer!")
    visitor = Visitor(service, token)
    page = visitor.get()
    assert page.status_code == 200
    assert "Acme has a gift for you" in words(page)
    assert "To a good summer!" in words(page)
    assert visitor.cookies == {}
    asked = visitor.ask(" Zoe@acme.example ")
    assert (asked.status_code, asked.headers["location"]) == (303, visitor.path("/code"))
    cookie = asked.headers["set-cookie"]
    assert f"Path={visitor.path()}" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "acme.example" not in cookie.lower()  # a shorter word may stand in its random part by chance
    assert "If Zoe@acme.example is invited" in words(visitor.get("/code"))
    work(service)
    code = code_of(service, "Zoe@acme.example") or ""
    given = visitor.type(f"{code[:3]} {code[3:]}")
    assert given.status_code == 200
    assert "Here is your gift We have also mailed it to Zoe@acme.example" in words(given)
    action, pin = re.findall(
        r'action="(/claim/[\w-]+)">\s*<input type="hidden" name="pin" value="(\d{6})"', given.text
    )[0]
    opened = visitor.send("POST", action, data={"pin": pin})
    assert opened.status_code == 303
    assert "Coffee House" in visitor.send("GET", opened.headers["location"].removesuffix("#open")).text
    assert "You have taken it before" in words(visitor.type(code))
    assert taken(service, token) == [("zoe@acme.example", 1)]


def test_looking_changes_nothing(service: Service) -> None:
    token = reserve(service)
    count = "SELECT (SELECT count(*) FROM campaign_asks), (SELECT count(*) FROM claim_addresses), (SELECT count(*) FROM messages)"
    before = tuple(service.sql(count)[0])
    visitor = Visitor(service, token)
    for part in ("", "/code", "?lang=de"):
        visitor.get(part)
    assert visitor.get("/code").headers["location"] == visitor.path(), "no code was asked for"
    assert visitor.type("123456").status_code == 403
    assert tuple(service.sql(count)[0]) == before


def test_who_types_a_code_too_late_is_told_why(service: Service) -> None:
    visitor = Visitor(service, reserve(service))
    visitor.ask("zoe@acme.example")
    work(service)
    code = code_of(service, "zoe@acme.example")
    service.sql("UPDATE clock SET ahead_by = ahead_by + interval '16 minutes'")
    late = visitor.type(code)
    assert late.status_code == 403
    assert "A code is valid for 15 minutes, and yours is older. Type your address again" in words(late)
    assert 'name="email"' in late.text


def test_the_answer_is_the_same_for_those_who_are_invited_and_others(service: Service) -> None:
    listed = reserve(service, domains=(), mailboxes=("ann@list.example",))
    texts = []
    for email in ("ann@list.example", "bob@list.example"):
        visitor = Visitor(service, listed)
        asked = visitor.ask(f"Ann <{email}>")
        work(service)
        page = visitor.get("/code")
        refused = visitor.type("000000" if code_of(service, email) != "000000" else "000001")
        shown = [one.text.replace(email, "X") for one in (page, refused)]
        texts.append((asked.status_code, page.status_code, refused.status_code, shown))
    assert texts[0] == texts[1]
    assert texts[0][:3] == (303, 200, 403)


@pytest.mark.parametrize(
    ("email", "said"),
    [
        ("", "Please fill this in."),
        ("zoe", "This is not an e-mail address."),
        ("zoe@acme.example\r\nBcc: x@y.example", "This is not an e-mail address."),
        ("<b>@acme.example", "This is not an e-mail address."),
        (f"a@{LONGEST.replace('@', '.')}{'.b' * 30}", "This is not an e-mail address."),
    ],
)
def test_what_is_no_address_is_said_and_stays_typed(service: Service, email: str, said: str) -> None:
    page = Visitor(service, reserve(service)).ask(email)
    assert page.status_code == 422
    assert said in words(page)
    assert f'value="{html.escape(email.strip())}"'.split("\r")[0] in page.text
    assert "<b>" not in page.text


def test_the_longest_address_fits_into_the_cookie(service: Service) -> None:
    visitor = Visitor(service, reserve(service))
    long = f"{'é' * 30}@{'b' * 63}.{'c' * 63}.{'d' * 52}.example"
    assert len(long.encode()) > 245
    assert visitor.ask(long).status_code == 303
    assert long in visitor.get("/code").text
    assert visitor.ask(LONGEST).status_code == 303
    assert LONGEST in visitor.get("/code").text


def test_a_wrong_code_is_said_beside_the_field_and_five_make_the_right_one_wait(service: Service) -> None:
    visitor = Visitor(service, reserve(service))
    visitor.ask("zoe@acme.example")
    work(service)
    code = code_of(service, "zoe@acme.example")
    for typed in ("", "12345", "1234567", "abcdef", "١٢٣٤٥٦"):
        page = visitor.type(typed)
        assert page.status_code == 422
        assert "Please type the six digits in your mail." in words(page)
    for _ in range(FAILURES_TO_PAUSE):
        page = visitor.type(wrong(code))
        assert page.status_code == 403
        assert "This is not the last code that we mailed" in words(page)
    assert visitor.type(code).status_code == 403
    move(service, timedelta(minutes=14))
    assert visitor.type(code).status_code == 403


def test_each_state_has_its_page(service: Service) -> None:
    now = datetime.now(UTC).replace(hour=12)
    token = reserve(service, gifts=1, opens_at=now + timedelta(days=2), closes_at=now + timedelta(days=9))
    visitor, number = Visitor(service, token), campaign_id(service, token)

    def says(text: str, *, may_ask: bool = False) -> None:
        page = visitor.get()
        assert page.status_code == 200
        assert text in words(page)
        assert ("Mail me a code" in words(page)) is may_ask
        assert visitor.ask("zoe@acme.example").status_code == (303 if may_ask else 409)

    says("Not open yet It opens on")
    move(service, timedelta(days=3))
    last_whole_day = (now + timedelta(days=9 - 1)).date()
    says(f"Open until {DEFAULT.day(last_whole_day)}.", may_ask=True)
    work(service)
    code = code_of(service, "zoe@acme.example")
    on_desk(service, lambda desk: pause_campaign(desk.actor, number, paused=True))
    says("Paused for now")
    assert "Paused for now" in words(visitor.get("/code"))
    assert visitor.type(code).status_code == 409
    on_desk(service, lambda desk: pause_campaign(desk.actor, number, paused=False))
    assert visitor.type(code).status_code == 200
    says("All gifts are taken")
    on_desk(service, lambda desk: close_campaign(desk.actor, number))
    says("This has ended")
    work(service)
    says("This has ended")


def test_links_that_lead_nowhere(service: Service) -> None:
    draft = reserve(service)
    service.sql("UPDATE campaigns SET order_reference = 'none' || id WHERE token = $1", draft)
    try:
        for token in (draft, "x" * 16, "é", "%00", "a" * 3000):
            assert Visitor(service, token).get().status_code in {400, 404}, token
        assert "This link leads nowhere" in words(Visitor(service, draft).get())
        assert Visitor(service, draft).ask("zoe@acme.example").status_code == 404
    finally:
        service.sql("DELETE FROM campaigns WHERE token = $1", draft)


def test_only_its_own_pages_post_and_its_cookie_is_of_one_campaign(service: Service) -> None:
    visitor = Visitor(service, reserve(service))
    foreign = {"Sec-Fetch-Site": "cross-site"}
    posted = visitor.send("POST", visitor.path(), data={"email": "zoe@acme.example"}, headers=foreign)
    assert posted.status_code not in {200, 303}
    assert visitor.cookies == {}
    visitor.ask("zoe@acme.example")
    other = Visitor(service, reserve(service), cookies=visitor.cookies)
    assert other.get("/code").headers["location"] == other.path()
    forged = Visitor(service, visitor.token, cookies={"campaign": visitor.cookies["campaign"][:-8] + "A" * 8})
    assert forged.get("/code").status_code == 303
    move(service, timedelta(minutes=15))
    assert visitor.get("/code").status_code == 303, "it ends with its code"


@pytest.mark.parametrize(
    ("language", "said"), [("fr", "Acme a un cadeau pour vous"), ("de", "Acme hat ein Geschenk für Sie")]
)
def test_its_pages_and_mails_are_in_the_language_of_the_visitor(service: Service, language: str, said: str) -> None:
    visitor = Visitor(service, reserve(service), language)
    page = visitor.get()
    assert said in words(page)
    assert page.headers["content-language"] == language
    visitor.ask("zoe@acme.example")
    assert service.sql("SELECT language FROM campaign_asks ORDER BY id DESC LIMIT 1")[0][0] == language


def test_mail_about_the_gift_is_in_the_language_in_which_its_visitor_asked(service: Service) -> None:
    token = reserve(service, domains=(), mailboxes=("zoe@acme.example", "yan@acme.example"))
    for email, language in (("zoe@acme.example", "fr"), ("yan@acme.example", "de")):
        assert prove(service, token, email, language).outcome is Outcome.GIVEN

    async def letters(connection: Any) -> list[Message]:
        async with connection.transaction():
            return await take_messages(
                connection, 100, Vault(service.settings.master_keys), lambda _: "https://gifts.example"
            )

    found = {
        one.letter.email: one.letter.language.tag
        for one in on_database(service.database_url, letters)
        if one.letter.kind == "gift"
    }
    assert (found["zoe@acme.example"], found["yan@acme.example"]) == ("fr", "de")
