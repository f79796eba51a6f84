"""Sending without a browser: a world to send in, and the steps that come before what is tried."""

import re

from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: starter
    funding: balance
    users:
      - {email: ada@acme.example, name: Ada, role: admin}
      - {email: cem@acme.example, name: Cem, role: member}
      - {email: fin@acme.example, name: Fin, role: finance}
    service_accounts: [{key: bot, name: Bot}]
    funding_accounts:
      - {key: gbp, name: Acme float, master: true, currency: GBP, balance: 100000.00}
      - {key: small, name: Small pot, currency: GBP, balance: 30.00}
      - {key: bots, name: For bots, currency: GBP, balance: 30.00, service_accounts: [bot]}
      - {key: test-gbp, name: Test float, master: true, currency: GBP, environment: staging, balance: 1000.00}
    templates:
      - {key: welcome, name: Welcome, product: coffee, value: 10, wrapping_key: confetti, from_name: Acme, message: "<b>Hello</b>"}
  - key: globex
    name: Globex
    plan: pro
    funding: invoiced
    users:
      - {email: gil@globex.example, name: Gil, role: admin}
products:
  - {key: coffee, name: Coffee House e-gift, digital: true, currency: GBP, countries: [GB, IE], denominations: [5, 10, 25]}
  - {key: books, name: Bookshop e-gift, digital: true, currency: GBP, countries: [GB], min_amount: 5, max_amount: 200}
  - {key: hamper, name: Autumn hamper, digital: false, currency: GBP, cost: 35.00, markup_percent: 10, postage: {GB: 4.95},
     vat_percent: {GB: 20}}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25], products: [coffee]}
"""
PEOPLE = "email,name\nzoe@example.com,Zoë\nbo@example.com,Bo\n"


def begin(browser: Browser, service: Service, gift: str = "coffee", value: str = "10") -> str:
    """A new draft of a product; the path of its pages."""
    product = service.ids["products"][gift]
    browser.get(f"/app/send/gift?product={product}&country=GB")
    answer = browser.post("/app/send/gift", product=str(product), country="GB", value=value)
    assert answer.status_code == 303, browser_text(answer.text)
    return str(answer.headers["location"]).removesuffix("/recipients")


def ready(browser: Browser, service: Service, rows: str = PEOPLE, account: str = "gbp", **gift: str) -> str:
    """A draft that lacks nothing but to be sent."""
    path = begin(browser, service, **gift)
    assert browser.submit(f"{path}/recipients", rows=rows).status_code == 303
    browser.get(f"{path}/delivery")
    account_id = str(service.ids["funding_accounts"][account])
    assert browser.post(f"{path}/delivery", when="now", account=account_id, reference="").status_code == 303
    return path


def place(browser: Browser, path: str) -> str:
    """Sends a draft from its review; returns the reference of the order."""
    browser.get(f"{path}/review")
    answer = browser.post(f"{path}/place", quote=quote_in(browser))
    assert answer.status_code == 303, browser_text(answer.text)
    return path.rpartition("/")[2]


def browser_text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def quote_in(browser: Browser) -> str:
    (quote,) = re.findall(r'name="quote" value="([^"]+)"', browser.page.text)
    return str(quote)
