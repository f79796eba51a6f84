"""Quoting: what a send would be charged, by the rules that place it, and all that would keep it from being placed.

A send is refused for the first thing that is wrong; a quote tells all. So that the rules are there once, they are asked again
with what they refused left out, until nothing is left that they refuse.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from itertools import count

import msgspec

from largesse.base.decoding import Unreadable, WrongItem, decode_body
from largesse.base.errors import InvalidRequest, ReferenceUsed
from largesse.base.vault import Vault
from largesse.database import Connection, Database
from largesse.funding import FromAccount, PaymentSource, payment_source
from largesse.identity import Caller, Standing
from largesse.orders.findings import Findings
from largesse.orders.order import Gift, Order, OwnAccounts, ReferenceKey, new_order
from largesse.orders.quotes import make_quote
from largesse.orders.reading import read_account, read_references
from largesse.orders.recipients import read_recipients, read_recipients_of
from largesse.orders.request import SendBody, Wanted, read_send
from largesse.orders.rules import Decided, Ground, LedgerAccount, decide
from largesse.orders.sending import Sender

# What stands for a member that was refused while the others are looked at; null for all other members.
_HARMLESS = {
    "productId": msgspec.Raw(b"1"),
    "collectionId": msgspec.Raw(b"1"),
    "templateId": msgspec.Raw(b"1"),
    "recipients": msgspec.Raw(b'[{"email":"nobody@example.com"}]'),
    "codeQuantity": msgspec.Raw(b"1"),
}
_NULL = msgspec.Raw(b"null")
# A member is refused once, the recipients perhaps twice, and there are fewer members.
_MOST_READINGS = 32
# What stands for the customer's accounts beside its funding accounts, which it may not have yet.
_OWN_ACCOUNTS = OwnAccounts(receivable=0, sales=-1)
# Without these nobody knows what is sent, and without the others what it costs.
_CHOOSING = ("productId", "collectionId", "templateId", "country")
_PRICING = (*_CHOOSING, "value", "recipients", "codeQuantity")


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

    def __init__(self, database: Database, sender: Sender, vault: Vault) -> None:
        self._database = database
        self._sender = sender
        self._vault = vault

    async def quote(self, caller: Caller, raw: bytes, kind: type[SendBody]) -> Quote:
        """The quote for the send whose JSON body of type `kind` is `raw`.

        Raises what the send would raise, for as long as nothing changes, with all else that is wrong in its `errors`.
        """
        found = Findings()
        body, wanted = await self._read(caller, raw, kind, found)
        with found:
            await self._sender.check_account_given(caller.principal, wanted)
        gift = None
        if not any(member in found for member in _CHOOSING):
            with found:
                gift, wanted = await self._sender.find_gift(caller, body, wanted)
        if body.recipients and "recipients" not in found:
            with found:
                steps = read_recipients(body.recipients)
                recipients = await self._sender.finish(caller.principal, steps)
                wanted = msgspec.structs.replace(wanted, recipients=recipients)
        decided = await self._decide(caller, gift, wanted, found)
        found.raise_all()
        assert gift is not None, "a gift that was not found has been told"
        return self._quote(caller, gift, wanted, decided)

    async def _read(
        self, caller: Caller, raw: bytes, kind: type[SendBody], found: Findings
    ) -> tuple[SendBody, Wanted]:
        """The body with something harmless for whatever is wrong in it. Raises Unreadable."""
        for _ in range(_MOST_READINGS):
            try:
                body = decode_body(raw, kind)
                return body, read_send(body, plan=caller.principal.plan, now=caller.now)
            except Unreadable:
                raise
            except InvalidRequest as refusal:
                if isinstance(refusal, WrongItem):
                    with found:
                        await self._sender.finish(caller.principal, read_recipients_of(raw))
                raw = _without(raw, found.keep(refusal))
                await asyncio.sleep(0)  # a large body takes its time
        raise AssertionError("what was refused is left out, so that something is left that can be read")

    async def _decide(self, caller: Caller, gift: Gift | None, wanted: Wanted, found: Findings) -> Decided:
        """What the placer would decide on the order now; what it would refuse it for is among what was found then."""
        if "accountId" in found:
            wanted = msgspec.structs.replace(wanted, account_id=None)
        async with self._database.connection() as connection:
            account = await _read_account(connection, payment_source(wanted.account_id))
            if gift is None:
                gift = _free_gift(account.currency if account else "")
            elif any(member in found for member in _PRICING):
                gift = msgspec.structs.replace(gift, unit_cost_minor=0)
            order = _order(caller, gift, wanted)
            keys = [] if order.reference_key is None else [order.reference_key]
            ground = _ground(order, caller.now, account, await read_references(connection, keys))
        decided = decide([order], ground)
        while refusal := decided.refusals.get(0):
            with found:
                if isinstance(refusal, InvalidRequest):  # the funding account cannot be used
                    await self._sender.check_some_account(caller.principal)
                raise refusal
            if not isinstance(refusal, ReferenceUsed):
                break
            wanted = msgspec.structs.replace(wanted, external_reference=None)
            order = _order(caller, gift, wanted)
            decided = decide([order], ground)
        return decided

    def _quote(self, caller: Caller, gift: Gift, wanted: Wanted, decided: Decided) -> Quote:
        token, expires_at = make_quote(self._vault, caller, gift, wanted)
        (order,) = decided.placed
        paid = next(posting for posting in decided.postings if posting.account_id == order.payer_id)
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


def _without(raw: bytes, member: str) -> bytes:
    """A body with something harmless for a member that was refused."""
    members = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    has_recipients, has_quantity = (_is_given(members.get(name)) for name in ("recipients", "codeQuantity"))
    if member == "recipients" and has_recipients and has_quantity:
        member = "codeQuantity"  # the one too many
    harmless = _NULL if member == "codeQuantity" and has_recipients else _HARMLESS.get(member, _NULL)
    return msgspec.json.encode(members | {member: harmless})


def _is_given(value: msgspec.Raw | None) -> bool:
    return value is not None and bytes(value).translate(None, b" \t\r\n") not in {b"null", b"[]"}


async def _read_account(connection: Connection, source: PaymentSource) -> LedgerAccount | None:
    """The funding account that an order is to be paid from, whoever's it is; None for one on invoice."""
    return await read_account(connection, source.account_id) if isinstance(source, FromAccount) else None


