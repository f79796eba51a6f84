"""A customer with gifts to look at, and what its people make of them."""

from typing import Any

import httpx
import pytest
from tests.catalogue.images import png
from tests.web.api.conftest import Service, on_database
from tests.web.console.conftest import Browser, signed_in

from largesse.catalogue.pictures import read_picture, save_pictures

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
      - {email: mia@acme.example, name: Mia, role: member}
      - {email: vera@acme.example, name: Vera, role: viewer}
    service_accounts: [{key: hr-bot, name: HR bot}]
    api_keys:
      - {key: hr, service_account: hr-bot, environment: production}
      - {key: hr-test, service_account: hr-bot, environment: staging}
    funding_accounts:
      - {key: gbp, name: Acme float, master: true, currency: GBP, balance: 100000.00}
      - {key: test-gbp, name: Test float, master: true, currency: GBP, environment: staging, balance: 1000.00}
    templates:
      - {key: welcome, name: Welcome, product: coffee, value: 10, wrapping_key: balloons, message: Welcome!}
  - key: globex
    name: Globex
    plan: pro
    funding: balance
    users: [{email: gil@globex.example, name: Gil, role: admin}]
    service_accounts: [{key: bot, name: Bot}]
    api_keys: [{key: globex, service_account: bot, environment: production}]
    funding_accounts: [{key: globex-gbp, name: Float, master: true, currency: GBP, balance: 1000.00}]
products:
  - {key: coffee, name: Coffee House e-gift, digital: true, currency: GBP, countries: [GB, IE], denominations: [5, 10, 25],
     description: Hot & fresh., how_to_redeem: "Show it.\\nDrink it.", terms: No refunds.}
  - {key: shop, name: Shop e-gift, digital: true, currency: GBP, countries: [GB], min_amount: 1, max_amount: 500}
  - {key: cinema, name: Cinema e-gift, digital: true, currency: GBP, countries: [GB], denominations: [12.50]}
  - {key: hamper, name: Autumn hamper, digital: false, currency: GBP, cost: 15.00, postage: {GB: 2}, description: Jam and more.}
  - {key: books, name: Bookshop e-gift, digital: true, currency: EUR, countries: [IE, FR], min_amount: 5, max_amount: 200}
  - {key: club, name: Globex club, digital: true, currency: GBP, countries: [GB], denominations: [25], customers: [globex]}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25], products: [coffee, shop]}
"""
PICTURE = read_picture(png())


@pytest.fixture(scope="module", autouse=True)
def with_a_picture(service: Service) -> None:
    """Coffee has a picture. (A world in a test lies in no folder.)"""
    picture_coffee(service)


def picture_coffee(service: Service) -> None:
    """Gives coffee its picture."""
    on_database(service.database_url, lambda connection: save_pictures(connection, [PICTURE]))
    service.sql("UPDATE products SET picture = $1 WHERE key = 'coffee'", PICTURE.name)


@pytest.fixture(scope="module")
def ada(service: Service) -> Browser:
    return signed_in(service, "ada@acme.example")


@pytest.fixture(scope="module")
def gil(service: Service) -> Browser:
    return signed_in(service, "gil@globex.example")


def made(service: Service, browser: Browser, **fields: str) -> int:
    """The id of a template that is made of coffee for 10.00, with other fields as given."""
    browser.get("/app/templates")
    product = str(service.ids["products"]["coffee"])
    said = {"product": product, "country": "GB", "value": "10", "name": "Morning", "wrapping_key": "gold"}
    return made_id(browser.post("/app/templates", **{**said, **fields}))


def gathered(service: Service, browser: Browser, *products: str, **fields: str) -> int:
    """The id of a collection that is made of those products for 25.00."""
    answer = gather(service, browser, *products, **fields)
    return made_id(answer)


def gather(
    service: Service, browser: Browser, *products: str, path: str = "/app/collections", **fields: str
) -> httpx.Response:
    browser.get("/app/collections")
    ids: Any = [str(service.ids["products"][name]) for name in products]
    said = {"name": "Ours", "country": "GB", "currency": "GBP", "value": "25", "product": ids}
    return browser.post(path, **{**said, **fields})


def made_id(answer: httpx.Response) -> int:
    assert answer.status_code == 303, answer.text
    return int(answer.headers["location"].rpartition("/")[2])


def send(service: Service, what: str, number: int, key: str = "hr", account: str = "gbp") -> httpx.Response:
    """Sends a template or collection by the API."""
    body = {f"{what}Id": number, "codeQuantity": 1, "accountId": service.ids["funding_accounts"][account]}
    return service.client(key).post(f"/send/{what}", json=body)


def acts(service: Service) -> list[str]:
    return [row["act"] for row in service.sql("SELECT act FROM audit_events ORDER BY id")]
