"""What recipients are told of a gift beside its name: pictures, descriptions, how to redeem, terms."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from tests.catalogue.images import png
from tests.web.claim.conftest import Codes, form_of

from largesse.catalogue.pictures import read_picture, save_pictures
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.mail.letter import Letter
from largesse.mail.messages import fan_out, take

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    service_accounts: [{key: hr-bot, name: HR bot}]
    api_keys: [{key: hr, service_account: hr-bot, environment: production}]
    funding_accounts: [{key: gbp, name: Acme float, master: true, currency: GBP, balance: 1000.00}]
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [25],
     description: "Hot & <fresh>.", how_to_redeem: "Show it.\\nDrink it.", terms: No refunds.}
  - {key: tea, name: Tea, digital: true, currency: GBP, countries: [GB], denominations: [25]}
  - {key: flowers, name: Flowers, digital: false, currency: GBP, cost: 15.00, postage: {GB: 2}, description: Fresh stems., terms: Colours follow the season.}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [25], products: [coffee, tea, flowers]}
"""
PICTURE = read_picture(png())


@pytest.fixture(scope="module", autouse=True)
def with_a_picture(service: Any) -> None:
    """Coffee has a picture. (A world in a test lies in no folder.)"""
    service.run(lambda connection: save_pictures(connection, [PICTURE]))
    service.sql("UPDATE products SET picture = $1 WHERE key = 'coffee'", PICTURE.name)


def pictures(page: str) -> list[str]:
    return re.findall(r'<img src="([^"]+)" alt=""', page)


def test_choices_show_what_they_are_and_the_one_chosen_its_terms(service: Any, recipient: Any, codes: Codes) -> None:
    gift = recipient.gift(codes("collection", "treats", value=25)[0])
    page = recipient.get(gift)
    assert pictures(page.text) == [f"/pictures/{PICTURE.name}"]
    assert recipient.get(pictures(page.text)[0]).content == png()
    assert "Hot & <fresh>." in unescape(page.text)
    assert "<fresh>" not in page.text
    assert "Fresh stems." in page.text
    assert "img-src 'self'" in page.headers["content-security-policy"]

    coffee = service.ids["products"]["coffee"]
    sure = recipient.get(f"{gift}/choose?product={coffee}")
    assert pictures(sure.text) == [f"/pictures/{PICTURE.name}"]
    assert "No refunds." in sure.text

    tea = recipient.get(f"{gift}/choose?product={service.ids['products']['tea']}")
    assert pictures(tea.text) == []
    assert f"hue-{service.ids['products']['tea'] % 8}" in tea.text
    assert "<details" not in tea.text


def test_a_parcel_says_what_it_is_and_its_terms(service: Any, recipient: Any, codes: Codes) -> None:
    gift = recipient.gift(codes("gift", "flowers")[0])
    page = recipient.get(gift)
    key = form_of(page)["key"]
    recipient.post(
        f"{gift}/address", key=key, name="Sam Doe", street_address="1 High Street", city="Leeds", postal_code="LS1 4DY"
    )
    for text in (page.text, recipient.get(gift).text):
        assert "Fresh stems." in text
        assert "Colours follow the season." in text, "also while the parcel is awaited"


def test_a_voucher_says_how_to_redeem_it_in_the_shops_words(
    recipient: Any, codes: Codes, stock: Callable[..., Any]
) -> None:
    for name, steps in (("coffee", ["Show it.", "Drink it."]), ("tea", ["In a shop, show the QR code at the till."])):
        stock(name, [f"{name}-1"])
        page = recipient.get(recipient.gift(codes("gift", name)[0])).text
        assert "Your voucher" in page
        listed = re.findall(r"<li>(.*?)</li>", page)
        assert listed[: len(steps)] == steps
        assert ("No refunds." in page) == (name == "coffee")


def test_mail_names_the_picture_and_says_the_rest(service: Any) -> None:
    for what, name in (("gift", "coffee"), ("gift", "tea"), ("collection", "treats")):
        service.send(what, name, recipients=[{"email": f"{name}@example.com"}], value=25)

    async def letters(database: Any, vault: Vault) -> dict[str, Letter]:
        async with database.transaction(WORKER) as connection:
            await fan_out(connection, 100)
        async with database.transaction(WORKER) as connection:
            taken = await take(connection, 100, vault, lambda _: "https://gifts.example/shop")
        return {message.letter.email: message.letter for message in taken}

    found = service.on_pool(letters)
    coffee = found["coffee@example.com"]
    assert coffee.picture == f"https://gifts.example/shop/pictures/{PICTURE.name}"
    assert coffee.details.terms == "No refunds."
    for plain in ("tea@example.com", "treats@example.com"):
        assert found[plain].picture is None
        assert found[plain].details.description is None
