"""Quotes: what a send would be charged, by the rules that place it, and all errors that would refuse it.

A send is refused for the first error, a quote reports all. Both use the same rules: a quote replaces each refused value with a harmless one
and applies the rules again, until they refuse nothing.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count
from types import TracebackType

import msgspec
from msgspec import UNSET

from largesse.approvals.model import ApprovalRule
from largesse.base.errors import (
    BudgetExceeded,
    DailyLimit,
    FieldError,
    InsufficientBalance,
    InvalidRequest,
    OrderLimit,
    Problem,
    ReferenceUsed,
)
from largesse.budgets.model import Budget, BudgetLeft, budgets_of, left_after
from largesse.budgets.store import read_limiting
from largesse.customers.access import KeyStatus
from largesse.customers.authenticator import Caller
from largesse.db.pool import Connection, Database
from largesse.encryption.vault import Vault
from largesse.ledger.own_accounts import OwnAccounts
from largesse.ledger.payment_sources import FromAccount, PaymentSource, payment_source
from largesse.orders.approving import read_approvals, read_people
from largesse.orders.order import Gift, Order, ReferenceKey, new_order
from largesse.orders.quotes import QUOTE_HOLDS, make_quote, request_digest
from largesse.orders.reading import read_account, read_references, read_spending
from largesse.orders.recipients import OrderRecipient, count_more
from largesse.orders.request import OrderSpec, SendRequest, read_send
from largesse.orders.rules import BatchContext, Decided, LedgerAccount, decide, find_rules, limited_daily, spender_of
from largesse.orders.service import OrderService

# More readings than needed: each field is refused at most once, and recipients at most twice.
_MOST_READINGS = 32
# Placeholders for the customer's own accounts, which may not exist yet.
_OWN_ACCOUNTS = OwnAccounts(receivable=0, sales=-1)
_NOBODY = OrderRecipient("nobody@example.com", None, 1)
# The fields that choose the gift, and all fields that decide its price.
_CHOOSING = ("product_id", "collection_id", "template_id", "country")
_PRICING = (*_CHOOSING, "value", "recipients", "code_quantity")


_NAMED = re.compile(r"`([A-Za-z_]+)")
_CAPITAL = re.compile(r"[A-Z]")
# The collected problems, in the order of a send's checks, each with the field to show it at; None if the problem itself names the field.
_KEPT: dict[type[Problem], str | None] = {
    ReferenceUsed: "external_reference",
    InvalidRequest: None,
    OrderLimit: "value",
    DailyLimit: "value",
    BudgetExceeded: "value",
    InsufficientBalance: "account_id",
}


class RequestFaults:
    """Collects the problems that blocks under `with faults:` raise, one for each field, so that later checks still run."""

    def __init__(self) -> None:
        self._found: dict[str, Problem] = {}  # each problem by the field that it is about

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Problem) or not isinstance(error, tuple(_KEPT)):
            return False
        self.keep(error)
        return True

    def __contains__(self, field: str) -> bool:
        return field in self._found

    def keep(self, problem: Problem) -> str:
        """Adds a problem. Returns the field it is about; raises the problem if it is about none."""
        field = next(about for kind, about in _KEPT.items() if isinstance(problem, kind)) or _field(problem)
        if field is None:
            raise problem
        self._found.setdefault(field, problem)
        return field

    def raise_all(self) -> None:
        """Raises the problem for which the send would be refused, with all problems in its `errors`. Does nothing if there are none."""
        ranked = [
            (field, problem) for kind in _KEPT for field, problem in self._found.items() if isinstance(problem, kind)
        ]
        if not ranked:
            return
        errors = [
            error
            for field, problem in ranked
            for error in problem.errors or (FieldError(f"#/{field}", problem.detail),)
        ]
        first = ranked[0][1]
        first.detail, first.errors = errors[0].detail + count_more(errors), tuple(errors)
        raise first


def _field(problem: Problem) -> str | None:
    """Returns the first field that a problem names, in snake case; None if it names none."""
    if problem.errors:
        name = problem.errors[0].pointer.split("/")[1]
    elif named := _NAMED.search(problem.detail):
        name = named[1]
    else:
        return None
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a send, and the token that holds a send to it."""

    value_minor: int  # the face value of a code
    currency: str
    code_count: int
    recipient_count: int
    total_minor: int
    delivery_mode: str
    scheduled_for: datetime | None
    balance_after_minor: int | None  # the balance of the funding account; None for an invoiced customer
    expires_at: datetime
    token: str
    budgets: Sequence[BudgetLeft] = ()  # budgets that the send counts towards
    rules: Sequence[ApprovalRule] = ()  # rules that require an approval first
    digest: bytes = b""  # the digest of the quoted request


