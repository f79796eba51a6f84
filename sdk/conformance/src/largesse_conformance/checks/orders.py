"""GET /orders, and the operations on one order."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from largesse_conformance import expect
from largesse_conformance import orders as shared
from largesse_conformance.context import Context
from largesse_conformance.outcome import Skipped
from largesse_conformance.shapes import ORDER_RECORD
from largesse_conformance.suite import add, add_members, check

_PLACED = ("batch", "mailed", "collection", "template")


def _list(context: Context) -> list[dict[str, Any]]:
    """Returns the newest orders, which include those of this run."""
    for name in _PLACED[:2]:
        shared.SHARED[name][0](context)
    return context.once("orders", lambda: expect.listed(context.main.get("/orders", limit=50)))


def _ids(items: list[dict[str, Any]]) -> list[int]:
    return [item["id"] for item in items]


add_members("orders", "order record", ORDER_RECORD, _list, uses=("batch", "mailed"))


def _add_records() -> None:
    """Adds checks that each record repeats the values of its order."""
    same = ("reference", "value", "currency", "giftSelectionType", "deliveryMode", "externalReference")
    for name in _PLACED:
        for member in same:

            def run(context: Context, name: str = name, member: str = member) -> None:
                order = shared.SHARED[name][0](context)
                expect.equal(context.record(order)[member], order.response[member], f"`{member}` of the record")

            rule = f"`{member}` of an order record is that of the send response (order: {name})."
            add(f"orders.{name}_{member}", rule, run, uses=(name,))

        def count(context: Context, name: str = name) -> None:
            order = shared.SHARED[name][0](context)
            expect.equal(context.record(order)["lineCount"], order.response["codeCount"], "`lineCount` of the record")

        add(f"orders.{name}_lineCount", f"`lineCount` is the number of codes (order: {name}).", count, uses=(name,))


_add_records()


@check()
def newest_first(context: Context) -> None:
    """GET /orders lists the newest first, each order once."""
    ids = _ids(expect.listed(context.main.get("/orders", limit=50)))
    expect.equal(ids, sorted(set(ids), reverse=True), "The order of `id`")


@check(uses=["batch", "mailed"])
def dates_descend(context: Context) -> None:
    """`creationDate` descends in the list."""
    dates = [datetime.fromisoformat(one["creationDate"]) for one in _list(context)]
    expect.equal(dates, sorted(dates, reverse=True), "The order of `creationDate`")


@check(codes=1)
def newest_is_there_at_once(context: Context) -> None:
    """An order is listed as soon as it is placed."""
    order = context.place(context.gift())
    found = [one.get("reference") for one in expect.listed(context.main.get("/orders", limit=10))]
    expect.expect(order.reference in found, "The ten newest orders do not contain one that was just placed.")


@check(uses=["mailed"])
def creation_date_is_now(context: Context) -> None:
    """`creationDate` is when the order was placed."""
    created = datetime.fromisoformat(context.record(shared.mailed(context))["creationDate"])
    age_s = abs((datetime.now(UTC) - created).total_seconds())
    expect.expect(age_s < context.settings.time_limit_s + 300, f"`creationDate` is {age_s:.0f} seconds from now.")


@check()
def limit_is_10_by_default(context: Context) -> None:
    """Without `limit`, at most 10 orders are listed: the newest."""
    default = _ids(expect.listed(context.main.get("/orders")))
    expect.equal(default, _ids(expect.listed(context.main.get("/orders", limit=10))), "The list without `limit`")


@check(uses=["batch", "mailed"])
def limit_limits(context: Context) -> None:
    """`limit` limits the list to the newest."""
    newest = _list(context)
    two = _ids(expect.listed(context.main.get("/orders", limit=2)))
    expect.equal(len(two), 2, "The number of orders with limit=2")
    expect.expect(two[0] >= newest[0]["id"], "limit=2 does not begin with the newest order.")


@check()
def limit_of_50_is_accepted(context: Context) -> None:
    """`limit` may be 50."""
    expect.status(context.main.get("/orders", limit=50), 200)


def _refuse(name: str, rule: str, limit: Any) -> None:
    add(
        f"orders.{name}",
        rule,
        lambda context: void(expect.refused(context.main.get("/orders", limit=limit), 400, "limit")),
    )


def void(_: object) -> None:
    """Returns nothing."""


_refuse("limit_0", "`limit` of GET /orders is at least 1.", 0)
_refuse("limit_51", "`limit` of GET /orders is at most 50.", 51)
_refuse("limit_is_a_number", "A `limit` that is not a number is refused with 400.", "all")


@check(uses=["batch"])
def source_is_normalised(context: Context) -> None:
    """`sourceType` is the source in lower case, with a hyphen for each run of other characters."""
    expect.equal(context.record(shared.batch(context))["sourceType"], shared.SOURCE_TOKEN, "`sourceType`")


@check(uses=["mailed"])
def source_is_api_by_default(context: Context) -> None:
    """`sourceType` is `api` when no source was sent."""
    expect.equal(context.record(shared.mailed(context))["sourceType"], "api", "`sourceType`")


@check(uses=["batch"])
def texts_are_stored(context: Context) -> None:
    """`fromName` and `wrappingKey` of a record are those of the order."""
    record = context.record(shared.batch(context))
    expect.equal(record["fromName"], shared.FROM_NAME, "`fromName`")
    expect.equal(record["wrappingKey"], "default", "`wrappingKey`")


@check(uses=["mailed"])
def wrapping_is_default(context: Context) -> None:
    """`wrappingKey` is `default` when none was sent."""
    expect.equal(context.record(shared.mailed(context))["wrappingKey"], "default", "`wrappingKey`")


@check(uses=["batch"])
def record_of_a_product(context: Context) -> None:
    """`giftProductId` is the product's id, `giftsCollectionId` null, `country` the request's."""
    order = shared.batch(context)
    record = context.record(order)
    expect.equal(record["giftProductId"], order.body["productId"], "`giftProductId`")
    expect.equal(record["giftsCollectionId"], None, "`giftsCollectionId`")
    expect.equal(record["country"], context.settings.country, "`country`")


@check(uses=["collection"])
def record_of_a_collection(context: Context) -> None:
    """`giftsCollectionId` is the collection's id, `giftProductId` null, `country` the collection's."""
    order = shared.collection(context)
    record = context.record(order)
    expect.equal(record["giftsCollectionId"], order.gift.item["id"], "`giftsCollectionId`")
    expect.equal(record["giftProductId"], None, "`giftProductId`")
    expect.equal(record["country"], order.gift.item["country"], "`country`")


@check(uses=["template"])
def record_of_a_template(context: Context) -> None:
    """The template supplies gift, country, wrapping and sender."""
    order = shared.template(context)
    record, template = context.record(order), order.gift.item
    for name in ("giftProductId", "giftsCollectionId", "country"):
        expect.equal(record[name], template[name], f"`{name}`")
    for name in ("wrappingKey", "fromName"):
        if template[name] is not None:
            expect.equal(record[name], template[name], f"`{name}`")


@check(codes=1)
def template_overridden(context: Context) -> None:
    """`wrappingKey` and `fromName` of a request override the template's."""
    order = context.place(context.template(), fromName="Override", wrappingKey="conformance")
    record = context.record(order)
    expect.equal(record["fromName"], "Override", "`fromName`")
    expect.equal(record["wrappingKey"], "conformance", "`wrappingKey`")


