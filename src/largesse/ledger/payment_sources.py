"""Payment sources of orders. Each is a class here, with its rules.

The customer's `funding` decides which one its orders use. An order stores the account that paid as its `account_id`; null means that it was
invoiced. CONTRIBUTING.md says how to add a payment source.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.db.fragments import Fragment, compose, identifier


class FromAccount(msgspec.Struct, frozen=True):
    """A funding account, which the caller names. Its balance must cover the order."""

    account_id: int

    rule: ClassVar[str] = "`account_id` is required: this customer pays from a topped-up balance."

    def payer_id(self, receivable_id: int) -> int:  # noqa: ARG002 - of this source, another account pays
        """Returns the ledger account that pays, for a customer with that receivable account."""
        return self.account_id


class OnInvoice(msgspec.Struct, frozen=True):
    """An invoice. The amount due is in the customer's receivable account, which may go below zero without a limit."""

    account_id: ClassVar[None] = None
    rule: ClassVar[str] = "`account_id` must be omitted: this customer is invoiced."

    def payer_id(self, receivable_id: int) -> int:
        """Returns the ledger account that pays, for a customer with that receivable account."""
        return receivable_id


PaymentSource = FromAccount | OnInvoice

# The payment source of a customer's orders, by its `funding`.
SOURCES: Mapping[str, type[PaymentSource]] = MappingProxyType({"balance": FromAccount, "invoiced": OnInvoice})
_ON_INVOICE = OnInvoice()


def payment_source(account_id: int | None) -> PaymentSource:
    """Returns the payment source of an order with that funding account; None means an invoice."""
    return _ON_INVOICE if account_id is None else FromAccount(account_id)


def is_fitting(source: PaymentSource, funding: str) -> bool:
    """Returns whether customers with that `funding` use this source."""
    return isinstance(source, SOURCES[funding])


def unfitting(funding: str) -> InvalidRequest:
    """Returns the error for an order whose payment source does not match the customer's `funding`."""
    return InvalidRequest(SOURCES[funding].rule)


def names_account(funding: str) -> bool:
    """Returns whether a customer with that `funding` names funding accounts."""
    return SOURCES[funding] is FromAccount


def is_payer(account: str, order: str) -> Fragment:
    """Returns SQL for whether the row `account` of the ledger's accounts is the one that the row `order` was paid from."""
    return compose(
        """
        CASE WHEN {order}.account_id IS NULL THEN {account}.kind = 'receivable'
             ELSE {account}.kind = 'funding' AND {account}.id = {order}.account_id END
        """,
        order=identifier(order),
        account=identifier(account),
    )
