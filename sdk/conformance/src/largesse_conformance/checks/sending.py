"""Sending: the content of an order, its cost, and the response."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from largesse_conformance import expect, orders
from largesse_conformance.context import Context, Gift, Order
from largesse_conformance.outcome import Skipped
from largesse_conformance.shapes import ISSUED_CODE, SEND_RESPONSE
from largesse_conformance.suite import add, add_members, check


def _responses(context: Context) -> list[Any]:
    return [orders.batch(context).response, orders.mailed(context).response]


def _codes(context: Context) -> list[Any]:
    return list(expect.member(orders.batch(context).response, "codes"))


add_members("sending", "send response", SEND_RESPONSE, _responses, uses=("batch", "mailed"))
add_members("sending.codes", "issued code", ISSUED_CODE, _codes, uses=("batch",))


def _add_responses() -> None:
    """Adds the same checks for each of the three operations."""
    for name, (place, codes) in orders.SHARED.items():

        def cost(context: Context, place: Any = place, codes: int = codes) -> None:
            order: Order = place(context)
            expect.equal(order.response["totalCost"], order.gift.value * codes, "`totalCost`")

        def count(context: Context, place: Any = place, codes: int = codes) -> None:
            expect.equal(place(context).response["codeCount"], codes, "`codeCount`")

        def value(context: Context, place: Any = place) -> None:
            order: Order = place(context)
            expect.equal(order.response["value"], order.gift.value, "`value`")

        def currency(context: Context, place: Any = place) -> None:
            order: Order = place(context)
            expect.equal(order.response["currency"], order.gift.item["currency"], "`currency`")

        add(f"sending.{name}_total_cost", f"`totalCost` is face value times codes (order: {name}).", cost, uses=(name,))
        add(f"sending.{name}_code_count", f"`codeCount` is the number of codes (order: {name}).", count, uses=(name,))
        add(f"sending.{name}_value", f"`value` is the face value of one code (order: {name}).", value, uses=(name,))
        add(f"sending.{name}_currency", f"`currency` is the gift's own (order: {name}).", currency, uses=(name,))


_add_responses()


@check(uses=["batch", "collection"])
def gift_selection_type(context: Context) -> None:
    """`giftSelectionType` is `gift` for a product and `gifts` for a collection."""
    expect.equal(orders.batch(context).response["giftSelectionType"], "gift", "`giftSelectionType` of a product")
    expect.equal(
        orders.collection(context).response["giftSelectionType"], "gifts", "`giftSelectionType` of a collection"
    )


@check(uses=["batch", "mailed", "collection", "template"])
def amounts_fit_the_currency(context: Context) -> None:
    """`value` and `totalCost` are not finer than the currency's smallest unit."""
    for place in (orders.batch, orders.mailed, orders.collection, orders.template):
        response = place(context).response
        for name in ("value", "totalCost"):
            expect.no_finer(response[name], response["currency"], f"`{name}`")


@check(uses=["batch"])
def batch_is_manual(context: Context) -> None:
    """`deliveryMode` of a code batch is `manual`."""
    expect.equal(orders.batch(context).response["deliveryMode"], "manual", "`deliveryMode`")


@check(uses=["batch"])
def batch_returns_its_codes(context: Context) -> None:
    """A code batch returns one issued code for each code that was ordered."""
    expect.equal(len(_codes(context)), orders.BATCH_CODES, "The number of `codes`")


@check(uses=["batch", "collection", "template"])
def codes_are_different(context: Context) -> None:
    """No two codes are the same, and no two claim links."""
    placed = [orders.batch(context), orders.collection(context), orders.template(context)]
    codes = [code for order in placed for code in order.response["codes"]]
    expect.expect(len({code["code"] for code in codes}) == len(codes), "Two codes are the same.")
    expect.expect(len({code["redemptionUrl"] for code in codes}) == len(codes), "Two claim links are the same.")


@check(uses=["batch"])
def batch_has_no_recipients(context: Context) -> None:
    """`recipientCount` of a code batch is 0."""
    expect.equal(orders.batch(context).response["recipientCount"], 0, "`recipientCount`")


@check(uses=["batch"])
def batch_ignores_send_at(context: Context) -> None:
    """A code batch is generated at once: `sendAt` is ignored, even one in the past, and `scheduledFor` is null."""
    expect.equal(orders.batch(context).response["scheduledFor"], None, "`scheduledFor`")


@check(uses=["mailed"])
def mailed_is_send(context: Context) -> None:
    """`deliveryMode` of an order with recipients is `send`."""
    expect.equal(orders.mailed(context).response["deliveryMode"], "send", "`deliveryMode`")


@check(uses=["mailed"])
def mailed_returns_no_codes(context: Context) -> None:
    """`codes` are empty when recipients were emailed."""
    expect.expect(orders.mailed(context).response["codes"] == [], "`codes` are not empty.")


@check(uses=["mailed"])
def recipients_are_counted_once(context: Context) -> None:
    """`recipientCount` counts distinct addresses; letter case makes no difference."""
    expect.equal(orders.mailed(context).response["recipientCount"], 2, "`recipientCount`")


@check(uses=["mailed"])
def immediate_has_no_schedule(context: Context) -> None:
    """Without `sendAt`, `scheduledFor` is null."""
    expect.equal(orders.mailed(context).response["scheduledFor"], None, "`scheduledFor`")


