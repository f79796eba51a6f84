"""The worlds the benchmarks load: JSON, which is YAML too."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

COFFEE = {
    "key": "coffee",
    "name": "Coffee House e-gift",
    "digital": True,
    "currency": "GBP",
    "countries": ["GB", "IE"],
    "denominations": [5, 10, 25],
}
BALANCE = 1_000_000_000  # pounds, as good as endless


def one_account() -> str:
    """One customer with one funding account: every order waits for the same row."""
    return _world([_customer(0, accounts=1)], [COFFEE])


def many_accounts(customers: int = 200, accounts: int = 5) -> str:
    """Many customers with several funding accounts each."""
    return _world([_customer(number, accounts) for number in range(customers)], [COFFEE])


def one_customer() -> str:
    """One customer with people, several funding accounts and service accounts, and gifts to choose among."""
    customer = _customer(0, accounts=4)
    customer["users"] = [
        {"email": f"person-{number}@example.com", "name": f"Person {number}", "role": "member"} for number in range(5)
    ]
    customer["service_accounts"] = [{"key": f"bot-{number}", "name": f"Bot {number}"} for number in range(6)]
    products = [COFFEE, *(_product(number) for number in range(1, 26, 2))]
    collections = [
        {"key": f"treats-{number}", "name": f"Treats {number}", "country": "GB", "currency": "GBP", "value_points": [10, 25],
         "products": ["coffee"]}
        for number in range(3)
    ]  # fmt: skip
    return _world([customer], products, collections)


def two_customers() -> str:
    """One who is quiet and one who is not."""
    return many_accounts(customers=2, accounts=1)


def large_catalogue(products: int) -> str:
    """A catalogue of many products, digital and physical in turn."""
    return _world([_customer(0, accounts=1)], [COFFEE, *(_product(number) for number in range(1, products))])


def _world(
    customers: list[dict[str, Any]],
    products: Sequence[Mapping[str, Any]],
    collections: Sequence[Mapping[str, Any]] = (),
) -> str:
    return json.dumps({"customers": customers, "products": products, "collections": collections})


def _customer(number: int, accounts: int) -> dict[str, Any]:
    return {
        "key": f"customer-{number}",
        "name": f"Customer {number}",
        "plan": "enterprise",
        "funding": "balance",
        "service_accounts": [{"key": f"bot-{number}", "name": "Bot"}],
        "api_keys": [{"key": f"key-{number}", "service_account": f"bot-{number}", "environment": "production"}],
        "funding_accounts": [
            {
                "key": f"account-{number}-{at}",
                "name": f"Float {at}",
                "master": at == 0,
                "currency": "GBP",
                "environment": "production",
                "balance": BALANCE,
            }
            for at in range(accounts)
        ],
    }


def _product(number: int) -> dict[str, Any]:
    common = {"key": f"product-{number}", "name": f"Shop number {number} gift", "currency": "GBP"}
    if number % 2:
        return common | {"digital": True, "countries": ["GB", "IE"], "denominations": [5, 10, 20, 50]}
    return common | {
        "digital": False,
        "cost": 10 + number % 90,
        "markup_percent": 10,
        "postage": {"GB": 4.95, "IE": 9.95},
        "vat_percent": {"GB": 20, "IE": 23},
    }
