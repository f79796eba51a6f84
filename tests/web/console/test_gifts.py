"""The pages Catalogue and Templates: what is made there is sent by programs at once, and concerns nobody else."""

import base64
import hashlib
import html
import re

import httpx
import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.gifts import PICTURE, WORLD, acts, ada, gil, made, send, with_a_picture

from largesse.templates import service as templates
from largesse.web.console.gifts.browsing import CARDS

__all__ = ["WORLD", "ada", "gil", "with_a_picture"]


# The catalogue


def test_the_catalogue_shows_pictures_prices_and_what_is_said(service: Service, ada: Browser) -> None:
    page = ada.get("/app/catalogue")
    assert f'src="/pictures/{PICTURE.name}"' in page.text
    ada.says("Coffee House e-gift £5.00, £10.00, £25.00", "Shop e-gift £1.00 \N{EN DASH} £500.00")
    ada.says("Autumn hamper £17.00 including postage and VAT")
    assert "Globex club" not in ada.text
    assert "Bookshop" in ada.read("/app/catalogue?country=FR")
    assert "Coffee" not in ada.text
    assert "1 gift " in ada.read("/app/catalogue?q=hamper")

    ada.sees(f"/app/catalogue/{service.ids['products']['coffee']}?country=GB", "Hot & fresh.", "Show it. Drink it.")
    ada.says("No refunds.", "Ireland United Kingdom", "Send this")
    assert ada.get(f"/app/catalogue/{service.ids['products']['books']}").status_code == 200
    for gone in (service.ids["products"]["club"], 999, 2**31):
        assert ada.get(f"/app/catalogue/{gone}").status_code == 404


# Templates


def test_a_template_made_here_is_sent_by_programs_and_changed_and_removed(service: Service, ada: Browser) -> None:
    template = made(service, ada, from_name="Ada", message="Good morning!", expiry_after_days="30")
    page = ada.get(f"/app/templates/{template}")
    assert "Morning" in ada.text
    assert "Good morning!" in held(page, "The mail")

    listed = service.client("hr").get("/templates").json()[0]
    assert listed == {
        **listed, "id": template, "name": "Morning", "giftName": "Coffee House e-gift", "value": 10.0, "country": "GB",
        "wrappingKey": "gold", "fromName": "Ada", "message": "Good morning!", "expiryAfterDays": 30,
    }  # fmt: skip
    assert send(service, "template", template).json()["value"] == 10.0

    ada.get(f"/app/templates/{template}")
    shop = str(service.ids["products"]["shop"])
    answer = ada.post(
        f"/app/templates/{template}", product=shop, country="GB", value="7,50", name="Evening", wrapping_key="stars"
    )
    assert answer.headers["location"] == f"/app/templates/{template}"
    assert send(service, "template", template).json()["value"] == 7.5

    assert "Evening" in ada.read(f"/app/templates/{template}/remove")
    assert ada.post(f"/app/templates/{template}/remove").headers["location"] == "/app/templates"
    assert send(service, "template", template).status_code == 400
    assert template not in [one["id"] for one in service.client("hr").get("/templates").json()]
    assert ada.get(f"/app/templates/{template}").status_code == 404
    assert acts(service)[-3:] == ["template.created", "template.changed", "template.removed"]


def test_an_old_window_keeps_what_somebody_else_changed_of_a_template(service: Service, ada: Browser) -> None:
    path = f"/app/templates/{made(service, ada, from_name='Ada', message='Good morning!')}"
    page = ada.get(path).text
    was = dict(re.findall(r'name="(was_\w+)" value="([^"]*)"', page))
    mine = {name.removeprefix("was_"): value for name, value in was.items() if name != "was_collection"}
    assert (mine["value"], mine["name"], mine["message"]) == ("10.00", "Morning", "Good morning!")
    theirs = {**mine, "value": "25.00", "message": "Good day!"}
    assert ada.submit(path, **was, **theirs).status_code == 303
    assert ada.submit(path, **was, **{**mine, "name": "Each morning"}).status_code == 303
    [row] = service.sql("SELECT name, value_minor, message FROM templates WHERE id = $1", int(path.rpartition("/")[2]))
    assert tuple(row) == ("Each morning", 25_00, "Good day!")
    ada.page = ada.submit(path, **was, **{**mine, "value": "5.00"})
    assert ada.page.status_code == 422
    ada.says("It is now: 25.00")


def held(page: httpx.Response, title: str) -> str:
    """The document that a page holds in the frame of that title."""
    return html.unescape(re.findall(rf'srcdoc="([^"]*)" title="{title}" sandbox', page.text)[0])


def test_a_template_shows_the_mail_and_the_page_as_recipients_will_see_them(service: Service, ada: Browser) -> None:
    page = ada.get(f"/app/templates/{made(service, ada, message='Bonjour <b>!', from_name='Ada')}")
    mail, claim = held(page, "The mail"), held(page, "The page of the gift")
    assert "Bonjour &lt;b&gt;!" in mail
    assert f'src="/pictures/{PICTURE.name}"' in mail
    assert "No refunds." in mail
    assert "theme-gold" in claim
    assert "<script" not in mail + claim
    policy = page.headers["content-security-policy"]
    for sheet in re.findall(r"<style>(.*?)</style>", mail, re.DOTALL):
        named = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
        assert f"'sha256-{named}'" in policy, "the page's policy is that of what it holds"


