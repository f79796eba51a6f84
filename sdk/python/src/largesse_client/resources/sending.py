"""Placing orders, and asking beforehand what they would cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Unpack

from largesse_client.binding import M, Resource, operation
from largesse_client.calls import Call
from largesse_client.models import Order, Quote
from largesse_client.ordering import Ordering, collection_body, gift_body, placing, quoting, template_body


class Sending(Resource[M]):
    """Places orders. All take what `Ordering` lists beside the gift itself.

    Without an `external_reference` a request is sent once, whatever comes of it. With one it is sent again after time-outs,
    broken connections and answers that say that it may go better later, and the order is placed once; a ReferenceUsed tells
    that the reference belongs to another order.
    """

    @operation
    def gift(
        self,
        product_id: int,
        *,
        value: Decimal | int | None = None,
        country: str | None = None,
        quote: str | None = None,
        **order: Unpack[Ordering],
    ) -> Call[Order]:
        """Sends one product, in `country` (GB by default). `quote` holds the order to what was quoted."""
        return placing("gift", gift_body(product_id, value, country, order), quote)

    @operation
    def collection(
        self,
        collection_id: int,
        *,
        value: Decimal | int | None = None,
        quote: str | None = None,
        **order: Unpack[Ordering],
    ) -> Call[Order]:
        """Sends a collection for each recipient to choose from; `value` for a curated one."""
        return placing("collection", collection_body(collection_id, value, order), quote)

    @operation
    def template(self, template_id: int, *, quote: str | None = None, **order: Unpack[Ordering]) -> Call[Order]:
        """Sends a saved template."""
        return placing("template", template_body(template_id, order), quote)


class Quoting(Resource[M]):
    """Tells what sending would be charged, with the arguments of `Sending`; all that is wrong comes at once.

    A send that is given the `quote` of the answer places just that, or raises QuoteChanged or QuoteExpired. Nothing is reserved.
    """

    @operation
    def gift(
        self,
        product_id: int,
        *,
        value: Decimal | int | None = None,
        country: str | None = None,
        **order: Unpack[Ordering],
    ) -> Call[Quote]:
        """Returns what one product would cost."""
        return quoting("gift", gift_body(product_id, value, country, order))

    @operation
    def collection(
        self, collection_id: int, *, value: Decimal | int | None = None, **order: Unpack[Ordering]
    ) -> Call[Quote]:
        """Returns what a collection would cost."""
        return quoting("collection", collection_body(collection_id, value, order))

    @operation
    def template(self, template_id: int, **order: Unpack[Ordering]) -> Call[Quote]:
        """Returns what a saved template would cost."""
        return quoting("template", template_body(template_id, order))
