"""Orders: the responses to sends, the records in lists and events, and the states of recipients."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import msgspec

from largesse_client.models.opening import Shape, Word


class GiftSelectionType(Word):
    """The kind of gift: `gift` for one product, `gifts` for a collection to choose from."""

    GIFT = "gift"
    GIFTS = "gifts"


class DeliveryMode(Word):
    """How an order is delivered: `send` emails recipients, `manual` returns a batch of anonymous codes."""

    SEND = "send"
    MANUAL = "manual"


class Recipient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recipient, who gets `quantity` codes (1 to 1,000) by email. The mail is addressed to `name`."""

    email: str
    name: str | None = None
    quantity: int = 1


class IssuedCode(Shape, frozen=True, kw_only=True):
    """A code with its PIN and its claim link. Treat them like money. The repr does not show them."""

    code: str
    pin: str
    redemption_url: str

    def __repr__(self) -> str:
        return "IssuedCode(…)"


class Order(Shape, frozen=True, kw_only=True):
    """A placed order. Amounts are in `currency`; `codes` has the codes of a code batch, and is empty if recipients were emailed."""

    reference: str
    gift_selection_type: GiftSelectionType | None
    value: Decimal
    currency: str | None
    code_count: int
    recipient_count: int
    total_cost: Decimal
    delivery_mode: DeliveryMode | None
    scheduled_for: datetime | None
    external_reference: str | None
    codes: tuple[IssuedCode, ...]


class Quote(Shape, frozen=True, kw_only=True):
    """The price of a send. With `quote`, the send costs that until `expires_at`. `balance_after` is None when invoiced."""

    value: Decimal
    currency: str
    code_count: int
    recipient_count: int
    total_cost: Decimal
    delivery_mode: DeliveryMode
    scheduled_for: datetime | None
    balance_after: Decimal | None
    expires_at: datetime
    quote: str


class OrderRecord(Shape, frozen=True, kw_only=True):
    """An order in lists and events. `id` ascends with time, and is the same in duplicates of an event."""

    id: int
    event: str | None
    reference: str | None
    customer_id: int
    value: Decimal
    currency: str | None
    country: str | None
    source_type: str | None
    external_reference: str | None
    gift_selection_type: GiftSelectionType | None
    gift_product_id: int | None
    gifts_collection_id: int | None
    wrapping_key: str | None
    from_name: str | None
    delivery_mode: DeliveryMode | None
    line_count: int
    created_by: int | None
    creation_date: datetime


class RequestedRecipient(Shape, frozen=True, kw_only=True):
    """One address and name, and how many codes it got in all."""

    email: str
    name: str | None
    quantity: int
    was_email: str | None = None  # the masked address before people corrected it; None also from an older service


class OrderRequest(Shape, frozen=True, kw_only=True):
    """The request that an order was placed with, with the values that a template or a default filled in."""

    reference: str
    is_own: bool
    product_id: int | None
    collection_id: int | None
    template_id: int | None
    value: Decimal
    currency: str
    country: str
    source: str
    recipients: tuple[RequestedRecipient, ...]
    code_quantity: int | None
    wrapping_key: str
    from_name: str | None
    message: str | None
    send_at: datetime | None
    account_id: int | None
    expiry_after_days: int | None
    external_reference: str | None
    claim_by: datetime | None = None  # None also from an older service
    reminder_days: tuple[int, ...] = ()


class Cancellation(Shape, frozen=True, kw_only=True):
    """The state of an order after its cancellation. Repeating the cancellation does not change it."""

    reference: str
    code_count: int
    cancelled_count: int
    claimed_count: int
    refunded: Decimal
    currency: str


class LineState(Word):
    """The state of a code."""

    ISSUED = "issued"
    CLAIMED = "claimed"
    CHOSEN = "chosen"
    FULFILLED = "fulfilled"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Line(Shape, frozen=True, kw_only=True):
    """A code of an order: its state, and the time of each event, which is None if it has not happened."""

    number: int
    state: LineState
    opened_at: datetime | None
    claimed_at: datetime | None
    chosen_at: datetime | None
    fulfilled_at: datetime | None
    expired_at: datetime | None
    cancelled_at: datetime | None


class MailState(Word):
    """The state of the mail to a recipient; `manual` in a code batch."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    HELD = "held"
    SENT = "sent"
    CAPTURED = "captured"
    BOUNCED = "bounced"
    EXHAUSTED = "exhausted"
    CANCELLED = "cancelled"
    MANUAL = "manual"


class Fault(Word):
    """Why a mail was not taken."""

    RECIPIENT = "recipient"
    SERVER = "server"
    SERVICE = "service"


class RecipientDelivery(Shape, frozen=True, kw_only=True):
    """The state of the mail to a recipient, and their codes. A code batch has one for each code, without `email`."""

    email: str | None
    name: str | None
    code_count: int
    state: MailState
    reason: str | None
    fault: Fault | None
    due_at: datetime
    sent_at: datetime | None
    attempts: int
    resends: int
    lines: tuple[Line, ...]
