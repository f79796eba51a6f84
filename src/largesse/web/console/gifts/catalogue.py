"""The catalogue: the gifts that can be sent, with pictures and prices, and the page of one product."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.errors import NotFound
from largesse.catalogue.model import NOTHING_SAID
from largesse.catalogue.store import read_details
from largesse.web.console.context import RequestContext
from largesse.web.console.gifts.browsing import (
    CARDS,
    country_asked,
    delivered,
    for_template,
    page_number,
    products_found,
    rights,
    search_values,
)
from largesse.web.console.send.opening import person_as_caller


async def show(context: RequestContext) -> Response:
    """Shows the gifts of a country as cards, filtered by the address."""
    caller = await person_as_caller(context)
    snapshot = await context.services.catalogue.of(caller)
    customer_id = caller.principal.customer_id
    found, page = await products_found(context, snapshot, customer_id), page_number(context)
    start = (page - 1) * CARDS
    return context.page(
        "gifts/catalogue.html",
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
    caller = await person_as_caller(context)
    snapshot = await context.services.catalogue.of(caller)
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
    async with context.database.connection(caller.principal.scope) as connection:
        details = await read_details(connection, [product.id])
    countries = sorted((context.language.country(code), code) for code in product.sold_countries)
    return context.page(
        "gifts/product.html",
        product=product,
        country=country,
        countries=countries,
        details=details.get(product.id, NOTHING_SAID),
        delivered=delivered,
        **rights(context),
    )