class Quoter:
    """Calculates what sends would be charged. Writes and reserves nothing."""

    def __init__(self, database: Database, orders: OrderService, vault: Vault) -> None:
        self._database = database
        self._orders = orders
        self._vault = vault

    async def quote(
        self, caller: Caller, request: SendRequest, faults: RequestFaults, holds: timedelta = QUOTE_HOLDS
    ) -> Quote:
        """Returns the quote for a request. Its token is valid for `holds`. `faults` has the errors found so far, for which the request has harmless
        values.

        Raises the error that the send would raise, with all errors in its `errors`.
        """
        await self._orders.fail_on_purpose(caller, request)
        request, spec = self._read(caller, msgspec.structs.replace(request, quote=None), faults)
        with faults:
            await self._orders.check_account_given(caller.principal, spec)
        gift = None
        if not any(field in faults for field in _CHOOSING):
            with faults:
                gift, spec = await self._orders.find_gift(caller, request.choice, spec)
        if request.recipients and "recipients" not in faults:
            with faults:
                recipients = await self._orders.read_recipients(caller.principal, request.recipients)
                spec = msgspec.structs.replace(spec, recipients=recipients)
        if request.placeholders and "message" not in faults:
            with faults:
                await self._orders.check_message(caller.principal, spec)
        decided, budgets, rules = await self._decide(caller, gift, spec, faults)
        faults.raise_all()
        assert gift is not None, "a gift that was not found is among the faults"
        token, expires_at = make_quote(self._vault, caller, gift, spec, holds)
        quote = self._quote(gift, spec, decided, token, expires_at)
        total_minor = quote.total_minor
        left = [left_after(budget, total_minor) for budget in budgets]
        return msgspec.structs.replace(quote, budgets=left, rules=rules, digest=request_digest(gift, spec))

    def _read(self, caller: Caller, request: SendRequest, faults: RequestFaults) -> tuple[SendRequest, OrderSpec]:
        """Returns the request with a harmless value for each wrong field, and its meaning. Adds the errors to `faults`."""
        for _ in range(_MOST_READINGS):
            try:
                return request, read_send(request, caller.principal, caller.now)
            except InvalidRequest as refusal:
                request = _without(request, faults.keep(refusal))
        raise AssertionError("each field is refused at most twice")

    async def _decide(
        self, caller: Caller, gift: Gift | None, spec: OrderSpec, faults: RequestFaults
    ) -> tuple[Decided, Sequence[Budget], Sequence[ApprovalRule]]:
        """Returns what the placer would decide now, the budgets that the order counts towards, and the rules that require an approval.

        Adds the reasons for which the placer would refuse the order to `faults`.
        """
        if "account_id" in faults:
            spec = msgspec.structs.replace(spec, account_id=None)
        async with self._database.connection(caller.principal.scope) as connection:
            account = await _read_account(connection, caller, payment_source(spec.account_id))
            if gift is None:
                gift = _free_gift(account.currency if account else "")
            elif any(member in faults for member in _PRICING):
                gift = msgspec.structs.replace(gift, unit_cost_minor=0)
            order = _order(caller, gift, spec)
            keys = [] if order.reference_key is None else [order.reference_key]
            context = _context(order, caller.now, account, await read_references(connection, keys))
            if caller.principal.user_id is not None:
                context.people = await read_people(connection, [order])
                context.approvals = await read_approvals(connection, [order], is_quote=True)
            context.spending = await read_spending(connection, limited_daily([order], context.key_statuses), caller.now)
            context.budgets = await read_limiting(connection, {spender_of(order, context.people)}, caller.now)
            context.budget_spent = {one.key(caller.now): one.spent_minor for one in context.budgets}
        rules = find_rules(order, context)  # must run before the order is added to the spent amounts
        decided = decide([order], context)
        while refusal := decided.refusals.get(0):
            with faults:
                if isinstance(refusal, InvalidRequest):  # the funding account cannot be used
                    await self._orders.check_some_account(caller.principal)
                raise refusal
            if not isinstance(refusal, ReferenceUsed):
                break
            spec = msgspec.structs.replace(spec, external_reference=None)
            order = _order(caller, gift, spec)
            decided = decide([order], context)
        budgets = budgets_of(spender_of(order, context.people), context.budgets)
        return decided, budgets, rules

    def _quote(self, gift: Gift, spec: OrderSpec, decided: Decided, token: str, expires_at: datetime) -> Quote:
        (order,) = decided.placed
        paid = next(entry for entry in decided.entries if entry.account_id == order.payer_id)
        return Quote(
            value_minor=gift.value_minor,
            currency=gift.currency,
            code_count=spec.code_count,
            recipient_count=spec.recipient_count,
            total_minor=order.total_minor,
            delivery_mode=spec.delivery_mode,
            scheduled_for=spec.scheduled_for,
            balance_after_minor=paid.balance_minor if isinstance(order.source, FromAccount) else None,
            expires_at=expires_at,
            token=token,
        )


