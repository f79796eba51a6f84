"""An order on its way to being placed, and what the caller gets back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from largesse.identity import Principal
from largesse.lines import IssuedCode, SealedCode
from largesse.orders.request import Wanted
from largesse.orders.wrappings import DEFAULT_WRAPPING

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

    reference: str
    principal: Principal
    gift: Gift
    wanted: Wanted
    own_accounts: OwnAccounts
    codes: list[IssuedCode]
    sealed: Iterable[SealedCode]
    address: str | None = None  # the network address that the caller sent it from

    @property
    def currency(self) -> str:
        return self.gift.currency

    @property
    def account_id(self) -> int | None:
        return self.wanted.account_id

    @property
    def payer_id(self) -> int:
        """The account that the order is paid from: the funding account, or the receivable one."""
        return self.own_accounts.receivable if self.account_id is None else self.account_id

    @property
    def account_ids(self) -> AccountIds:
        """The accounts that placing it changes, and that it therefore locks."""
        return (self.payer_id, self.own_accounts.sales)

    @property
    def wrapping_key(self) -> str:
        return self.wanted.wrapping_key or DEFAULT_WRAPPING

    @property
    def code_count(self) -> int:
        return self.wanted.code_count

    @property
    def total_minor(self) -> int:
        return self.gift.unit_cost_minor * self.wanted.code_count

    @property
    def reference_key(self) -> ReferenceKey | None:
        """What no other order may have; None when the caller gave no reference."""
        if self.wanted.external_reference is None:
            return None
        return (self.principal.customer_id, self.principal.environment, self.wanted.external_reference)


class Placed(msgspec.Struct, frozen=True):
    """An order that is in the database."""

    order: Order
    created_at: datetime


Outcome = Placed | Exception
