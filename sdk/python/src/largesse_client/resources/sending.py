"""Places orders, and quotes what they would cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Unpack

from largesse_client.binding import M, Resource, operation
from largesse_client.calls import Call
from largesse_client.models import Order, Quote
from largesse_client.ordering import Ordering, collection_body, gift_body, placing, quoting, template_body


class Sending(Resource[M]):
    """Places orders. All methods take the arguments of `Ordering` in addition to the gift.

    Without an `external_reference`, a request is sent only once. With one, it is sent again after time-outs, broken connections and
    failures that may pass, and the order is still placed only once. ReferenceUsed means that the reference belongs to another
    order.
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
        """Sends one product, in `country` (GB by default). With a `quote`, the order must be the quoted one."""
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
    """Quotes what a send would cost, with the arguments of `Sending`. Reports all errors at once.

    A send with the `quote` of the answer places exactly that order, or raises QuoteChanged or QuoteExpired. Nothing is reserved.
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
