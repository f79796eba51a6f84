"""A world of customers who may each order by a key of their own, `key1` and so on, and are invoiced."""

from collections.abc import Iterable

PRODUCTS = """
products:
  - {key: coffee, name: Coffee, digital: true, currency: GBP, countries: [GB], denominations: [1]}
  - {key: hamper, name: Hamper, digital: false, currency: GBP, cost: 1, vat_percent: {GB: 20}, postage: {GB: 1}}
"""


def world_of(customers: Iterable[int]) -> str:
    """Customers of those numbers, and what they may order."""
    return "customers:" + "".join(map(_customer, customers)) + PRODUCTS


def _customer(number: int) -> str:
    return f"""
  - key: c{number}
    name: Customer {number}
    plan: enterprise
    funding: invoiced
    service_accounts: [{{key: bot{number}, name: Bot}}]
    api_keys: [{{key: key{number}, service_account: bot{number}, environment: production}}]
"""
