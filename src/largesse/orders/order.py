"""An order: before it is placed, as a row of `orders`, and as callers get it.

Only this module names the columns of `orders`: code that writes or reads the table takes the names from `OrderRow`.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import chain, repeat
from operator import attrgetter
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta
from msgspec.structs import astuple

from largesse.base.money import to_number
from largesse.customers.authenticator import Caller, Remembered
from largesse.customers.principal import Principal
from largesse.db.fragments import Fragment, compose, identifier, join, names, placeholder
from largesse.db.pool import Connection, Row
from largesse.db.scope import Scope, for_customers
from largesse.db.statements import insert
from largesse.events.kinds import ORDER_CREATED, OrderRecord
from largesse.ledger.own_accounts import OwnAccounts, OwnKey
from largesse.ledger.payment_sources import PaymentSource, payment_source
from largesse.lines.codes import DrawnCode, IssuedCode, SealedCode
from largesse.orders.follow_ups import FollowUp
from largesse.orders.options import DEFAULT_WRAPPING, Options
from largesse.orders.recipients import OrderRecipient
from largesse.orders.request import OrderSpec

# Members of an order record whose columns have another name.
_COLUMN_OF = {
    "value": "value_minor",
    "source_type": "source",
    "gift_selection_type": "gift_selection",
    "gift_product_id": "product_id",
    "gifts_collection_id": "collection_id",
    "line_count": "code_count",
    "created_by": "service_account_id",
}
_, _, *_members, _ = OrderRecord.__struct_fields__  # all but the id, the event and the time
# The columns of `orders` that an order record has, in its order.
RESPONSE_COLUMNS = tuple(_COLUMN_OF.get(member, member) for member in _members)


def order_record(order_id: int, values: Sequence[Any], created_at: datetime) -> OrderRecord:
    """Returns the order record for the values of `RESPONSE_COLUMNS`."""
    reference, customer_id, value_minor, currency, *rest = values
    value = to_number(value_minor, currency)
    members = [order_id, ORDER_CREATED.name, reference, customer_id, value, currency, *rest, created_at]
    return OrderRecord(*members)


Inet = Annotated[str, "inet"]
_SQL_TYPES = {str: "text", int: "bigint", datetime: "timestamptz"}


class OrderRow(Options, frozen=True, kw_only=True, omit_defaults=True):
    """A row of `orders` without its id and the time it was placed, which are known only when it is written."""

    reference: str
    customer_id: int
    environment: str
    service_account_id: int | None  # None for an order of a person
    source: str
    external_reference: str | None
    gift_selection: str  # gift (one product) or gifts (a collection)
    product_id: int | None
    collection_id: int | None
    template_id: int | None
    country: str
    currency: str
    value_minor: int
    total_minor: int
    code_count: int
    recipient_count: int
    delivery_mode: str  # send or manual
    scheduled_for: datetime | None
    expiry_after_days: int | None
    account_id: int | None
    api_key_id: int | None
    address: Inet | None
    user_id: int | None = None  # the person who placed it

    @property
    def is_batch(self) -> bool:
        """Whether it is a code batch: the codes went to the caller, and nobody got mail."""
        return self.delivery_mode == "manual"


class SendResponse(msgspec.Struct, kw_only=True, rename="camel"):
    """The receipt of a placed order, as the caller gets it. `codes` are those of a batch, in clear."""

    reference: Annotated[str, Meta(description="Opaque, non-sequential public order key")] | None
    gift_selection_type: Annotated[str, Meta(description="`gift` or `gifts`", examples=["gift"])] | None
    value: Annotated[float, Meta(description="Per-code face value", examples=[10.0])]
    currency: Annotated[str, Meta(description="ISO currency code", examples=["GBP"])] | None
    code_count: Annotated[int, Meta(description="Codes issued")]
    recipient_count: Annotated[int, Meta(description="Distinct recipients; 0 for a code batch")]
    total_cost: Annotated[float, Meta(description="What was charged, in the order currency")]
    delivery_mode: Annotated[str, Meta(description="`send` or `manual`", examples=["send"])] | None
    scheduled_for: Annotated[datetime, Meta(tz=True, description="Null when sent immediately")] | None
    external_reference: Annotated[str, Meta(description="The idempotency key")] | None
    codes: Annotated[list[IssuedCode], Meta(description="Of a code batch; empty when recipients were emailed")]


def is_of_campaign(row: Row) -> bool:
    """Returns whether the codes of a row of `orders` are the gifts of a campaign."""
    return row["source"] == "campaign" and row["user_id"] is not None


def new_receipt(order: OrderRow, codes: list[IssuedCode]) -> SendResponse:
    """Returns the receipt of an order. Amounts are in major units."""
    return SendResponse(
        reference=order.reference,
        gift_selection_type=order.gift_selection,
        value=to_number(order.value_minor, order.currency),
        currency=order.currency,
        code_count=order.code_count,
        recipient_count=order.recipient_count,
        total_cost=to_number(order.total_minor, order.currency),
        delivery_mode=order.delivery_mode,
        scheduled_for=order.scheduled_for,
        external_reference=order.external_reference,
        codes=codes,
    )


COLUMNS = OrderRow.__struct_fields__


def order_row(row: Row) -> OrderRow:
    """Returns the order of a row that has all columns of `orders`."""
    columns = {name: row[name] for name in COLUMNS}
    address = columns.pop("address")
    return OrderRow(**columns, address=None if address is None else str(address))


def sql_columns() -> Fragment:
    """Returns the columns with their types, for a record that is read from JSON."""
    hints = get_type_hints(OrderRow, include_extras=True)
    return join(
        _COMMA,
        (compose("{name} {kind}", name=identifier(name), kind=identifier(_sql_type(hints[name]))) for name in COLUMNS),
    )


def new_orders(orders: str, beside: str, *, order_id: Fragment) -> Fragment:
    """Returns SQL for orders to write, from placeholders for two JSON arrays: the rows of the orders, and the `_BesideOrder` of each.

    `order_id` is SQL for the id of the order at a `place`.
    """
    return compose(
        """
        SELECT {order_id} AS id, new.* FROM ROWS FROM (
            json_to_recordset({orders}::json) AS ({columns}),
            json_to_recordset({beside}::json) AS (place integer, event_after_id text)) AS new
    """,
        order_id=order_id,
        orders=placeholder(orders),
        columns=sql_columns(),
        beside=placeholder(beside),
    )


def written_orders(orders: Fragment, at: str) -> Fragment:
    """Returns SQL that writes `orders` with a time: a statement, or the end of one."""
    return compose(
        "{into} SELECT id, {at}, {columns} FROM {orders}",
        into=_INTO,
        at=placeholder(at),
        columns=_COLUMNS,
        orders=orders,
    )


async def insert_orders(connection: Connection, orders: Iterable[tuple[int, OrderRow]], at: datetime) -> None:
    """Writes orders of one customer with these ids and this time, on the customer's node."""
    await insert(connection, _INTO, [(order_id, at, *astuple(order)) for order_id, order in orders])


