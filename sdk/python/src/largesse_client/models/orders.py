"""Orders: what sending answers, what lists and events tell, and the state of each recipient."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import msgspec

from largesse_client.models.opening import Shape, Word


class GiftSelectionType(Word):
    """What an order sends: one product, or a collection to choose from."""

    GIFT = "gift"
    GIFTS = "gifts"


class DeliveryMode(Word):
    """`send`: recipients are emailed; `manual`: a batch of anonymous codes."""

    SEND = "send"
    MANUAL = "manual"


class Recipient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who gets a gift by email, and how many codes (1 to 1,000); `name` is used to address it."""

    email: str
    name: str | None = None
    quantity: int = 1


class IssuedCode(Shape, frozen=True, kw_only=True):
    """A code, its PIN, and the link to claim it with: keep them as you would keep money. Their repr tells none of them."""

    code: str
    pin: str
    redemption_url: str

    def __repr__(self) -> str:
        return "IssuedCode(…)"


class Order(Shape, frozen=True, kw_only=True):
    """A placed order. Amounts are in `currency`; `codes` are those of a code batch, none where recipients were emailed."""

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
    """What a send would be charged; `quote` holds the send to it until `expires_at`. `balance_after` is None when invoiced."""

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
    """An order as lists and events tell it. `id` ascends with time, and tells duplicates."""

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


class OrderRequest(Shape, frozen=True, kw_only=True):
    """What was asked for with an order, in the words of sending, with what a template or a default filled in."""

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
    claim_by: datetime | None = None  # none from a service that is older
    reminder_days: tuple[int, ...] = ()


class Cancellation(Shape, frozen=True, kw_only=True):
    """How an order stands after its cancellation; the same however often that is repeated."""

    reference: str
    code_count: int
    cancelled_count: int
    claimed_count: int
    refunded: Decimal
    currency: str


class LineState(Word):
    """How far one code has come."""

    ISSUED = "issued"
    CLAIMED = "claimed"
    CHOSEN = "chosen"
    FULFILLED = "fulfilled"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Line(Shape, frozen=True, kw_only=True):
    """One code of an order: its state, and when it got there; None for what has not happened."""

    number: int
    state: LineState
    opened_at: datetime | None
    claimed_at: datetime | None
    chosen_at: datetime | None
    fulfilled_at: datetime | None
    expired_at: datetime | None
    cancelled_at: datetime | None


class MailState(Word):
    """How the mail to a recipient is doing; `manual` in a code batch."""

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
    """Whose fault it is that mail was refused."""

    RECIPIENT = "recipient"
    SERVER = "server"


class RecipientDelivery(Shape, frozen=True, kw_only=True):
    """How the mail to one recipient is doing, and their codes. In a code batch there is one for each code, without `email`."""

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
