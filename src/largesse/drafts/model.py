"""A draft, which is an unfinished send, and its price line by line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from largesse.base.zones import after
from largesse.catalogue.model import Product
from largesse.customers.authenticator import Caller
from largesse.drafts.columns import Columns
from largesse.orders import request
from largesse.orders.follow_ups import read_defaults
from largesse.orders.quoter import Quote
from largesse.orders.recipients import OrderRecipient

# The source of orders placed in the web application.
SOURCE = "web"
OF_CAMPAIGN = "campaign"


class SheetName(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sheet of a workbook: its name, and if it cannot be read the reason, as in SheetRefused."""

    name: str
    refused: str | None = None
    row: int = 0
    limit: int = 0
    hidden: int = 0  # how many rows it hides, for example by a filter


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """The file that a draft's rows come from, and how it is read."""

    name: str = ""  # the name of the file; empty for rows that were typed or pasted
    encoding: str | None = None  # the encoding of a text file that has letters beyond ASCII
    encodings: tuple[str, ...] = ()  # the encodings in which the file can be read
    sheets: tuple[SheetName, ...] = ()  # the sheets of a workbook
    sheet: int = 0  # the index of the sheet whose rows are the recipients
    by_hand: frozenset[int] = frozenset()  # rows that were typed later: another encoding does not change them

    @property
    def hidden(self) -> int:
        """The number of rows of the sheet that its workbook hides."""
        return self.sheets[self.sheet].hidden if self.sheets else 0


class DraftContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a draft so far, as it was given. At most one of product, collection and template is set."""

    product_id: int | None = None
    collection_id: int | None = None
    template_id: int | None = None
    country: str | None = None
    value: float | None = None  # the value of a code, in major units
    code_quantity: int | None = None  # how many anonymous codes to order; then there are no recipients
    columns: Columns | None = None  # the meaning of the sheet's columns; None until a file or rows are given
    source: Source = Source()
    leaves_out: bool = False  # the order leaves out the rows to fix; any change of rows resets this
    wrapping_key: str | None = None
    from_name: str | None = None
    message: str | None = None
    has_texts: bool = False  # the person saved the last three; until then a template's texts complete them
    send_at: datetime | None = None
    claim_by: datetime | None = None
    has_claim_by: bool = False  # the person set `claim_by`; until then the customer's default applies
    reminder_days: tuple[int, ...] | None = None  # None: the customer's default applies
    account_id: int | None = None
    external_reference: str | None = None
    is_campaign: bool = False  # its codes are the gifts of a campaign, and only the campaign can change it

    @property
    def choice(self) -> request.Choice | None:
        """The chosen gift; None before one is chosen."""
        if self.template_id is not None:
            kind = request.TextedTemplateChoice if self.has_texts else request.TemplateChoice
            return kind(self.template_id)
        if self.collection_id is not None:
            return request.CollectionChoice(self.collection_id, self.value)
        if self.product_id is not None:
            return request.ProductChoice(self.product_id, self.value, self.country or request.DEFAULT_COUNTRY)
        return None

    def chosen(self, choice: request.Choice) -> DraftContent:
        """Returns the content with another gift. Texts and recipients stay; a template completes empty texts."""
        nothing = msgspec.structs.replace(
            self, product_id=None, collection_id=None, template_id=None, country=None, value=None, has_texts=False
        )
        return msgspec.structs.replace(nothing, **msgspec.structs.asdict(choice))


class Draft(msgspec.Struct, frozen=True):
    """A draft with its id. The id becomes the external reference of its order, so that repeated attempts send it only once."""

    id: str
    content: DraftContent
    changed_at: datetime

    def claim_by(self, caller: Caller, zone: tzinfo = UTC) -> datetime | None:
        """Returns the claim-by date of the draft: its own, otherwise its customer's default, the end of a day in the zone; None if there is none."""
        content = self.content
        if content.has_claim_by:
            return content.claim_by
        return read_defaults(caller.follow_up).claim_by(content.send_at or caller.now, zone)

    def reminder_days(self, caller: Caller) -> tuple[int, ...]:
        """Returns the days after which its recipients are reminded: its own, otherwise its customer's default."""
        days = self.content.reminder_days
        if days is not None:
            return days
        sent_at, claim_by = self.content.send_at or caller.now, self.claim_by(caller)
        default = read_defaults(caller.follow_up).reminder_days
        return tuple(one for one in default if claim_by is None or after(sent_at, timedelta(days=one)) < claim_by)

    def to_request(
        self, caller: Caller, recipients: Sequence[OrderRecipient], quote: str | None = None
    ) -> request.SendRequest:
        """Returns the person's request to send the draft to these recipients, or as anonymous codes. Its gift must be chosen."""
        content = self.content
        choice = content.choice
        assert choice is not None, "a request has a gift"
        is_batch = content.code_quantity is not None
        return request.send_request(
            choice,
            content.send_at,
            recipients=[] if is_batch else list(recipients),
            code_quantity=content.code_quantity,
            account_id=content.account_id,
            source=OF_CAMPAIGN if content.is_campaign else SOURCE,
            external_reference=content.external_reference or self.id,
            quote=quote,
            wrapping_key=content.wrapping_key,
            from_name=content.from_name,
            message=content.message,
            claim_by=self.claim_by(caller),
            placeholders=True,
            reminder_days=list(self.reminder_days(caller)),
        )


class PriceLines(msgspec.Struct, frozen=True):
    """The price of each code, and of all, in minor units of `currency`."""

    currency: str
    value_minor: int
    postage_minor: int  # 0 for a digital gift
    vat_minor: int  # the VAT on value and postage; 0 for a digital gift
    count: int
    total_minor: int


def price_lines(quote: Quote, product: Product | None, country: str) -> PriceLines:
    """Returns the price lines of a quote. `product` is what the draft sends; None for a collection.

    VAT is the rest of the price: it is rounded together with value and postage, so that the lines add up.
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