@check(uses=["batch"])
def event_name(context: Context) -> None:
    """`event` of an order record is `order.created`."""
    expect.equal(context.record(shared.batch(context))["event"], "order.created", "`event`")


@check(uses=["batch"])
def created_by(context: Context) -> None:
    """`createdBy` and `customerId` are those of the key."""
    record, me = context.record(shared.batch(context)), context.me()
    expect.equal(record["createdBy"], me["serviceAccountId"], "`createdBy`")
    expect.equal(record["customerId"], me["customerId"], "`customerId`")


@check(uses=["batch", "mailed", "scheduled"])
def one_order(context: Context) -> None:
    """GET /orders/{reference} returns the send response again, codes of a batch included."""
    for place in (shared.batch, shared.mailed, shared.scheduled):
        order = place(context)
        again = expect.found(context.main.get(f"/orders/{order.reference}"))
        for name, value in order.response.items():
            expect.expect(expect.member(again, name) == value, f"`{name}` differs from the send response.")


@check()
def unknown_order(context: Context) -> None:
    """An order that does not exist is 404."""
    for path in ("", "/request", "/deliveries"):
        expect.refused(context.main.get(f"/orders/00000000000000000000{path}"), 404)


@check(uses=["batch"])
def request_of_an_order(context: Context) -> None:
    """GET /orders/{reference}/request returns the request of the order, and `isOwn`."""
    order = shared.batch(context)
    request = expect.found(context.main.get(f"/orders/{order.reference}/request"))
    for name in ("productId", "codeQuantity", "fromName", "message", "externalReference"):
        expect.equal(expect.member(request, name), order.body[name], f"`{name}`")
    expect.equal(expect.member(request, "isOwn"), True, "`isOwn`")
    expect.expect("codes" not in request, "The request has `codes`.")


@check(uses=["mailed"])
def deliveries_of_an_order(context: Context) -> None:
    """GET /orders/{reference}/deliveries lists each recipient, and no codes."""
    order = shared.mailed(context)
    answer = context.main.get(f"/orders/{order.reference}/deliveries")
    expect.status(answer, 200)
    for address in {recipient["email"].lower() for recipient in order.body["recipients"]}:
        expect.expect(address in answer.text.lower(), "A recipient is missing.")
    expect.expect('"pin"' not in answer.text, "The response has a PIN.")


@check(uses=["batch"])
def found_by_reference(context: Context) -> None:
    """`externalReference` returns the one order that has it."""
    order = shared.batch(context)
    found = expect.listed(context.main.get("/orders", externalReference=order.body["externalReference"]))
    expect.equal([one["reference"] for one in found], [order.reference], "The references")


@check()
def not_found_by_reference(context: Context) -> None:
    """An `externalReference` that no order has returns an empty list."""
    expect.equal(expect.listed(context.main.get("/orders", externalReference=context.new_reference())), [], "The list")


@check()
def found_by_a_blank_reference(context: Context) -> None:
    """A blank `externalReference` is refused with 400."""
    expect.refused(context.main.get("/orders", externalReference=" "), 400, "externalReference")


@check(uses=["batch", "mailed"])
def after_an_id(context: Context) -> None:
    """`after` lists the orders after that id, oldest first."""
    ids = sorted(_ids(_list(context)))[:20]
    if len(ids) < 2:
        raise Skipped("The customer has fewer than two orders.")
    found = _ids(expect.listed(context.main.get("/orders", after=ids[0], limit=len(ids) - 1)))
    expect.equal(found, ids[1:], "The orders after the first")


@check(codes=1)
def cancelled(context: Context) -> None:
    """POST /orders/{reference}/cancel refunds the codes that nobody has claimed, only once even if it is repeated."""
    before = context.balance()
    order = context.place(context.gift())
    path = f"/orders/{order.reference}/cancel"
    first = expect.found(context.main.post(path))
    expect.equal(expect.member(first, "cancelledCount"), 1, "`cancelledCount`")
    expect.equal(expect.found(context.main.post(path)), first, "The response of the second call")
    expect.equal(context.balance(), before, "The balance after the refund")
