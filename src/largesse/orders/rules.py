"""The rules that decide which orders of a batch are placed, on what the transaction has read and locked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from largesse.approvals.model import ApprovalRule
from largesse.base.errors import (
    BudgetExceeded,
    DailyLimit,
    InsufficientBalance,
    InvalidRequest,
    OrderLimit,
    Problem,
    ReferenceUsed,
    Unavailable,
)
from largesse.base.money import MAX_HELD_MINOR, canonical
from largesse.budgets.model import Budget, Charge, PeriodKey, Spender, budgets_of
from largesse.budgets.model import require_within as require_within_budgets
from largesse.customers.access import KeyStatus, PersonStatus, StaleCaller, require_key_status, require_sender
from largesse.customers.authenticator import Remembered
from largesse.customers.restrictions import CODES, SEND, Limit, read_limits
from largesse.encryption.chain import START
from largesse.ledger.payment_sources import FromAccount, OnInvoice
from largesse.ledger.posting import Entry
from largesse.orders.approving import NO_APPROVALS, Approvals, require_approved, require_grant, rules_about
from largesse.orders.order import Order, ReferenceKey, SpendingKey

NO_SUCH_ACCOUNT = "`account_id` names no funding account that this key can draw from."


class LedgerAccount(msgspec.Struct, array_like=True, gc=False):
    """A ledger account with its running balance."""

    id: int
    customer_id: int
    environment: str
    kind: str  # `closed` for a closed funding account
    currency: str
    balance_minor: int
    open_to_all: bool
    service_account_ids: Sequence[int]
    head: bytes = START  # the head of the chain of its entries
    has_budgets: bool = False  # for a sales account: whether budgets limit the orders that change it

    def is_own(self, order: Order, kind: str) -> bool:
        """Returns whether it is the account of that kind that the customer has in the order's environment and currency."""
        row = order.row
        return (
            self.kind == kind
            and self.customer_id == row.customer_id
            and self.environment == row.environment
            and self.currency == row.currency
        )

    def is_open_to(self, order: Order, person: PersonStatus | None) -> bool:
        """Returns whether it is a funding account of the order's customer and environment that the caller may use."""
        principal = order.principal
        return (
            self.kind == "funding"
            and self.customer_id == principal.customer_id
            and self.environment == principal.environment
            and (
                self.open_to_all
                or principal.draws_on_all
                or principal.service_account_id in self.service_account_ids
                or (person is not None and self.id in person.account_ids)
            )
        )


class LockedAccount(Exception):
    """Another transaction has locked something that the order needs. The order was neither placed nor refused, and can be tried again."""


class AccountsGone(Unavailable):
    """The own accounts of the order's customer were lost in a crash of the database. They can be created again."""

    def __init__(self) -> None:
        super().__init__("The ledger accounts of the order were lost in a crash of the database; nothing was placed.")


# Why an order is not placed: it is refused for a problem, or must be tried again.
Refusal = Problem | LockedAccount | StaleCaller


class ReferenceHeld(LockedAccount):
    """The accounts are free, but another transaction is using a reference of the batch."""


class BatchContext(msgspec.Struct):
    """Everything that the rules need to decide a batch, read under its locks."""

    now: datetime
    transaction_id: str  # the database's name for the transaction that read this
    locked: frozenset[int]  # the ids of the accounts that this transaction has locked
    ids_left: int  # how many more orders the installation can place
    transfer_ids: Iterator[int]
    key_statuses: Mapping[int, KeyStatus]  # by the id of the key, for keys that exist
    people: Mapping[int, PersonStatus]  # for people who may still send, by `Principal.person_key`
    references: dict[ReferenceKey, str]  # callers' references that are used, each with the reference of its order
    accounts: Mapping[int, LedgerAccount]
    spending: dict[SpendingKey, int] = {}  # the sums of today, for service accounts with a daily limit
    catalogue_version: int = 0
    # Products changed since the oldest version that an order relies on; None if that is unknown.
    changed_products: frozenset[int] | None = frozenset()
    approvals: Approvals = NO_APPROVALS
    budgets: Sequence[Budget] = ()  # budgets that may limit orders of the batch
    budget_spent: dict[PeriodKey, int] = {}  # the sums of these budgets in their current periods


class Decided(msgspec.Struct):
    """The orders to write with their entries, and the refusals of the others.

    An order gets its id when it is written. Until then, entries name it by its position in `placed`, from 1.
    """

    placed: list[Order] = []
    entries: list[Entry] = []
    spent: dict[SpendingKey, int] = {}  # amounts to add to daily sums
    charges: list[Charge] = []  # amounts to add to budgets
    refusals: dict[int, Refusal] = {}  # by position in the batch


