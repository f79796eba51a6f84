"""The externalReference: a request that is repeated places only one order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from largesse_conformance import expect, orders
from largesse_conformance.context import Context, Order
from largesse_conformance.suite import check

_AT_ONCE = 6


def _used(context: Context) -> Order:
    """Returns an order with a reference."""
    return orders.batch(context)


@check(uses=["batch"])
def second_order_is_409(context: Context) -> None:
    """The same request again is 409."""
    order = _used(context)
    expect.refused(context.send(order.gift.path, order.body), 409)


@check(uses=["batch"])
def different_order_is_409(context: Context) -> None:
    """Another request with a used reference is 409, whatever else it contains."""
    order = _used(context)
    body = context.body(order.gift, codeQuantity=1, externalReference=order.body["externalReference"])
    expect.refused(context.send(order.gift.path, body), 409)


@check(uses=["batch"])
def across_operations(context: Context) -> None:
    """A reference is used for all three send operations."""
    order = _used(context)
    for gift in (context.collection("points"), context.template()):
        body = context.body(gift, externalReference=order.body["externalReference"])
        expect.refused(context.send(gift.path, body), 409)


@check(uses=["batch"])
def before_the_rest_of_the_body(context: Context) -> None:
    """A used reference is 409 even if the rest of the body is wrong."""
    order = _used(context)
    body = {"productId": "wrong", "codeQuantity": 0, "externalReference": order.body["externalReference"]}
    expect.refused(context.send("/send/gift", body), 409)


@check(uses=["batch"])
def after_an_unreadable_body(context: Context) -> None:
    """A body that cannot be read is 400, before its reference is looked at."""
    reference = _used(context).body["externalReference"]
    expect.refused(context.main.post_raw("/send/gift", f'{{"externalReference": "{reference}", '), 400)


@check(uses=["batch"])
def names_the_order(context: Context) -> None:
    """`instance` of the 409 is the address of the order that has the reference."""
    order = _used(context)
    body = expect.refused(context.send(order.gift.path, order.body), 409)
    expect.equal(body.get("instance"), f"/orders/{order.reference}", "`instance`")


@check(uses=["batch"])
def charges_nothing(context: Context) -> None:
    """A 409 charges nothing. (Other orders from the account at the same time disturb this check.)"""
    order = _used(context)
    before = context.balance()
    expect.refused(context.send(order.gift.path, order.body), 409)
    expect.equal(context.balance(), before, "The balance")


@check(uses=["batch"])
def places_nothing(context: Context) -> None:
    """A 409 places nothing: one order has the reference."""
    order = _used(context)
    expect.refused(context.send(order.gift.path, order.body), 409)
    newest = expect.listed(context.main.get("/orders", limit=50))
    same = [one for one in newest if one.get("externalReference") == order.body["externalReference"]]
    expect.equal(len(same), 1, "The number of orders with the reference")


@check(uses=["batch"])
def blanks_are_trimmed(context: Context) -> None:
    """Blanks around a reference make no difference."""
    order = _used(context)
    body = order.body | {"externalReference": f"  {order.body['externalReference']} "}
    expect.refused(context.send(order.gift.path, body), 409)


@check(codes=2)
def blank_opts_out(context: Context) -> None:
    """A blank reference opts out: two orders with it are placed, and `externalReference` is null."""
    for _ in range(2):
        order = context.place(context.gift(), externalReference="  ")
        expect.equal(order.response["externalReference"], None, "`externalReference`")


@check(codes=1)
def refused_order_leaves_it_free(context: Context) -> None:
    """A reference is free again after a 400."""
    gift, reference = context.gift(), context.new_reference()
    expect.refused(context.send(gift.path, context.body(gift, codeQuantity=0, externalReference=reference)), 400)
    context.place(gift, externalReference=reference)


@check(codes=1)
def duplicates_in_flight(context: Context) -> None:
    """Of several equal requests at the same time, one is placed and all others are 409."""
    gift = context.gift()
    body = context.body(gift, externalReference=context.new_reference())
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        answers = list(threads.map(lambda _: context.main.post(gift.path, body), range(_AT_ONCE)))
    for answer in answers:
        context.remember(answer, context.main)
    statuses = sorted(answer.status for answer in answers)
    expect.equal(statuses, [200] + [409] * (_AT_ONCE - 1), "The statuses")


@check(uses=["batch"])
def of_one_customer(context: Context) -> None:
    """A reference that one customer has used is free for another: a faulty request of the other is 400, not 409."""
    order = _used(context)
    caller = context.caller("other")
    body = {
        "productId": order.body["productId"],
        "codeQuantity": 0,
        "externalReference": order.body["externalReference"],
    }
    expect.status(caller.post("/send/gift", body), 400)


@check(uses=["batch"])
def of_all_service_accounts(context: Context) -> None:
    """A reference that one service account has used is 409 for another one of the customer."""
    order = _used(context)
    expect.refused(context.send(order.gift.path, order.body, context.caller("colleague")), 409)
