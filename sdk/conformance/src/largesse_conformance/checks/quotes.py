"""Quotes, which place nothing and fix a price."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from largesse_conformance import expect, orders
from largesse_conformance.context import Context
from largesse_conformance.shapes import QUOTE
from largesse_conformance.suite import add_members, check


def _quoted(context: Context) -> dict[str, Any]:
    gift = context.gift()
    return context.once("quote", lambda: expect.found(context.quote(gift.kind, context.body(gift, codeQuantity=2))))


add_members("quotes", "quote", QUOTE, lambda context: [_quoted(context)])


@check()
def costs_what_the_order_would(context: Context) -> None:
    """`totalCost` of a quote is face value times codes."""
    quoted = _quoted(context)
    expect.equal(quoted["totalCost"], context.gift().value * 2, "`totalCost`")
    expect.equal(quoted["codeCount"], 2, "`codeCount`")


@check()
def balance_after(context: Context) -> None:
    """`balanceAfter` is the balance less the cost. (Other orders from the account at the same time disturb this check.)"""
    gift = context.gift()
    before = context.balance()
    quoted = expect.found(context.quote(gift.kind, context.body(gift)))
    expect.equal(quoted["balanceAfter"], before - gift.value, "`balanceAfter`")


@check()
def places_and_charges_nothing(context: Context) -> None:
    """A quote places nothing and charges nothing."""
    gift, before, newest = context.gift(), context.balance(), context.newest().get("id")
    expect.status(context.quote(gift.kind, context.body(gift)), 200)
    expect.equal(context.balance(), before, "The balance")
    expect.equal(context.newest().get("id"), newest, "The newest order")


@check()
def expires(context: Context) -> None:
    """`expiresAt` is 15 minutes ahead."""
    gift = context.gift()
    quoted = expect.found(context.quote(gift.kind, context.body(gift)))
    left_s = (datetime.fromisoformat(quoted["expiresAt"]) - datetime.now(UTC)).total_seconds()
    expect.expect(720 < left_s < 1080, f"`expiresAt` is {left_s:.0f} seconds ahead, not about 900.")


@check()
def is_short(context: Context) -> None:
    """`quote` has at most 256 characters."""
    length = len(_quoted(context)["quote"])
    expect.expect(length <= 256, f"`quote` has {length} characters.")


@check(codes=1)
def holds(context: Context) -> None:
    """A send with its quote is placed at the quoted price."""
    gift = context.gift()
    body = context.body(gift)
    quoted = expect.found(context.quote(gift.kind, body))
    placed = expect.found(context.send(gift.path, body | {"quote": quoted["quote"]}))
    expect.equal(placed["totalCost"], quoted["totalCost"], "`totalCost`")


@check()
def changed(context: Context) -> None:
    """A send that differs from its quote is 409 with the type /problems/quote-changed, and places nothing."""
    gift = context.gift()
    body = context.body(gift, codeQuantity=3) | {"quote": _quoted(context)["quote"]}
    refused = expect.refused(context.send(gift.path, body), 409)
    expect.equal(refused.get("type"), "/problems/quote-changed", "`type`")


@check()
def unknown(context: Context) -> None:
    """A quote that was not given to this customer is 400."""
    gift = context.gift()
    expect.refused(context.send(gift.path, context.body(gift, quote="AAAA")), 400, "quote")


@check(uses=["batch"])
def used_reference_comes_first(context: Context) -> None:
    """A used reference takes precedence over a quote that no longer holds."""
    order = orders.batch(context)
    body = order.body | {"quote": _quoted(context)["quote"], "codeQuantity": 1}
    refused = expect.refused(context.send(order.gift.path, body), 409)
    expect.equal(refused.get("type"), "/problems/reference-used", "`type`")


@check()
def lists_all_faults(context: Context) -> None:
    """The error of a quote lists everything that is wrong, by pointer."""
    gift = context.gift()
    body = context.body(gift, codeQuantity=0, fromName="x" * 33)
    refused = expect.refused(context.quote(gift.kind, body), 400)
    pointers = {error["pointer"] for error in expect.member(refused, "errors")}
    expect.equal(pointers, {"#/codeQuantity", "#/fromName"}, "The pointers")