_COMMA = Fragment(", ")
_COLUMNS = names(COLUMNS)
# All columns of `orders`, by name: with `*`, a running process would get one more when the next release adds a column.
ALL_COLUMNS = compose("id, created_at, {columns}, erased_at, placed_digest, mac", columns=_COLUMNS)
_INTO = compose("INSERT INTO orders (id, created_at, {columns})", columns=_COLUMNS)


def _sql_type(hint: Any) -> str:
    """Returns the PostgreSQL type of a field. For integers of any size it is bigint, as JSON has one kind of integer."""
    if inner := [part for part in get_args(hint) if part is not type(None)]:
        if get_origin(hint) is Annotated:
            return next((part for part in inner if isinstance(part, str)), None) or _sql_type(inner[0])
        return _sql_type(inner[0])
    return _SQL_TYPES[hint]


# Customer, environment, and a caller's reference, which is unique within them.
ReferenceKey = tuple[int, str, str]
# A daily sum: customer, service account, environment and currency.
SpendingKey = tuple[int, int | None, str, str]
# The ids of the payer's account and of the sales account.
AccountIds = tuple[int, int]


class Gift(msgspec.Struct, frozen=True):
    """The gift of an order with its price: `value_minor` is the face value of a code, `unit_cost_minor` the price of a code."""

    selection: str  # gift (one product) or gifts (a collection)
    product_id: int | None
    collection_id: int | None
    template_id: int | None
    country: str
    currency: str
    value_minor: int
    unit_cost_minor: int


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A checked order with its codes, ready to be written. The codes of a large order are encrypted while they are written."""

    row: OrderRow
    principal: Principal
    source: PaymentSource
    recipients: tuple[OrderRecipient, ...]  # empty for a code batch
    account_ids: AccountIds
    codes: list[DrawnCode]
    sealed: Iterable[SealedCode]
    remembered: Remembered | None = None  # if the caller is a remembered one: its state that the order relies on
    follow_up: FollowUp | None = None
    messages: tuple[str, ...] = ()  # the message of each recipient, if the order's message has placeholders
    quoted: bytes | None = None  # if a person sends with a quote: the digest of the quoted request

    @property
    def reference(self) -> str:
        """The public key, opaque to callers."""
        return self.row.reference

    @property
    def currency(self) -> str:
        """The ISO 4217 code of all its amounts."""
        return self.row.currency

    @property
    def payer_id(self) -> int:
        """The id of the ledger account that pays."""
        return self.account_ids[0]

    @property
    def code_count(self) -> int:
        """The number of codes, over all recipients."""
        return self.row.code_count

    @property
    def total_minor(self) -> int:
        """The price of the whole order, in minor units of its currency."""
        return self.row.total_minor

    @property
    def own_key(self) -> OwnKey:
        """The customer, environment and currency whose own accounts the order changes."""
        return self.row.customer_id, self.row.environment, self.row.currency

    def with_own_accounts(self, own: OwnAccounts) -> Self:
        """Returns the order with these own accounts of its customer."""
        return msgspec.structs.replace(self, account_ids=_account_ids(self.source, own))

    def addressees(self) -> Iterable[tuple[str | None, str | None]]:
        """Yields the address and name of each line, in the order of the codes."""
        if not self.recipients:
            return repeat((None, None), self.code_count)
        names = ((recipient.email, recipient.name) for recipient in self.recipients)
        return chain.from_iterable(map(repeat, names, map(_quantity, self.recipients)))

    def line_messages(self) -> Iterable[str]:
        """Yields the message of each line, in the order of the codes. Yields nothing if the order has one message for all."""
        return chain.from_iterable(map(repeat, self.messages, map(_quantity, self.recipients)))

    @property
    def reference_key(self) -> ReferenceKey | None:
        """The key that no other order may have; None when the caller gave no reference."""
        row = self.row
        return None if row.external_reference is None else (row.customer_id, row.environment, row.external_reference)


_quantity = attrgetter("quantity")


def _account_ids(source: PaymentSource, own: OwnAccounts) -> AccountIds:
    return source.payer_id(own.receivable), own.sales


def new_order(
    *,
    reference: str,
    caller: Caller,
    gift: Gift,
    spec: OrderSpec,
    own_accounts: OwnAccounts,
    codes: list[DrawnCode],
    sealed: Iterable[SealedCode],
    messages: tuple[str, ...] = (),
) -> Order:
    """Returns the order that a caller sends with this gift and `spec`."""
    principal = caller.principal
    options = msgspec.structs.asdict(spec.options)
    options["wrapping_key"] = options["wrapping_key"] or DEFAULT_WRAPPING
    row = OrderRow(
        reference=reference,
        customer_id=principal.customer_id,
        environment=principal.environment,
        service_account_id=principal.service_account_id,
        source=spec.source,
        external_reference=spec.external_reference,
        gift_selection=gift.selection,
        product_id=gift.product_id,
        collection_id=gift.collection_id,
        template_id=gift.template_id,
        country=gift.country,
        currency=gift.currency,
        value_minor=gift.value_minor,
        total_minor=gift.unit_cost_minor * spec.code_count,
        code_count=spec.code_count,
        recipient_count=spec.recipient_count,
        delivery_mode=spec.delivery_mode,
        scheduled_for=spec.scheduled_for,
        expiry_after_days=spec.expiry_after_days,
        account_id=spec.account_id,
        api_key_id=principal.key_id,
        address=caller.address,
        user_id=principal.user_id,
        **options,
    )
    source = payment_source(spec.account_id)
    return Order(
        row=row,
        principal=principal,
        source=source,
        recipients=spec.recipients,
        account_ids=_account_ids(source, own_accounts),
        codes=codes,
        sealed=sealed,
        remembered=caller.remembered,
        follow_up=_follow_up(spec),
        messages=messages,
    )


def _follow_up(spec: OrderSpec) -> FollowUp | None:
    if spec.claim_by is None and not spec.reminder_days:
        return None
    return FollowUp(spec.claim_by, spec.reminder_days or ())


class Placed(msgspec.Struct, frozen=True):
    """An order that is in the database."""

    order: Order
    created_at: datetime


def scope_of_orders(orders: Iterable[Order]) -> Scope:
    """Returns the scope of the customers of these orders."""
    return for_customers({(order.principal.customer_id, order.principal.environment) for order in orders})


Outcome = Placed | Exception