@check(uses=["scheduled"])
def scheduled_for(context: Context) -> None:
    """With `sendAt`, `scheduledFor` is that instant."""
    order = orders.scheduled(context)
    found = expect.member(order.response, "scheduledFor")
    expect.expect(isinstance(found, str), f"`scheduledFor` is {found!r}.")
    expect.equal(datetime.fromisoformat(found), datetime.fromisoformat(order.body["sendAt"]), "`scheduledFor`")


@check(uses=["batch"])
def reference_is_echoed(context: Context) -> None:
    """`externalReference` is echoed."""
    order = orders.batch(context)
    expect.equal(order.response["externalReference"], order.body["externalReference"], "`externalReference`")


@check(uses=["mailed"])
def no_reference_is_null(context: Context) -> None:
    """`externalReference` is null when none was sent."""
    expect.equal(orders.mailed(context).response["externalReference"], None, "`externalReference`")


@check(uses=["batch", "mailed", "collection"])
def references_are_not_sequential(context: Context) -> None:
    """`reference` is opaque: different for each order, and not a number."""
    found = [place(context).reference for place in (orders.batch, orders.mailed, orders.collection)]
    expect.unique(found, "The references")
    expect.expect(not any(one.isdecimal() for one in found), "A reference is a number.")
    expect.unique([one[:8] for one in found], "The beginnings of the references")


@check(codes=1)
def balance_pays_exactly(context: Context) -> None:
    """The account pays `totalCost`, no more and no less. (Other orders from the account at the same time disturb this check.)"""
    before = context.balance()
    order = context.place(context.gift())
    expect.equal(
        before - context.balance(), Decimal(order.response["totalCost"]), "The balance before less the balance after"
    )


@check()
def physical_cost(context: Context) -> None:
    """A physical gift costs its `totalPrice` for each code. (Checked with a quote.)"""
    gift = context.gift("physical")
    quoted = expect.found(context.quote("gift", context.body(gift, codeQuantity=3)))
    expect.equal(quoted["totalCost"], gift.value * 3, "`totalCost` of three")


@check(codes=1)
def invoiced(context: Context) -> None:
    """An invoiced customer leaves `accountId` out."""
    caller = context.caller("invoiced")
    gift = context.gift()
    body = context.body(gift, accountId=...)
    expect.equal(expect.found(context.send(gift.path, body, caller))["codeCount"], 1, "`codeCount`")


@check()
def invoiced_with_an_account(context: Context) -> None:
    """`accountId` is refused with 400 for an invoiced customer."""
    gift = context.gift()
    body = context.body(gift, accountId=context.settings.account or 1)
    expect.refused(context.send(gift.path, body, context.caller("invoiced")), 400, "accountId")


@check(uses=["batch"])
def unknown_members_are_ignored(context: Context) -> None:
    """Unknown members of a body are ignored, so none can change who places the order."""
    record = context.record(orders.batch(context))
    expect.equal(record["createdBy"], context.me()["serviceAccountId"], "`createdBy`")
    expect.equal(record["customerId"], context.me()["customerId"], "`customerId`")


@check()
def unknown_members_are_named(context: Context) -> None:
    """The response header `X-Ignored` names unknown members of a body."""
    gift = context.gift()
    answer = context.quote(gift.kind, context.body(gift, externalRef="misspelt"))
    expect.status(answer, 200)
    expect.expect("externalRef" in answer.headers.get("X-Ignored", ""), "X-Ignored does not name `externalRef`.")


@check()
def refused_leaves_nothing(context: Context) -> None:
    """An order that is refused leaves nothing behind: the newest order and the balance are the same."""
    gift = context.gift()
    newest = context.newest()
    before = context.balance()
    expect.refused(context.send(gift.path, context.body(gift, codeQuantity=0)), 400)
    expect.equal(context.newest().get("id"), newest.get("id"), "The newest order")
    expect.equal(context.balance(), before, "The balance")


@check(codes=1)
def insufficient_balance(context: Context) -> None:
    """An order that the account cannot cover is 402, places nothing, and leaves its reference free."""
    gift, body = _too_dear(context)
    body["externalReference"] = context.new_reference()
    before, newest = context.balance(), context.newest().get("id")
    expect.refused(context.send(gift.path, body), 402)
    expect.equal(context.balance(), before, "The balance after the 402")
    expect.equal(context.newest().get("id"), newest, "The newest order after the 402")
    small = context.gift()
    expect.found(context.send(small.path, context.body(small, externalReference=body["externalReference"])))


def _too_dear(context: Context) -> tuple[Gift, dict[str, Any]]:
    """Returns an order that costs more than the balance of the account to charge, or of another account in its currency."""
    account = context.account
    if account is None:
        raise Skipped("Orders of this customer are invoiced.")
    payable = [one for one in context.accounts() if one["currency"] == account["currency"]]
    poorest = min(payable, key=lambda one: Decimal(one["balance"]))
    balance = context.balance() if poorest["id"] == account["id"] else Decimal(poorest["balance"])
    product = max(
        (
            p
            for p in context.products()
            if p["isDigital"] and p["currency"] == account["currency"] and p["requiresAmount"]
        ),
        key=lambda p: Decimal(p["maxAmount"]),
        default=None,
    )
    if product is None:
        raise Skipped("The catalogue has no product with an amount in the account's currency.")
    value = Decimal(product["maxAmount"])
    if value * 5000 <= balance:
        raise Skipped(f"5,000 codes of {value} cost less than account {poorest['id']} holds.")
    members = {"productId": product["id"], "value": value, "country": context.settings.country}
    gift = Gift("gift", members, value, product)
    return gift, context.body(gift, accountId=poorest["id"], codeQuantity=int(balance // value) + 1)