def decide(batch: Sequence[Order], context: BatchContext) -> Decided:
    """Decides one order after the other. Each counts towards the limits of the next ones. A refusal affects no other order."""
    decided = Decided()
    is_behind = False  # whether an order relies on an older catalogue
    for at, order in enumerate(batch):
        if not is_behind and order.remembered is not None and order.remembered[1] < context.catalogue_version:
            # Only one caller is looked up again, so that the process loads the newer version. Orders of unchanged products can still be placed.
            is_behind = True
            decided.refusals[at] = StaleCaller()
            continue
        try:
            limit, budgets = _refuse(order, context)
        except (Problem, LockedAccount, StaleCaller) as refusal:
            decided.refusals[at] = refusal
            continue
        decided.placed.append(order)
        decided.entries += _post(len(decided.placed), order, context)
        if limit is not None and limit.daily_minor is not None:
            key, total_minor = _spending_key(order), order.total_minor
            context.spending[key] = context.spending.get(key, 0) + total_minor
            decided.spent[key] = decided.spent.get(key, 0) + total_minor
        for budget in budgets:
            budget_key = budget.key(context.now)
            context.budget_spent[budget_key] = context.budget_spent.get(budget_key, 0) + order.total_minor
            decided.charges.append(Charge(*budget_key, order.reference, order.total_minor))
        if (reference_key := order.reference_key) is not None:
            context.references[reference_key] = order.reference
    return decided


def _still_holds(order: Order, remembered: Remembered, status: KeyStatus | None, context: BatchContext) -> bool:
    """Returns whether the key has not changed, and neither has the catalogue, or at least the product of the order."""
    known_status, version = remembered
    if known_status != status or version > context.catalogue_version:
        return False
    changed, product_id = context.changed_products, order.row.product_id
    is_product_as_it_was = changed is not None and product_id is not None and product_id not in changed
    return version == context.catalogue_version or is_product_as_it_was


def _refuse(order: Order, context: BatchContext) -> tuple[Limit | None, Sequence[Budget]]:
    """Raises the first problem of `order`, in the contract's order of checks; or AccountsGone, LockedAccount or StaleCaller.

    Returns the limit of its service account, and the budgets it counts towards.
    """
    principal = order.principal
    status = None
    if principal.user_id is not None:
        require_sender(principal, _person(order, context))
        require_grant(order, context.approvals)
    elif principal.key_id is not None:
        status = context.key_statuses.get(principal.key_id)
        if order.remembered is not None and not _still_holds(order, order.remembered, status, context):
            raise StaleCaller
        require_key_status(principal, status, *_scopes(order), address=order.row.address)
    reference_key = order.reference_key
    if reference_key is not None and (holder := context.references.get(reference_key)):
        raise reference_used(holder)
    account = _funding_account(order, context) if isinstance(order.source, FromAccount) else None
    _require_own_accounts(order, context)
    if not context.locked.issuperset(order.account_ids):
        raise LockedAccount
    limit = _limit_of(order, status)
    if limit is not None:
        _require_within(order, limit, context.spending.get(_spending_key(order), 0))
    budgets = budgets_of(spender_of(order, context.people), context.budgets) if context.budgets else ()
    beyond = _beyond_budget(order, budgets, context)
    if principal.user_id is not None and context.approvals.rules:
        require_approved(order, context.approvals, _role(order, context), beyond)
    elif beyond is not None:
        raise beyond
    _require_payable(order, account, context)
    return limit, budgets


def _require_payable(order: Order, account: LedgerAccount | None, context: BatchContext) -> None:
    """Raises InsufficientBalance if the funding account holds too little, and InvalidRequest if the ledger cannot hold the sum of orders."""
    if account is not None and account.balance_minor < order.total_minor:
        raise InsufficientBalance(
            f"The order costs {canonical(order.total_minor, order.currency)} {order.currency}, "
            f"the account holds {canonical(account.balance_minor, account.currency)} {account.currency}."
        )
    held_minor = max(abs(context.accounts[one].balance_minor) for one in order.account_ids)
    if held_minor + order.total_minor > MAX_HELD_MINOR:
        raise InvalidRequest(f"With this order, all orders in {order.currency} come to more than can be recorded.")


def _beyond_budget(order: Order, budgets: Sequence[Budget], context: BatchContext) -> BudgetExceeded | None:
    """Returns the problem of the first budget that the order exceeds."""
    if not budgets:
        return None
    gift_minor = order.total_minor // order.code_count
    try:
        require_within_budgets(budgets, context.budget_spent, context.now, order.total_minor, gift_minor)
    except BudgetExceeded as beyond:
        return beyond
    return None


def find_rules(order: Order, context: BatchContext) -> Sequence[ApprovalRule]:
    """Returns the rules that require others to approve the order before it is placed."""
    if order.principal.user_id is None or not context.approvals.rules:
        return ()
    budgets = budgets_of(spender_of(order, context.people), context.budgets)
    is_beyond = _beyond_budget(order, budgets, context) is not None
    return rules_about(order, context.approvals, _role(order, context), is_beyond_budget=is_beyond)


def _role(order: Order, context: BatchContext) -> str:
    person = _person(order, context)
    return "" if person is None else person.role


def _funding_account(order: Order, context: BatchContext) -> LedgerAccount:
    """Returns the account that the order names. Raises InvalidRequest when the caller cannot use it."""
    account = context.accounts.get(order.payer_id)
    if account is None or not account.is_open_to(order, _person(order, context)):
        raise InvalidRequest(NO_SUCH_ACCOUNT)
    require_currency(account.currency, order.currency)
    return account


