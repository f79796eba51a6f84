"""Quoting: what a send would be charged, by the rules that place it, and all that would keep it from being placed.

A send is refused for the first thing that is wrong; a quote tells all. So that the rules are there once, they are asked again
with what they refused left out, until nothing is left that they refuse.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import count
from types import TracebackType

import msgspec
from msgspec import UNSET

from largesse.base.errors import (
    DailyLimit,
    FieldError,
    InsufficientBalance,
    InvalidRequest,
    OrderLimit,
    Problem,
    ReferenceUsed,
)
from largesse.customers.access import KeyStatus, person_statuses
from largesse.customers.authenticator import Caller
from largesse.db.pool import Connection, Database
from largesse.encryption.vault import Vault
from largesse.ledger.payment_sources import FromAccount, PaymentSource, payment_source
from largesse.orders.order import Gift, Order, OwnAccounts, ReferenceKey, new_order
from largesse.orders.quotes import make_quote
from largesse.orders.reading import read_account, read_references
from largesse.orders.recipients import OrderRecipient, count_more
from largesse.orders.request import OrderSpec, SendRequest, read_send
from largesse.orders.rules import BatchContext, Decided, LedgerAccount, decide
from largesse.orders.service import OrderService
from largesse.orders.spending import limited_daily, read_spending

# A field is refused once, the recipients perhaps twice, and there are fewer fields.
_MOST_READINGS = 32
# What stands for the customer's accounts beside its funding accounts, which it may not have yet.
_OWN_ACCOUNTS = OwnAccounts(receivable=0, sales=-1)
_NOBODY = OrderRecipient("nobody@example.com", None, 1)
# Without these nobody knows what is sent, and without the others what it costs.
_CHOOSING = ("product_id", "collection_id", "template_id", "country")
_PRICING = (*_CHOOSING, "value", "recipients", "code_quantity")


_NAMED = re.compile(r"`([A-Za-z_]+)")
_CAPITAL = re.compile(r"[A-Z]")
# In the order in which a send would be refused for them, and the field that each is about where it names none.
_KEPT: dict[type[Problem], str | None] = {
    ReferenceUsed: "external_reference",
    InvalidRequest: None,
    OrderLimit: "value",
    DailyLimit: "value",
    InsufficientBalance: "account_id",
}


class RequestFaults:
    """Keeps the problems that blocks under `with findings:` raise, the first of each field, and lets what follows go on."""

    def __init__(self) -> None:
        self._found: dict[str, Problem] = {}  # by the field it is about

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
        """Keeps a problem; returns the field it is about. Raises one that is about none."""
        field = next(about for kind, about in _KEPT.items() if isinstance(problem, kind)) or _field(problem)
        if field is None:
            raise problem
        self._found.setdefault(field, problem)
        return field

    def raise_all(self) -> None:
        """Raises what a send would have been refused for first, its `errors` naming all there is; nothing when all is well."""
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
    """The field that a problem is about, which is the first that it names; a body's members are spelled otherwise."""
    if problem.errors:
        name = problem.errors[0].pointer.split("/")[1]
    elif named := _NAMED.search(problem.detail):
        name = named[1]
    else:
        return None
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """What a send would be charged, and the token that holds it to that."""

    value_minor: int  # of a code
    currency: str
    code_count: int
    recipient_count: int
    total_minor: int
    delivery_mode: str
    scheduled_for: datetime | None
    balance_after_minor: int | None  # of the funding account; none on invoice
    expires_at: datetime
    token: str