def test_what_is_typed_is_shown_before_it_is_saved(service: Service, ada: Browser) -> None:
    template = made(service, ada, message="As it was", from_name="Ada")
    before = service.sql("SELECT * FROM templates ORDER BY id"), acts(service)
    coffee = str(service.ids["products"]["coffee"])
    typed = {"product": coffee, "country": "GB", "value": "25", "wrapping_key": "stars", "message": "Bonjour"}
    for path in (f"/app/templates/{template}", "/app/templates"):
        page = ada.submit(f"/app/templates/{template}", path, **typed, look="fr")
        assert page.status_code == 200, "the name may come later"
        mail, claim = held(page, "The mail"), held(page, "The page of the gift")
        assert "Bonjour" in mail
        assert "25,00" in mail
        assert 'lang="fr"' in claim
        assert "theme-stars" in claim
        assert "Ada" not in mail + claim, "the sender was taken out"
        assert "Bonjour</textarea>" in page.text
        assert 'value="stars" checked' in page.text
    page = ada.submit(f"/app/templates/{template}", **{**typed, "value": "26"}, look="fr")
    assert page.status_code == 422
    assert "srcdoc" not in page.text, "what cannot be sent is not shown, nor what was saved in its place"
    assert (service.sql("SELECT * FROM templates ORDER BY id"), acts(service)) == before


def test_a_template_is_copied(service: Service, ada: Browser) -> None:
    page = ada.get(f"/app/templates/new?copy={service.ids['templates']['welcome']}")
    assert 'value="Copy of Welcome"' in page.text
    assert "Welcome!</textarea>" in page.text
    assert '<option value="10.00" selected>' in page.text
    assert 'value="birthday" checked' in page.text, "the wrapping that recipients see"


def test_the_list_says_how_often_each_was_used(service: Service, ada: Browser) -> None:
    template = made(service, ada, name="Often")
    for _ in range(2):
        send(service, "template", template)
    service.sql(
        """
        INSERT INTO report_orders (customer_id, order_id, environment, group_id, state, created_at, codes, spent_minor, claimed,
            fulfilled, expired, cancelled, bounced, claim_days, claim_counts, cancel_days, cancel_counts, ages, template_id)
        SELECT customer_id, id, environment, 1, 'waiting', created_at, 1, 1, 0, 0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', template_id
        FROM orders WHERE template_id = $1
        """,
        template,
    )
    ada.get("/app/templates")
    row = re.search(r"Often</a>.*?</tr>", ada.page.text, re.DOTALL)
    assert row is not None
    assert ">2</td>" in row[0]
    assert "<time" in row[0]


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"value": "11"}, "It can be sent for: £5.00, £10.00, £25.00."),
        ({"value": "x"}, "Type an amount"),
        ({"name": ""}, "Fill this in."),
        ({"name": "x" * 201}, "At most 200 are allowed"),
        ({"name": "a\u202eb"}, "that are not allowed"),
        ({"wrapping_key": "newspaper"}, "Choose one of the options."),
        ({"from_name": "x" * 33}, "At most 32 are allowed"),
        ({"message": "x" * 257}, "At most 256 are allowed"),
        ({"expiry_after_days": "0"}, "from 1 to 36500"),
        ({"expiry_after_days": "36501"}, "from 1 to 36500"),
    ],
)
def test_what_is_wrong_with_a_template_is_said_and_what_was_typed_stays(
    service: Service, ada: Browser, fields: dict[str, str], wrong: str
) -> None:
    before = service.sql("SELECT count(*) FROM templates")
    said = {"value": "10", "name": "Mine", "wrapping_key": "gold", "message": "Typed."}
    answer = ada.submit("/app/templates", product=str(service.ids["products"]["coffee"]), **{**said, **fields})
    assert answer.status_code == 422
    assert wrong in answer.text
    if "message" not in fields:
        assert "Typed.</textarea>" in answer.text
    assert service.sql("SELECT count(*) FROM templates") == before


def test_there_are_so_many_templates_at_most(service: Service, ada: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST_TEMPLATES", 0)
    coffee = str(service.ids["products"]["coffee"])
    answer = ada.submit("/app/templates", product=coffee, value="10", name="One more", wrapping_key="gold")
    assert answer.status_code == 422
    assert "Delete one first." in answer.text


def test_the_oldest_of_as_many_templates_as_there_can_be_is_offered_everywhere(service: Service, ada: Browser) -> None:
    welcome = service.ids["templates"]["welcome"]
    service.sql(
        """
        INSERT INTO templates (customer_id, key, name, gift_name, product_id, value_minor, currency, country)
        SELECT customer_id, 'many-' || n, 'Many', gift_name, product_id, value_minor, currency, country
        FROM templates, generate_series(1, $2::int) AS n WHERE id = $1
        """,
        welcome,
        templates.MOST_TEMPLATES - len(service.ids["templates"]),
    )
    try:
        for form in ("automations", "campaigns"):
            assert f'<option value="{welcome}"' in ada.get(f"/app/{form}/new").text
        last = -(-templates.MOST_TEMPLATES // CARDS)
        assert f"template={welcome}" in ada.get(f"/app/send?tab=templates&page={last}").text
    finally:
        service.sql("DELETE FROM templates WHERE key LIKE 'many-%'")