def _require_own_accounts(order: Order, context: BatchContext) -> None:
    """Raises AccountsGone unless the order's sales account, and its receivable if invoiced, exist. After a crash, their ids may be other accounts."""
    payer_id, sales_id = order.account_ids
    sales = context.accounts.get(sales_id)
    payer = context.accounts.get(payer_id)
    if sales is None or not sales.is_own(order, "sales"):
        raise AccountsGone
    if isinstance(order.source, OnInvoice) and (payer is None or not payer.is_own(order, "receivable")):
        raise AccountsGone


def _scopes(order: Order) -> tuple[str, ...]:
    """Returns the scopes that an order needs. A code batch needs one more, as it returns its codes to the caller."""
    return (SEND,) if order.recipients else (SEND, CODES)


def _person(order: Order, context: BatchContext) -> PersonStatus | None:
    key = order.principal.person_key
    return None if key is None else context.people.get(key)


def require_currency(held: str, currency: str) -> None:
    """Raises InvalidRequest unless the funding account holds the currency of the order."""
    if held != currency:
        raise InvalidRequest(f"`account_id` names an account in {held}, but the order is in {currency}.")


def reference_used(holder: str) -> ReferenceUsed:
    """Returns the refusal of an order whose external reference the order `holder` has."""
    return ReferenceUsed(f"`external_reference` is already used by order {holder}; nothing was placed.", holder=holder)


def _post(place: int, order: Order, context: BatchContext) -> list[Entry]:
    """Returns the entries of the order's transfer: from the funding or receivable account to sales."""
    transfer_id = next(context.transfer_ids)
    payer_id, sales_id = order.account_ids
    total_minor, reference = order.total_minor, order.reference
    entries = []
    for account_id, amount_minor in ((payer_id, -total_minor), (sales_id, total_minor)):
        account = context.accounts[account_id]
        account.balance_minor += amount_minor
        entries.append(
            Entry(
                account.customer_id,
                account_id,
                transfer_id,
                "order",
                place,
                amount_minor,
                account.balance_minor,
                order_reference=reference,
            )
        )
    return entries


def _limit_of(order: Order, status: KeyStatus | None) -> Limit | None:
    """Returns the limit of the order's service account in its currency; None if it has none."""
    if status is None or status.limits is None:
        return None
    return read_limits(status.limits).get(order.currency)


def _spending_key(order: Order) -> SpendingKey:
    """Returns the daily sum that the order counts towards."""
    principal = order.principal
    return principal.customer_id, principal.service_account_id, principal.environment, order.currency


def limited_daily(orders: Iterable[Order], key_statuses: Mapping[int, KeyStatus]) -> list[SpendingKey]:
    """Returns the daily sums that limit the orders.

    They are read and written under the lock of the sales account, which all orders of a customer in an environment and currency need. So no
    two orders of a service account are decided at the same time, even if different funding accounts pay. If no service account has a daily
    limit, nothing is read or written. Days are in UTC.
    """
    if all(status.limits is None for status in key_statuses.values()):
        return []
    limited = {
        _spending_key(order): None
        for order in orders
        if order.principal.key_id is not None
        and (limit := _limit_of(order, key_statuses.get(order.principal.key_id)))
        and limit.daily_minor is not None
    }
    return list(limited)


def _require_within(order: Order, limit: Limit, spent_minor: int) -> None:
    """Raises OrderLimit or DailyLimit when the order costs more than its service account may order at once, or today."""
    total, currency = order.total_minor, order.currency
    name = order.principal.service_account_name
    if limit.largest_order_minor is not None and total > limit.largest_order_minor:
        raise OrderLimit(
            f"The order costs {canonical(total, currency)} {currency}, and the service account {name!r} may order "
            f"{canonical(limit.largest_order_minor, currency)} {currency} at once."
        )
    if limit.daily_minor is not None and spent_minor + total > limit.daily_minor:
        raise DailyLimit(
            f"The order costs {canonical(total, currency)} {currency}, and the service account {name!r} has ordered "
            f"{canonical(spent_minor, currency)} of the {canonical(limit.daily_minor, currency)} {currency} that it may order "
            "in a day (UTC)."
        )


def spender_of(order: Order, people: Mapping[int, PersonStatus]) -> Spender:
    """Returns the properties of an order that decide which budgets it counts towards. `people` has the key `Principal.person_key`."""
    principal, row = order.principal, order.row
    person = None if principal.person_key is None else people.get(principal.person_key)
    return Spender(
        row.customer_id,
        row.environment,
        row.currency,
        principal.user_id,
        None if person is None else person.role,
        principal.service_account_id if principal.user_id is None else None,
        row.account_id,
    )


def budgeted(
    orders: Iterable[Order], accounts: Mapping[int, LedgerAccount], people: Mapping[int, PersonStatus]
) -> set[Spender]:
    """Returns the spenders whose orders change accounts with budgets."""
    if not any(account.has_budgets for account in accounts.values()):
        return set()
    return {
        spender_of(order, people)
        for order in orders
        if any((account := accounts.get(one)) is not None and account.has_budgets for one in order.account_ids)
    }
