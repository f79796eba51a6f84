"""Callers never see or use data of another customer."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from largesse_conformance import expect, orders
from largesse_conformance.context import Context, Gift
from largesse_conformance.http import Answer
from largesse_conformance.outcome import Skipped
from largesse_conformance.suite import add, check

_NEVER = "00000000000000000000"


@check(uses=["batch", "mailed"])
def orders_are_not_listed(context: Context) -> None:
    """GET /orders lists no order of another customer."""
    own = {orders.batch(context).reference, orders.mailed(context).reference}
    theirs = {one["reference"] for one in expect.listed(context.caller("other").get("/orders", limit=50))}
    expect.equal(own & theirs, set(), "Orders in both lists")


@check(uses=["batch"])
def orders_after_an_id(context: Context) -> None:
    """GET /orders?after= lists no order of another customer."""
    first = context.record(orders.batch(context))["id"]
    found = expect.listed(context.caller("other").get("/orders", after=first - 1, limit=50))
    expect.expect(
        all(one["customerId"] != context.me()["customerId"] for one in found), "The list has an order of this customer."
    )


@check(uses=["batch"])
def orders_by_reference(context: Context) -> None:
    """GET /orders?externalReference= finds no order of another customer."""
    reference = orders.batch(context).body["externalReference"]
    found = expect.listed(context.caller("other").get("/orders", externalReference=reference))
    expect.expect(found == [], "The list has an order of another customer.")


@check()
def orders_are_of_one_customer(context: Context) -> None:
    """Every order of GET /orders belongs to the caller's customer."""
    for one in expect.listed(context.main.get("/orders", limit=50)):
        expect.equal(one["customerId"], context.me()["customerId"], "`customerId`")


def _add_addresses() -> None:
    """An address of another customer's order looks like one that does not exist."""
    asks: dict[str, Callable[[Context, str], Answer]] = {
        "order": lambda context, reference: context.caller("other").get(f"/orders/{reference}"),
        "request": lambda context, reference: context.caller("other").get(f"/orders/{reference}/request"),
        "deliveries": lambda context, reference: context.caller("other").get(f"/orders/{reference}/deliveries"),
        "cancel": lambda context, reference: context.caller("other").post(f"/orders/{reference}/cancel"),
        "resend": lambda context, reference: context.caller("other").post(
            f"/orders/{reference}/resend", {"email": "a@example.com"}
        ),
    }
    for name, ask in asks.items():

        def run(context: Context, ask: Callable[[Context, str], Answer] = ask) -> None:
            reference = orders.mailed(context).reference
            found = expect.refused(ask(context, reference), 404)
            missing = expect.refused(ask(context, _NEVER), 404)
            for member in ("type", "title", "status", "instance"):
                expect.equal(found.get(member), missing.get(member), f"`{member}` of the 404")
            details = str(found.get("detail")).replace(reference, ""), str(missing.get("detail")).replace(_NEVER, "")
            expect.equal(details[0], details[1], "`detail` of the 404")

        rule = f"Another customer's order looks like one that does not exist: 404 ({name})."
        add(f"isolation.{name}_of_an_order", rule, run, uses=("mailed",))


_add_addresses()


@check(uses=["batch"])
def codes_of_a_colleague(context: Context) -> None:
    """Only the service account that placed a batch may read its codes again: another one of the customer gets 403."""
    answer = context.caller("colleague").get(f"/orders/{orders.batch(context).reference}")
    expect.refused(answer, 403)


@check(uses=["batch"])
def cancelling_as_a_colleague(context: Context) -> None:
    """Only the service account that placed an order may cancel it: another one of the customer gets 403."""
    expect.refused(context.caller("colleague").post(f"/orders/{orders.batch(context).reference}/cancel"), 403)


@check(uses=["batch"])
def orders_of_a_colleague(context: Context) -> None:
    """GET /orders lists the orders of all service accounts of the customer."""
    found = [one["reference"] for one in expect.listed(context.caller("colleague").get("/orders", limit=50))]
    expect.expect(orders.batch(context).reference in found, "The colleague does not see the order.")


def _as_other(context: Context, kind: str, body: dict[str, Any], naming: str) -> None:
    expect.refused(context.send(f"/send/{kind}", body, context.caller("other")), 400, naming)


def _their_account(context: Context) -> Any:
    """Returns an account that the other customer can pay from, to send as `accountId`; `...`, which leaves it out, if it is invoiced."""
    accounts = context.accounts("other")
    return accounts[0]["id"] if accounts else ...


@check()
def account_of_another_customer(context: Context) -> None:
    """An order cannot be charged to an account of another customer: 400."""
    account = context.account
    if account is None:
        raise Skipped("Orders of this customer are invoiced.")
    gift = context.gift()
    theirs = {product["id"] for product in expect.listed(context.caller("other").get("/products", limit=200))}
    if gift.item["id"] not in theirs:
        raise Skipped("The other customer cannot send the product.")
    _as_other(context, "gift", context.body(gift), "accountId")


@check()
def template_of_another_customer(context: Context) -> None:
    """A template of another customer cannot be sent: 400."""
    body = context.body(context.template(), accountId=_their_account(context))
    _as_other(context, "template", body, "templateId")


@check()
def collection_of_another_customer(context: Context) -> None:
    """A custom collection of another customer cannot be sent: 400."""
    body = context.body(context.collection("custom"), accountId=_their_account(context))
    _as_other(context, "collection", body, "collectionId")


@check()
def product_of_another_customer(context: Context) -> None:
    """A product that is sold only to another customer cannot be sent: 400."""
    caller = context.caller("other")
    theirs = {
        product["id"] for product in expect.listed(caller.get("/products", limit=200, country=context.settings.country))
    }
    own = [product["id"] for product in context.products() if product["id"] not in theirs]
    if not own:
        raise Skipped("The customer has no product of its own.")
    gift = Gift("gift", {"productId": own[0], "country": context.settings.country}, Decimal(0), {})
    _as_other(context, "gift", context.body(gift, accountId=_their_account(context)), "productId")
