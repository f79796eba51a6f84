"""Products, collections, templates and wrappings."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from largesse_client import arguments
from largesse_client.binding import M, Resource, listing, operation
from largesse_client.calls import Call, Pages, Query, get, newest_first, pages, whole
from largesse_client.models import Collection, Product, ProductInFull, Template, Wrapping


class Products(Resource[M]):
    """Single products."""

    @listing
    def list(
        self,
        *,
        country: str = "GB",
        currency: str | None = None,
        amount: Decimal | int | None = None,
        keyword: str | None = None,
        page_size: int = 100,
    ) -> Pages[Product]:
        """Returns products that can be sent to `country`: priced in `currency`, for `amount` or less, with the words of `keyword` in the name."""

        def then(query: Query, _: Sequence[Product]) -> Query:
            return {**query, "page": int(query["page"] or 1) + 1}

        query: Query = {
            "country": arguments.country("country", country),
            **_filters(currency, amount),
            "keyword": None if keyword is None else arguments.text("keyword", keyword, 200),
            "page": 1,
        }
        size = arguments.number("page_size", page_size, most=arguments.MAX_PAGE)
        return pages("/products", Product, query, size, then)

    @operation
    def get(self, product_id: int, *, country: str = "GB") -> Call[ProductInFull]:
        """Returns a product as it is sent to `country`, with its texts."""
        query = {"country": arguments.country("country", country)}
        return get(f"/products/{arguments.number('product_id', product_id)}", ProductInFull, query)


class Collections(Resource[M]):
    """Collections that recipients choose from."""

    @listing
    def list(
        self, *, country: str | None = None, currency: str | None = None, amount: Decimal | int | None = None
    ) -> Pages[Collection]:
        """Returns curated collections and the customer's own: for `country`, in `currency`, for `amount` or less."""
        query = {"country": None if country is None else arguments.country("country", country)}
        return whole("/collections", Collection, {**query, **_filters(currency, amount)})

    @operation
    def get(self, collection_id: int) -> Call[Collection]:
        """Returns one collection."""
        return get(f"/collections/{arguments.number('collection_id', collection_id)}", Collection)


class Templates(Resource[M]):
    """Saved presets."""

    @listing
    def list(self, *, page_size: int = 100) -> Pages[Template]:
        """Returns all templates, newest first."""
        size = arguments.number("page_size", page_size, most=arguments.MAX_PAGE)
        return newest_first("/templates", Template, size)


class Wrappings(Resource[M]):
    """The wrappings of gifts."""

    @listing
    def list(self) -> Pages[Wrapping]:
        """Returns the known wrappings; any other key is stored with the order, and looks like `default`."""
        return whole("/wrappings", Wrapping)


def _filters(currency: str | None, amount: Decimal | int | None) -> Query:
    return {
        "currency": None if currency is None else arguments.currency("currency", currency),
        "amount": None if amount is None else f"{arguments.money('amount', amount, least=Decimal(0)):f}",
    }