class Quoter:
    """Says what sends would be charged. Nothing is written or kept for them, and nothing reserved."""

    def __init__(self, database: Database, intake: OrderService, vault: Vault) -> None:
        self._database = database
        self._intake = intake
        self._vault = vault

    async def quote(self, caller: Caller, asked: SendRequest, found: RequestFaults) -> Quote:
        """The quote for what is asked for; `found` holds what was wrong with it already, and has something harmless in its place.

        Raises what the send would raise, for as long as nothing changes, with all else that is wrong in its `errors`.
        """
        asked, wanted = self._read(caller, asked, found)
        with found:
            await self._intake.check_account_given(caller.principal, wanted)
        gift = None
        if not any(field in found for field in _CHOOSING):
            with found:
                gift, wanted = await self._intake.find_gift(caller, asked.choice, wanted)
        if asked.recipients and "recipients" not in found:
            with found:
                recipients = await self._intake.read_recipients(caller.principal, asked.recipients)
                wanted = msgspec.structs.replace(wanted, recipients=recipients)
        decided = await self._decide(caller, gift, wanted, found)
        found.raise_all()
        assert gift is not None, "a gift that was not found has been told"
        return self._quote(caller, gift, wanted, decided)

    def _read(self, caller: Caller, asked: SendRequest, found: RequestFaults) -> tuple[SendRequest, OrderSpec]:
        """What is asked for with something harmless for whatever is wrong, and what comes of it."""
        for _ in range(_MOST_READINGS):
            try:
                return asked, read_send(asked, caller.principal, caller.now)
            except InvalidRequest as refusal:
                asked = _without(asked, found.keep(refusal))
        raise AssertionError("what was refused is left out, so that something is left that can be read")

    async def _decide(self, caller: Caller, gift: Gift | None, wanted: OrderSpec, found: RequestFaults) -> Decided:
        """What the placer would decide on the order now; what it would refuse it for is among what was found then."""
        if "account_id" in found:
            wanted = msgspec.structs.replace(wanted, account_id=None)
        async with self._database.connection(caller.principal.scope) as connection:
            account = await _read_account(connection, caller, payment_source(wanted.account_id))
            if gift is None:
                gift = _free_gift(account.currency if account else "")
            elif any(member in found for member in _PRICING):
                gift = msgspec.structs.replace(gift, unit_cost_minor=0)
            order = _order(caller, gift, wanted)
            keys = [] if order.reference_key is None else [order.reference_key]
            context = _context(order, caller.now, account, await read_references(connection, keys))
            if caller.principal.session_id is not None:
                context.people = await person_statuses(connection, [caller.principal.session_id])
            context.spending = await read_spending(connection, limited_daily([order], context.standings), caller.now)
        decided = decide([order], context)
        while refusal := decided.refusals.get(0):
            with found:
                if isinstance(refusal, InvalidRequest):  # the funding account cannot be used
                    await self._intake.check_some_account(caller.principal)
                raise refusal
            if not isinstance(refusal, ReferenceUsed):
                break
            wanted = msgspec.structs.replace(wanted, external_reference=None)
            order = _order(caller, gift, wanted)
            decided = decide([order], context)
        return decided

    def _quote(self, caller: Caller, gift: Gift, wanted: OrderSpec, decided: Decided) -> Quote:
        token, expires_at = make_quote(self._vault, caller, gift, wanted)
        (order,) = decided.placed
        paid = next(entry for entry in decided.entries if entry.account_id == order.payer_id)
        return Quote(
            value_minor=gift.value_minor,
            currency=gift.currency,
            code_count=wanted.code_count,
            recipient_count=wanted.recipient_count,
            total_minor=order.total_minor,
            delivery_mode=wanted.delivery_mode,
            scheduled_for=wanted.scheduled_for,
            balance_after_minor=paid.balance_minor if isinstance(order.source, FromAccount) else None,
            expires_at=expires_at,
            token=token,
        )


def _without(asked: SendRequest, field: str) -> SendRequest:
    """What is asked for with something harmless for a field that was refused."""
    if field == "recipients" and asked.recipients and asked.code_quantity is not None:
        field = "code_quantity"  # the one too many
    harmless: object = UNSET if field in {"send_at", "expiry_after_days"} else None
    if field == "recipients":
        harmless = [_NOBODY]
    elif field == "code_quantity" and not asked.recipients:
        harmless = 1
    return msgspec.structs.replace(asked, **{field: harmless})


async def _read_account(connection: Connection, caller: Caller, source: PaymentSource) -> LedgerAccount | None:
    """The caller's account that an order is to be paid from; None for another's, and for one on invoice."""
    if not isinstance(source, FromAccount):
        return None
    return await read_account(connection, caller.principal.customer_id, source.account_id)


def _order(caller: Caller, gift: Gift, wanted: OrderSpec) -> Order:
    """The order as the rules look at it: without codes, beside accounts that stand for the customer's own."""
    return new_order(
        reference="",
        principal=caller.principal,
        gift=gift,
        spec=wanted,
        own_accounts=_OWN_ACCOUNTS,
        codes=[],
        sealed=[],
    )


def _context(
    order: Order, now: datetime, funding: LedgerAccount | None, references: dict[ReferenceKey, str]
) -> BatchContext:
    """What an order is decided on that is not going to be placed: nothing is locked, and nobody else is asked for."""
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
        # A quote gives no codes, so it does not ask for the scope that a batch of codes needs.
        standings={} if principal.key_id is None else {principal.key_id: KeyStatus.of(principal)._replace(scopes=None)},
        people={},
        references=references,
        accounts=accounts,
    )


def _free_gift(currency: str) -> Gift:
    """What stands for a gift that was refused, while the account and the reference are looked at."""
    return Gift("gift", None, None, None, "", currency, 0, 0)
