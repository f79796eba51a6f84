"""A draft: one send, as far as it has been put together.

The price of a draft, line by line.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from largesse.catalogue.model import Product
from largesse.drafts.columns import Columns
from largesse.orders.quoter import Quote
from largesse.orders.recipients import OrderRecipient
from largesse.orders.request import (
    DEFAULT_COUNTRY,
    Choice,
    CollectionChoice,
    ProductChoice,
    SendRequest,
    TemplateChoice,
    send_request,
)

# What orders placed in the web application say they come from.
SOURCE = "web"


class DraftContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has been said so far, each as it was given; at most one of the three gifts is set."""

    product_id: int | None = None
    collection_id: int | None = None
    template_id: int | None = None
    country: str | None = None
    value: float | None = None  # of a code, in major units
    code_quantity: int | None = None  # of anonymous codes: then there are no recipients
    columns: Columns | None = None  # of its sheet; none has been given without
    wrapping_key: str | None = None
    from_name: str | None = None
    message: str | None = None
    send_at: datetime | None = None
    account_id: int | None = None
    external_reference: str | None = None

    @property
    def choice(self) -> Choice | None:
        """What is to be sent; None as long as nothing was chosen."""
        if self.template_id is not None:
            return TemplateChoice(self.template_id)
        if self.collection_id is not None:
            return CollectionChoice(self.collection_id, self.value)
        if self.product_id is not None:
            return ProductChoice(self.product_id, self.value, self.country or DEFAULT_COUNTRY)
        return None

    def chosen(self, choice: Choice) -> DraftContent:
        """The same with another gift. What was said of it and of who gets it stays."""
        nothing = msgspec.structs.replace(
            self, product_id=None, collection_id=None, template_id=None, country=None, value=None
        )
        return msgspec.structs.replace(nothing, **msgspec.structs.asdict(choice))


class Draft(msgspec.Struct, frozen=True):
    """A draft with its id, which is the reference that its order will have: it is sent once, however often it is tried."""

    id: str
    content: DraftContent
    changed_at: datetime

    def to_request(self, recipients: Sequence[OrderRecipient], quote: str | None = None) -> SendRequest:
        """Returns the request to send it to these recipients, or as anonymous codes. Its gift must be chosen."""
        content = self.content
        choice = content.choice
        assert choice is not None, "a request has a gift"
        is_batch = content.code_quantity is not None
        return send_request(
            choice,
            content.send_at,
            recipients=[] if is_batch else list(recipients),
            code_quantity=content.code_quantity,
            account_id=content.account_id,
            source=SOURCE,
            external_reference=content.external_reference or self.id,
            quote=quote,
            wrapping_key=content.wrapping_key,
            from_name=content.from_name,
            message=content.message,
        )


class PriceLines(msgspec.Struct, frozen=True):
    """What each code costs, and all of them, in minor units of `currency`."""

    currency: str
    value_minor: int
    postage_minor: int  # nothing of a digital gift
    vat_minor: int  # on value and postage; nothing of a digital gift
    count: int
    total_minor: int


def price_lines(quote: Quote, product: Product | None, country: str) -> PriceLines:
    """The lines of a quote; `product` is the one sent, None for a collection.

    VAT is what is left of the price: it is rounded together with value and postage, so that the lines add up.
    """
    unit_minor = quote.total_minor // quote.code_count
    postage_minor = 0
    if product is not None and not product.is_digital:
        postage_minor = product.postage_minor[country]
    return PriceLines(
        quote.currency,
        quote.value_minor,
        postage_minor,
        unit_minor - quote.value_minor - postage_minor,
        quote.code_count,
        quote.total_minor,
    )
