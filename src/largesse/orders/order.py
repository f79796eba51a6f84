"""An order on its way to being placed, and what the caller gets back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from largesse.customers.principal import Principal
from largesse.db.scope import Scope, for_customers
from largesse.ledger.payment_sources import PaymentSource, payment_source
from largesse.lines.codes import IssuedCode, SealedCode
from largesse.orders.options import DEFAULT_WRAPPING
from largesse.orders.recipients import OrderRecipient
from largesse.orders.request import OrderSpec
from largesse.orders.row import OrderRow

# What a caller's reference is unique for: customer, environment and the reference.
ReferenceKey = tuple[int, str, str]
# The payer's account and the one of sales.
AccountIds = tuple[int, int]


class Gift(msgspec.Struct, frozen=True):
    """What is sent, priced: `value_minor` is the face value of a code, `unit_cost_minor` what a code is charged."""

    selection: str  # gift: one product; gifts: a collection
    product_id: int | None
    collection_id: int | None
    template_id: int | None
    country: str
    currency: str
    value_minor: int
    unit_cost_minor: int


class OwnAccounts(msgspec.Struct, frozen=True):
    """The customer's ledger accounts beside its funding accounts, in the order's currency."""

    receivable: int
    sales: int


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A checked order with its codes drawn, ready to be written. Those of a large one are sealed as they are written."""

    kept: OrderRow
    principal: Principal
    source: PaymentSource
    recipients: tuple[OrderRecipient, ...]  # none of a code batch
    account_ids: AccountIds
    codes: list[IssuedCode]
    sealed: Iterable[SealedCode]

    @property
    def reference(self) -> str:
        """Its public key, opaque to callers."""
        return self.kept.reference

    @property
    def currency(self) -> str:
        """The ISO 4217 code that all its amounts are in."""
        return self.kept.currency

    @property
    def payer_id(self) -> int:
        """The ledger account that the order is paid from."""
        return self.account_ids[0]

    @property
    def code_count(self) -> int:
        """How many codes it issues, over all its recipients."""
        return self.kept.code_count

    @property
    def total_minor(self) -> int:
        """What it costs altogether, in minor units of its currency."""
        return self.kept.total_minor

    @property
    def reference_key(self) -> ReferenceKey | None:
        """What no other order may have; None when the caller gave no reference."""
        kept = self.kept
        if kept.external_reference is None:
            return None
        return (kept.customer_id, kept.environment, kept.external_reference)


def new_order(
    *,
    reference: str,
    principal: Principal,
    gift: Gift,
    wanted: OrderSpec,
    own_accounts: OwnAccounts,
    codes: list[IssuedCode],
    sealed: Iterable[SealedCode],
    address: str | None = None,
) -> Order:
    """The order that `principal` wants, sent from the network address `address`, under a reference drawn for it."""
    options = msgspec.structs.asdict(wanted.options)
    options["wrapping_key"] = options["wrapping_key"] or DEFAULT_WRAPPING
    kept = OrderRow(
        reference=reference,
        customer_id=principal.customer_id,
        environment=principal.environment,
        service_account_id=principal.service_account_id,
        source=wanted.source,
        external_reference=wanted.external_reference,
        gift_selection=gift.selection,
        product_id=gift.product_id,
        collection_id=gift.collection_id,
        template_id=gift.template_id,
        country=gift.country,
        currency=gift.currency,
        value_minor=gift.value_minor,
        total_minor=gift.unit_cost_minor * wanted.code_count,
        code_count=wanted.code_count,
        recipient_count=wanted.recipient_count,
        delivery_mode=wanted.delivery_mode,
        scheduled_for=wanted.scheduled_for,
        expiry_after_days=wanted.expiry_after_days,
        account_id=wanted.account_id,
        api_key_id=principal.key_id,
        address=address,
        user_id=principal.user_id,
        **options,
    )
    source = payment_source(wanted.account_id)
    return Order(
        kept=kept,
        principal=principal,
        source=source,
        recipients=wanted.recipients,
        account_ids=(source.payer_id(own_accounts.receivable), own_accounts.sales),
        codes=codes,
        sealed=sealed,
    )


class Placed(msgspec.Struct, frozen=True):
    """An order that is in the database."""

    order: Order
    created_at: datetime


def scope_of_orders(orders: Iterable[Order]) -> Scope:
    """For whom what is done with these orders at once acts: their customers."""
    return for_customers({(order.principal.customer_id, order.principal.environment) for order in orders})


Outcome = Placed | Exception
