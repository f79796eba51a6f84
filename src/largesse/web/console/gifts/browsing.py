"""The catalogue: the search with its filters, the gifts with pictures and prices, and the page of one product."""

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import Any

from starlette.responses import Response

from largesse.base.amounts import ANY_CURRENCY
from largesse.base.cooperative import Steps
from largesse.base.errors import NotFound
from largesse.base.money import to_decimal
from largesse.catalogue.model import NOTHING_SAID, Product, gift_price
from largesse.catalogue.model import Collection as GiftCollection
from largesse.catalogue.products import Filters
from largesse.catalogue.snapshot import Snapshot
from largesse.catalogue.store import read_details
from largesse.customers.roles import Right
from largesse.orders.request import DEFAULT_COUNTRY
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.form import Form
from largesse.web.console.send.opening import caller_and_catalogue
from largesse.web.kit.query import Whole

CARDS = 60


def page_number(context: RequestContext) -> int:
    """Returns the number of the page of cards in the address, from 1."""
    return context.parameters.number("page") or 1


async def products_found(
    context: RequestContext, snapshot: Snapshot, customer_id: int, *, first: Sequence[int] = ()
) -> Sequence[Product]:
    """Returns the products that match the search, those with an id in `first` before the others. Ignores unknown filter values."""
    catalogue, country = context.services.catalogue, country_asked(context, snapshot, customer_id)
    await catalogue.prepare(snapshot, customer_id, Filters(country))
    currency, keyword = context.query("currency").upper() or None, context.query("q").strip() or None
    most = _most(context, currencies_in(snapshot, customer_id, country))
    wanted = customer_id, Filters(country, currency, most, keyword)
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
    """Returns the maximum price in the search, in major units; None without one. Adds an error to the form if it is wrong."""
    if not context.query("amount").strip():
        return None
    given = context.query("currency").upper()
    currency = given if given in currencies else currencies[0] if len(currencies) == 1 else ANY_CURRENCY
    context.form = Form({"amount": context.query("amount")}, context.say)
    minor = typed_amount(context, "amount", currency)
    return to_decimal(minor, currency) if minor else None


def search_values(context: RequestContext, snapshot: Snapshot, customer_id: int) -> dict[str, Any]:
    """Returns the values of the search form."""
    country = country_asked(context, snapshot, customer_id)
    return {
        "country": country,
        "countries": context.language.in_order(snapshot.countries(customer_id)),
        "currencies": currencies_in(snapshot, customer_id, country),
        "asked": {name: context.query(name) for name in ("q", "kind", "amount", "currency")},
    }


def country_asked(context: RequestContext, snapshot: Snapshot, customer_id: int) -> str:
    """Returns the country to search in: the one in the address, otherwise the default, otherwise the first."""
    countries = snapshot.countries(customer_id)
    given = context.query("country").upper()
    if given in countries:
        return given
    return DEFAULT_COUNTRY if DEFAULT_COUNTRY in countries or not countries else countries[0]


def currencies_in(snapshot: Snapshot, customer_id: int, country: str) -> list[str]:
    """Returns the currencies in which products are sold in a country."""
    return sorted(snapshot.currencies(customer_id, country))


def rights(context: RequestContext) -> dict[str, bool]:
    """Returns which buttons a page about a gift has."""
    return {"may_send": context.person.may(Right.SEND), "may_keep": context.person.may(Right.TEMPLATES)}


def for_template(context: RequestContext) -> str:
    """Returns the template that the person chooses a gift for: its id, or `new`; empty if there is none."""
    given = context.query("template")
    is_one = given == "new" or Whole().read(given) is not None
    return given if is_one and context.person.may(Right.TEMPLATES) else ""


def delivered(product: Product, country: str) -> int:
    """Returns the cost of a physical gift with delivery, in minor units."""
    return gift_price(product, country, None).unit_cost_minor


def products_of(snapshot: Snapshot, collection: GiftCollection, customer_id: int) -> list[Product]:
    """Returns the products of a collection that are sold in its country and currency, in its order."""
    found = (snapshot.product(one, collection.country, customer_id) for one in collection.product_ids)
    return [one for one in found if one is not None and one.currency == collection.currency]


def pictured(snapshot: Snapshot, collections: Iterable[GiftCollection], customer_id: int) -> dict[int, list[str]]:
    """Returns the pictures of each collection, by id: of its first products that have one, at most four but never three."""
    found = {}
    for collection in collections:
        products = products_of(snapshot, collection, customer_id)
        names = [product.picture for product in products if product.picture]
        found[collection.id] = names[: 4 if len(names) >= 4 else 2]
    return found


async def show(context: RequestContext) -> Response:
    """Shows the gifts of a country as cards, filtered by the address."""
    caller, snapshot = await caller_and_catalogue(context)
    customer_id = caller.principal.customer_id
    found, page = await products_found(context, snapshot, customer_id), page_number(context)
    start = (page - 1) * CARDS
    return context.page(
        "gifts/catalogue.html",
        status=200,  # a wrong amount does not fail the search
        items=found[start : start + CARDS],
        count=len(found),
        older=context.here(page=page + 1) if len(found) > start + CARDS else None,
        newer=context.here(page=page - 1) if page > 1 else None,
        delivered=delivered,
        request_template=for_template(context),
        **search_values(context, snapshot, customer_id),
    )


async def one(context: RequestContext) -> Response:
    """Shows one product: its prices, countries, how to redeem it and its terms. Raises NotFound."""
    caller, snapshot = await caller_and_catalogue(context)
    customer_id, product_id = caller.principal.customer_id, context.number("product")
    country = country_asked(context, snapshot, customer_id)
    product = snapshot.product(product_id, country, customer_id)
    if product is None:
        # The address has no country, or the product is no longer sold there.
        elsewhere = (snapshot.product(product_id, other, customer_id) for other in snapshot.countries(customer_id))
        product = next((found for found in elsewhere if found is not None), None)
        if product is None:
            raise NotFound("There is no such gift.")
        country = min(product.sold_countries)
    details = await context.read(read_details, [product.id])
    countries = [(context.language.country(code), code) for code in context.language.in_order(product.sold_countries)]
    return context.page(
        "gifts/product.html",
        product=product,
        country=country,
        countries=countries,
        details=details.get(product.id, NOTHING_SAID),
        delivered=delivered,
        **rights(context),
    )