def _without(request: SendRequest, field: str) -> SendRequest:
    """Returns the request with a harmless value for a field that was refused."""
    if field == "recipients" and request.recipients and request.code_quantity is not None:
        field = "code_quantity"  # both are given, so the request loses this one
    harmless: object = UNSET if field in {"send_at", "expiry_after_days"} else None
    if field == "recipients":
        harmless = [_NOBODY]
    elif field == "code_quantity" and not request.recipients:
        harmless = 1
    return msgspec.structs.replace(request, **{field: harmless})


async def _read_account(connection: Connection, caller: Caller, source: PaymentSource) -> LedgerAccount | None:
    """Returns the account of the caller's customer that pays; None for another customer's account, and for an invoiced customer."""
    if not isinstance(source, FromAccount):
        return None
    return await read_account(connection, caller.principal.customer_id, source.account_id)


def _order(caller: Caller, gift: Gift, spec: OrderSpec) -> Order:
    """Returns an order that the rules can decide: without codes, and with placeholders for the customer's own accounts."""
    return new_order(reference="", caller=caller, gift=gift, spec=spec, own_accounts=_OWN_ACCOUNTS, codes=[], sealed=[])


def _context(
    order: Order, now: datetime, funding: LedgerAccount | None, references: dict[ReferenceKey, str]
) -> BatchContext:
    """Returns the context for deciding an order that will not be placed: without locks."""
    principal = order.principal
    accounts = {
        number: LedgerAccount(number, principal.customer_id, principal.environment, kind, order.currency, 0, False, ())
        for number, kind in ((_OWN_ACCOUNTS.receivable, "receivable"), (_OWN_ACCOUNTS.sales, "sales"))
    }
    if funding is not None:
        accounts[funding.id] = funding
    return BatchContext(
        now=now,
        transaction_id="",
        locked=frozenset(accounts),
        ids_left=1,
        transfer_ids=count(),
        # A quote returns no codes, so it does not need their scope.
        key_statuses={}
        if principal.key_id is None
        else {principal.key_id: KeyStatus.of(principal)._replace(scopes=None)},
        people={},
        references=references,
        accounts=accounts,
    )


def _free_gift(currency: str) -> Gift:
    """Returns a placeholder for a gift that was refused, so that the account and the reference can still be checked."""
    return Gift("gift", None, None, None, "", currency, 0, 0)
