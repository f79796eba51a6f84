"""Looking through the catalogue: what was searched for, in which country, and what is shown of what was found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import Any

from largesse.base.amounts import ANY_CURRENCY
from largesse.base.cooperative import Steps
from largesse.base.money import to_decimal
from largesse.catalogue.model import Collection as GiftCollection
from largesse.catalogue.model import Product, gift_price
from largesse.catalogue.snapshot import Snapshot
from largesse.customers.roles import Right
from largesse.orders.request import DEFAULT_COUNTRY
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.form import Form
from largesse.web.kit.query import Whole

CARDS = 60


def page_number(context: RequestContext) -> int:
    """Returns the page of cards that was asked for, from 1."""
    return context.parameters.number("page") or 1


async def products_found(
    context: RequestContext, snapshot: Snapshot, customer_id: int, *, first: Sequence[int] = ()
) -> Sequence[Product]:
    """Returns the products that fit what was searched for, those of the ids in `first` before the others; whatever is no filter is none."""
    catalogue, country = context.services.catalogue, country_asked(context, snapshot, customer_id)
    await catalogue.prepare(snapshot, customer_id, country)
    currency, keyword = context.query("currency").upper() or None, context.query("q").strip() or None
    wanted = customer_id, country, currency, _most(context, currencies_in(snapshot, customer_id, country)), keyword
    await catalogue.prepare(snapshot, *wanted)
    found, kind = snapshot.products(*wanted), context.query("kind")
    kinds = {kind == "digital"} if kind in {"digital", "physical"} else {True, False}
    if len(kinds) == 1 or first:
        return await catalogue.finish(customer_id, _arranging(found, kinds, first))
    return found


def _arranging(found: Sequence[Product], kinds: Collection[bool], first: Sequence[int]) -> Steps[list[Product]]:
    ranks = {product_id: rank for rank, product_id in enumerate(first)}
    before: list[Product] = []
    after: list[Product] = []
    for product in found:
        if product.is_digital in kinds:
            (before if product.id in ranks else after).append(product)
        yield
    return [*sorted(before, key=lambda product: ranks[product.id]), *after]


def _most(context: RequestContext, currencies: list[str]) -> Decimal | None:
    """Returns the amount that gifts are searched for, in major units; what is wrong with it is noted in the form."""
    if not context.query("amount").strip():
        return None
    given = context.query("currency").upper()
    currency = given if given in currencies else currencies[0] if len(currencies) == 1 else ANY_CURRENCY
    context.form = Form({"amount": context.query("amount")}, context.say)
    minor = typed_amount(context, "amount", currency)
    return to_decimal(minor, currency) if minor else None


def search_values(context: RequestContext, snapshot: Snapshot, customer_id: int) -> dict[str, Any]:
    """Returns what the search form shows."""
    country = country_asked(context, snapshot, customer_id)
    return {
        "country": country,
        "countries": snapshot.countries(customer_id),
        "currencies": currencies_in(snapshot, customer_id, country),
        "asked": {name: context.query(name) for name in ("q", "kind", "amount", "currency")},
    }


def country_asked(context: RequestContext, snapshot: Snapshot, customer_id: int) -> str:
    """Returns the country searched in: the one given, else the usual one, else the first there is."""
    countries = snapshot.countries(customer_id)
    given = context.query("country").upper()
    if given in countries:
        return given
    return DEFAULT_COUNTRY if DEFAULT_COUNTRY in countries or not countries else countries[0]


def currencies_in(snapshot: Snapshot, customer_id: int, country: str) -> list[str]:
    """Returns the currencies that something is sold in, in a country."""
    return sorted(snapshot.currencies(customer_id, country))


def rights(context: RequestContext) -> dict[str, bool]:
    """Returns which buttons a page about a gift has."""
    return {"may_send": context.person.may(Right.SEND), "may_keep": context.person.may(Right.TEMPLATES)}


def for_template(context: RequestContext) -> str:
    """Returns which template a gift is looked for: its id, or `new`; empty where none is."""
    given = context.query("template")
    is_one = given == "new" or Whole().read(given) is not None
    return given if is_one and context.person.may(Right.TEMPLATES) else ""


def delivered(product: Product, country: str) -> int:
    """Returns what a physical gift costs delivered, in minor units."""
    return gift_price(product, country, None).unit_cost_minor


def products_of(snapshot: Snapshot, collection: GiftCollection, customer_id: int) -> list[Product]:
    """Returns what of a collection is sold where it is for, in its order."""
    found = (snapshot.product(one, collection.country, customer_id) for one in collection.product_ids)
    return [one for one in found if one is not None and one.currency == collection.currency]


def pictured(snapshot: Snapshot, collections: Iterable[GiftCollection], customer_id: int) -> dict[int, list[str]]:
    """Returns the pictures that stand for each collection, by id: those of its first products that have one; four, two or one."""
    found = {}
    for collection in collections:
        products = products_of(snapshot, collection, customer_id)
        names = [product.picture for product in products if product.picture]
        found[collection.id] = names[: 4 if len(names) >= 4 else 2]
    return found
