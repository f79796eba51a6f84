"""Campaigns in the web application: setting and reserving them, what they gave, pauses and ends, and whose they are."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.campaigns.conftest import code_of
from tests.campaigns.conftest import work as work_on_campaigns
from tests.web.api.conftest import Service
from tests.web.console.approving import set_rule
from tests.web.console.conftest import Browser, SignIn, signed_in
from tests.web.console.orders import work as follow
from tests.web.console.sending import WORLD
from tests.web.console.test_automations import main_of

from largesse.campaigns.model import MOST_CAMPAIGNS, MOST_DOMAINS, MOST_GIFTS, MOST_GREETING, MOST_NAME
from largesse.db.session import Session

__all__ = ["WORLD"]


@pytest.fixture(autouse=True)
def as_before(service: Service) -> Iterator[None]:
    yield
    service.sql("UPDATE campaigns SET due_at = clock_now(), closes_at = clock_now() WHERE ended_at IS NULL")
    work_on_campaigns(service)
    service.sql("UPDATE campaigns SET ended_at = clock_now() WHERE ended_at IS NULL")
    service.sql("DELETE FROM drafts")
    service.sql("DELETE FROM approval_rules")


def fields(service: Service, **changes: Any) -> dict[str, str]:
    now = datetime.now(UTC)
    form = {
        "name": "Summer party",
        "template": str(service.ids["templates"]["welcome"]),
        "account": str(service.ids["funding_accounts"]["gbp"]),
        "gifts": "4",
        "domains": "WWW.acme.example, @Sub.Acme.example",
        "addresses": "",
        "opens": f"{now:%Y-%m-%dT%H:%M}",
        "closes": f"{now + timedelta(days=9):%Y-%m-%d}",
        "greeting": "",
    }
    return {**form, **changes}


def set_one(browser: Browser, service: Service, path: str = "new", **changes: Any) -> httpx.Response:
    return browser.submit(f"/app/campaigns/{path}", **fields(service, **changes))


def reserve(browser: Browser, review: str) -> str:
    """Reserves the gifts of the campaign on the review; returns the path of its page."""
    browser.get(review)
    quote = re.findall(r'name="quote" value="([^"]+)"', main_of(browser))[0]
    placed = browser.post(review.replace("/review", "/place"), quote=quote)
    assert placed.status_code == 303, placed.text
    return str(browser.get(placed.headers["location"]).headers["location"])


def visit(service: Service, token: str, email: str) -> None:
    """A visitor gets a gift."""
    client = service.client()
    cookie = client.post(f"/claim/campaign/{token}", data={"email": email}).cookies["campaign"]
    client.cookies.clear()
    work_on_campaigns(service)
    headers = {"Cookie": f"campaign={cookie}"}
    given = client.post(f"/claim/campaign/{token}/code", data={"code": code_of(service, email)}, headers=headers)
    assert given.status_code == 200, given.text


def test_before_the_first_campaign_its_page_says_what_one_is(own_service: Service) -> None:
    ada = signed_in(own_service, "ada@acme.example")
    assert "A campaign gives gifts by one link" in ada.read("/app/campaigns")


def test_a_campaign_is_set_reserved_given_paused_and_ended(service: Service, ada: Browser) -> None:
    before = service.balance("gbp")
    review = str(set_one(ada, service, greeting="Enjoy!").headers["location"])
    ada.sees(review, "4 gifts by the campaign's link", "Who is invited acme.example, sub.acme.example")
    ada.says("Greeting Enjoy!")
    assert "When Now" not in ada.text
    assert "No date" not in ada.text
    assert "Reserve 4 gifts for" in ada.text
    assert service.balance("gbp") == before
    [number] = service.sql("SELECT id FROM campaigns WHERE ended_at IS NULL")[0]
    path = f"/app/campaigns/{number}"
    assert "Nothing is reserved yet" in ada.read(path)
    assert "QR code" not in main_of(ada)
    assert reserve(ada, review) == path
    spent = before - service.balance("gbp")
    assert spent > 0
    ada.get(path)
    [link] = re.findall(r'data-copy="([^"]+)"', main_of(ada))
    assert link.startswith("https://gifts.example/claim/campaign/")
    assert '<svg class="qr"' in main_of(ada) or "qr" in main_of(ada)
    ada.says("0 of 4", "Nobody has taken a gift yet. Share the link above.")
    visit(service, link.rpartition("/")[2], "zoe@sub.acme.example")
    ada.sees(path, "1 of 4", "zoe@sub.acme.example", "Unclaimed")
    assert ada.post(f"{path}/pause").status_code == 303
    assert "Visitors get nothing until you resume it." in ada.read(path)
    assert ada.post(f"{path}/resume").status_code == 303
    assert "3 gifts that nobody took are cancelled" in ada.read(f"{path}/end")
    assert ada.post(f"{path}/end").status_code == 303
    work_on_campaigns(service)
    assert service.balance("gbp") == pytest.approx(before - spent / 4)
    ada.sees(path, "Ended", "Refunded")
    assert "Summer party" in ada.read("/app/campaigns")
    assert "Ada ended the campaign Summer party" in ada.read("/app/audit")


def test_the_order_of_a_campaign_shows_it_and_what_its_end_refunded(service: Service, ada: Browser) -> None:
    path = reserve(
        ada, str(set_one(ada, service, domains="", addresses="zoe@a.example, yan@a.example").headers["location"])
    )
    ada.get(path)
    [link] = re.findall(r'data-copy="([^"]+)"', main_of(ada))
    [order] = set(re.findall(r"/app/orders/\w+", main_of(ada)))
    visit(service, link.rpartition("/")[2], "zoe@a.example")
    ada.get(order)
    assert "Summer party" in main_of(ada).partition("</h1>")[0]  # not the first visitor, and no reference
    assert f'<a href="{path}">Summer party</a>' in main_of(ada)
    assert "Copy the claim link" not in ada.text  # it would be refused
    follow(service)
    for lists_it in ("/app/orders", "/app", f"/app/search?q={order[-20:]}"):
        assert re.search(rf'href="{order}">(?:(?!</a>).)*Summer party', ada.get(lists_it).text, re.DOTALL), lists_it
    service.sql(
        "UPDATE messages SET state = 'bounced', reason = '550 No such user' WHERE kind = 'gift' AND email = 'zoe@a.example'"
    )
    ada.sees(order, "zoe@a.example Bounced", "Send the mail again")
    assert ada.post(f"{order}/resend", number="1").status_code == 303
    ada.sees(order, "zoe@a.example Sending", "Code 2 Not opened")
    ada.post(f"{path}/end")
    work_on_campaigns(service)
    assert "3 gifts were left at the end of the campaign: £30.00 came back" in ada.read(order)
    assert len(re.findall("<li><span>(?:Order|Refund)<small>", main_of(ada))) == 2
    assert "For listed addresses" in ada.read(path)  # the list is deleted, and nobody says how long it was


def test_the_end_of_a_campaign_without_gifts_left_says_that_nothing_comes_back(service: Service, ada: Browser) -> None:
    path = reserve(ada, str(set_one(ada, service, gifts="1").headers["location"]))
    ada.get(path)
    [link] = re.findall(r'data-copy="([^"]+)"', main_of(ada))
    visit(service, link.rpartition("/")[2], "zoe@acme.example")
    assert "All gifts were taken, so none is cancelled and no money comes back." in ada.read(f"{path}/end")
    assert "£0.00" not in main_of(ada)


def test_the_list_and_the_page_agree_that_no_gift_is_left(service: Service, ada: Browser) -> None:
    path = reserve(ada, str(set_one(ada, service).headers["location"]))
    ada.get(path)
    [order] = set(re.findall(r"/app/orders/\w+", main_of(ada)))
    assert "All taken" not in ada.read("/app/campaigns")
    assert ada.submit(f"{order}/cancel").status_code == 303
    for page in (path, "/app/campaigns"):
        assert "All taken" in ada.read(page), page


def test_the_list_asks_as_often_for_two_campaigns_as_for_one(
    service: Service, ada: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Session._execute

    async def listening(session: Session, query: str, *arguments: Any, **more: Any) -> Any:
        asked.append(query)
        return await ask(session, query, *arguments, **more)

    reserve(ada, str(set_one(ada, service, gifts="1").headers["location"]))
    with monkeypatch.context() as patched:
        patched.setattr(Session, "_execute", listening)
        ada.get("/app/campaigns")
    for_one = sum("FROM lines" in query for query in asked)
    ada.get(reserve(ada, str(set_one(ada, service, name="Second", gifts="1").headers["location"])))
    [link] = re.findall(r'data-copy="([^"]+)"', main_of(ada))
    visit(service, link.rpartition("/")[2], "zoe@acme.example")
    asked.clear()
    with monkeypatch.context() as patched:
        patched.setattr(Session, "_execute", listening)
        listed = ada.read("/app/campaigns")
    assert listed.count("All taken") == 1, "each campaign has the state of its own gifts"
    assert sum("FROM lines" in query for query in asked) == for_one == 1


def test_it_is_changed_until_its_gifts_are_reserved(service: Service, ada: Browser) -> None:
    review = str(set_one(ada, service).headers["location"])
    [number] = service.sql("SELECT id FROM campaigns WHERE ended_at IS NULL")[0]
    ada.get(f"/app/campaigns/{number}/edit")
    assert 'value="acme.example, sub.acme.example"' in main_of(ada)
    changed = set_one(
        ada,
        service,
        f"{number}/edit",
        gifts="2",
        domains="",
        addresses="'zoe@list.example' <Zoe@list.example>, yan@list.example",
    )
    assert changed.headers["location"] == review
    assert "2 gifts by the campaign's link" in ada.read(review)
    ada.get(f"/app/campaigns/{number}/edit")
    assert "yan@list.example\nzoe@list.example" in main_of(ada)
    reserve(ada, review)
    assert ada.get(f"/app/campaigns/{number}/edit").headers["location"] == f"/app/campaigns/{number}"
    said = ada.submit("/app/campaigns/new", f"/app/campaigns/{number}/edit", **fields(service, gifts="3"))
    assert said.headers["location"] == f"/app/campaigns/{number}"
    ada.sees(f"/app/campaigns/{number}", "Its gifts are reserved", "For 2 listed addresses")


def test_it_opens_and_closes_by_the_clock_of_who_sets_it(service: Service, ada: Browser) -> None:
    """In July, New York is four hours behind UTC."""
    now = datetime.now(UTC)
    july = now.year if now.month < 7 else now.year + 1
    service.sql("UPDATE people SET zone = 'America/New_York' WHERE email = 'ada@acme.example'")
    try:
        assert set_one(ada, service, opens=f"{july}-07-01T21:30", closes=f"{july}-07-10").status_code == 303
    finally:
        service.sql("UPDATE people SET zone = NULL WHERE email = 'ada@acme.example'")
    [row] = service.sql("SELECT opens_at, closes_at FROM campaigns WHERE ended_at IS NULL")
    assert [f"{at:%m-%d %H:%M:%S}" for at in row] == ["07-02 01:30:00", "07-11 03:59:59"]
    ada.sees("/app/campaigns", f"11 Jul {july}, 03:59")  # in UTC, where it is not the last day that was typed


def test_a_draft_that_was_deleted_begins_again(service: Service, ada: Browser) -> None:
    review = str(set_one(ada, service).headers["location"])
    service.sql("DELETE FROM drafts")
    [number] = service.sql("SELECT id FROM campaigns WHERE ended_at IS NULL")[0]
    assert "You set it more than two weeks ago." in ada.read(f"/app/campaigns/{number}")
    again = str(set_one(ada, service, f"{number}/edit").headers["location"])
    assert again != review
    assert reserve(ada, again) == f"/app/campaigns/{number}"


def test_its_draft_is_changed_by_the_campaign_alone(service: Service, ada: Browser) -> None:
    review = str(set_one(ada, service).headers["location"])
    draft = review.split("/")[3]
    for page in ("recipients", "message", "delivery", "contacts"):
        assert ada.get(f"/app/send/{draft}/{page}").status_code == 404, page
    assert ada.submit(review, f"/app/send/{draft}/codes", quantity="5000").status_code == 404
    assert ada.post(f"/app/send/{draft}/drop").status_code == 404
    ada.get("/app/send")
    assert draft not in main_of(ada)


@pytest.mark.parametrize(
    ("field", "changes", "said"),
    [
        ("name", {"name": ""}, "Fill this in."),
        ("name", {"name": "x" * (MOST_NAME + 1)}, f"At most {MOST_NAME} are allowed."),
        ("gifts", {"gifts": "0"}, "Type a whole number from 1 to 5,000."),
        ("gifts", {"gifts": str(MOST_GIFTS + 1)}, "Type a whole number from 1 to 5,000."),
        ("gifts", {"gifts": "some"}, "Type a whole number"),
        ("template", {"template": "999999"}, "Choose a template from the list."),
        ("account", {"account": "999999"}, "Choose an account that you can use."),
        ("opens", {"opens": "soon"}, "“soon” cannot be read."),
        ("opens", {"opens": "0026-12-01T10:00"}, "Choose a day and a time."),
        ("opens", {"opens": "2099-01-01T10:00"}, "Choose a time at most 366 days from now."),
        ("closes", {"closes": ""}, "Fill this in."),
        ("closes", {"closes": "2020-01-01"}, "Choose a day that has not passed and is not before it opens."),
        ("closes", {"closes": "2999-01-01"}, "Choose a day at most 366 days after it opens."),
        ("domains", {"domains": ""}, "Type domains here, or addresses below: one of the two."),
        ("domains", {"addresses": "zoe@acme.example"}, "Type domains here, or addresses below: one of the two."),
        ("domains", {"domains": "domain!"}, "This is not a domain: domain!."),
        ("domains", {"domains": ",".join(f"d{n}.example" for n in range(MOST_DOMAINS + 1))}, "Name at most 20 domains."),
        ("addresses", {"domains": "", "addresses": "zoe@acme.example, nobody"}, "This is not an e-mail address: nobody."),
        ("addresses", {"domains": "", "addresses": "Zoë\tzoe@acme.example"}, "This is not an e-mail address: Zoë."),
        ("addresses", {"domains": "", "addresses": "\n".join(f"p{n}@acme.example" for n in range(10_001))}, "List at most 10,000 addresses."),
        ("greeting", {"greeting": "x" * (MOST_GREETING + 1)}, f"At most {MOST_GREETING} are allowed."),
        ("greeting", {"greeting": "Dear {first_name} {nope|x}"}, "Remove {first_name}, {nope|x}: visitors are not contacts"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_lost(
    service: Service, ada: Browser, field: str, changes: dict[str, str], said: str
) -> None:
    page = set_one(ada, service, **changes)
    assert page.status_code == 422
    beside = re.findall(rf'id="{field}-error">([^<]+)<', page.text)
    assert said in (beside or [""])[0].replace("&#39;", "'")
    typed = fields(service, **changes)
    assert typed["domains"] in page.text
    assert typed["name"] in page.text
    assert service.sql("SELECT count(*) FROM campaigns WHERE ended_at IS NULL")[0][0] == 0


def test_a_template_whose_gift_is_gone_is_refused_and_nothing_is_lost(service: Service, sign_in: SignIn) -> None:
    service.sql("UPDATE templates SET value_minor = 700 WHERE name = 'Welcome'")
    try:
        page = set_one(sign_in("ada@acme.example"), service, greeting="Keep this")
    finally:
        service.sql("UPDATE templates SET value_minor = 1000 WHERE name = 'Welcome'")
    assert page.status_code == 422
    assert 'id="template-error">The gift of this template is gone, or has another price now.' in page.text
    assert "Keep this" in page.text
    assert service.sql("SELECT count(*) FROM campaigns WHERE ended_at IS NULL")[0][0] == 0


def test_the_limits_themselves_are_taken(service: Service, ada: Browser) -> None:
    most = {
        "name": "x" * MOST_NAME,
        "gifts": str(MOST_GIFTS),
        "domains": "",
        "addresses": "\n".join(f"p{n}@acme.example" for n in range(10_000)),
        "greeting": "x" * MOST_GREETING,
    }
    assert set_one(ada, service, **most).status_code == 303
    domains = " ".join(f"d{n}.example" for n in range(MOST_DOMAINS))
    assert set_one(ada, service, domains=domains).status_code == 303
    page = set_one(ada, service, name="summer PARTY")
    assert page.status_code == 422
    assert "Another campaign has this name." in page.text
    service.sql(
        """
        INSERT INTO campaigns (customer_id, environment, name, user_id, token, order_reference, gifts, domains, opens_at, closes_at, due_at)
        SELECT customer_id, environment, 'c' || n, user_id, 't' || n, 'r' || n, 1, domains, opens_at, closes_at, due_at
        FROM campaigns, generate_series(3, $1) AS n WHERE name = 'Summer party' AND ended_at IS NULL
        """,
        MOST_CAMPAIGNS,
    )
    page = set_one(ada, service, name="One more")
    assert "Your company has 100 campaigns. End one first." in page.text
    service.sql("DELETE FROM campaigns WHERE token LIKE 't%' AND length(token) < 6")


def test_an_administrator_reserves_the_campaign_of_somebody_else(service: Service, cem: Browser, ada: Browser) -> None:
    for asks in (False, True):
        if asks:
            set_rule(ada, role="member")
        review = str(set_one(cem, service, name="Of Cem").headers["location"])
        if asks:
            cem.get(review)
            assert cem.post(review.replace("/review", "/ask")).status_code == 303
        [number] = service.sql("SELECT id FROM campaigns WHERE ended_at IS NULL")[0]
        path = f"/app/campaigns/{number}"
        ada.sees(path, "Cem has not reserved its gifts.", "Set by Cem")
        assert "Of Cem" in ada.get(f"{path}/edit").text
        saved = set_one(ada, service, f"{number}/edit", name="Of Ada", gifts="3")
        assert saved.status_code == 303
        assert cem.get(path).status_code == 404
        assert f"{review}/place" not in cem.get(review).text
        reserve(ada, str(saved.headers["location"]))
        ada.sees(path, "Set by Ada", "0 of 3", "Link to share")
        assert service.findings() == []
        assert ada.submit(path, f"{path}/end").status_code == 303
        work_on_campaigns(service)


def test_each_sees_their_own_and_administrators_all(service: Service, cem: Browser, ada: Browser, gil: Browser) -> None:
    review = str(set_one(ada, service, name="Of Ada").headers["location"])
    [number] = service.sql("SELECT id FROM campaigns WHERE ended_at IS NULL")[0]
    path = f"/app/campaigns/{number}"
    for other in (cem, gil):
        other.get("/app/campaigns")
        assert "Of Ada" not in main_of(other)
        for page in (path, f"{path}/edit", f"{path}/end", review):
            assert other.get(page).status_code == 404 or page == review, page
        other.get("/app/campaigns/new")
        for act in ("pause", "resume", "end"):
            assert other.post(f"{path}/{act}").status_code == 404, act
        assert other.post(f"{path}/edit", **fields(service)).status_code == 404
    [row] = service.sql("SELECT paused_at, closes_at > clock_now() FROM campaigns WHERE id = $1", number)
    assert tuple(row) == (None, True)
    [cem] = service.sql("SELECT id FROM users WHERE email = 'cem@acme.example'")
    service.sql("UPDATE campaigns SET user_id = $2 WHERE id = $1", number, cem["id"])
    ada.get("/app/campaigns")
    assert "Of Ada" in main_of(ada)
    assert "Cem" in main_of(ada)
    assert ada.submit(path, f"{path}/pause").status_code == 303
    assert ada.submit(path, f"{path}/end").status_code == 303