def _order(caller: Caller, gift: Gift, wanted: Wanted) -> Order:
    """The order as the rules look at it: without codes, beside accounts that stand for the customer's own."""
    return new_order(
        reference="",
        principal=caller.principal,
        gift=gift,
        wanted=wanted,
        own_accounts=_OWN_ACCOUNTS,
        codes=[],
        sealed=[],
    )


def _ground(
    order: Order, now: datetime, funding: LedgerAccount | None, references: dict[ReferenceKey, str]
) -> Ground:
    """What an order is decided on that is not going to be placed: nothing is locked, and nobody else is asked for."""
    principal = order.principal
    accounts = {
        number: LedgerAccount(
            number, principal.customer_id, principal.environment, kind, order.currency, 0, False, ()
        )
        for number, kind in ((_OWN_ACCOUNTS.receivable, "receivable"), (_OWN_ACCOUNTS.sales, "sales"))
    }
    if funding is not None:
        accounts[funding.id] = funding
    return Ground(
        now=now,
        transaction_id="",
        locked=frozenset(accounts),
        ids_left=1,
        movement_ids=count(),
        standings={principal.key_id: Standing(principal.plan, principal.service_account_active)},
        references=references,
        accounts=accounts,
    )


def _free_gift(currency: str) -> Gift:
    """What stands for a gift that was refused, while the account and the reference are looked at."""
    return Gift("gift", None, None, None, "", currency, 0, 0)
