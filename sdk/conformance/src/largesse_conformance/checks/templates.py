"""Saved templates."""

from __future__ import annotations

from typing import Any

from largesse_conformance import expect
from largesse_conformance.context import Context
from largesse_conformance.outcome import Skipped
from largesse_conformance.shapes import TEMPLATE
from largesse_conformance.suite import add, add_members, check

add_members("templates", "template", TEMPLATE, lambda context: context.templates())


def _ids(items: list[dict[str, Any]]) -> list[int]:
    return [item["id"] for item in items]


def _two(context: Context) -> list[int]:
    ids = _ids(context.templates())
    if len(ids) < 2:
        raise Skipped("The customer has fewer than two templates.")
    return ids


@check()
def newest_first(context: Context) -> None:
    """GET /templates lists the newest first."""
    dates = [template["creationDate"] for template in context.templates()]
    expect.equal(dates, sorted(dates, reverse=True), "The order of `creationDate`")


@check()
def offset_skips(context: Context) -> None:
    """`offset` skips templates from the start of the list."""
    ids = _two(context)
    expect.equal(
        _ids(expect.listed(context.main.get("/templates", offset=1, limit=200)))[: len(ids) - 1], ids[1:], "The rest"
    )


@check()
def limit_limits(context: Context) -> None:
    """`limit` limits the list to the first ones."""
    ids = _two(context)
    expect.equal(_ids(expect.listed(context.main.get("/templates", limit=1))), ids[:1], "The list with limit=1")


@check()
def offset_is_0_by_default(context: Context) -> None:
    """Without `offset`, the list begins with the first template."""
    first = _ids(expect.listed(context.main.get("/templates", offset=0, limit=5)))
    expect.equal(_ids(expect.listed(context.main.get("/templates", limit=5))), first, "The list without `offset`")


@check()
def offset_beyond_the_end(context: Context) -> None:
    """An `offset` beyond the end returns an empty list."""
    expect.equal(expect.listed(context.main.get("/templates", offset=1_000_000)), [], "The list")


def _refuse(name: str, rule: str, **parameters: Any) -> None:
    def run(context: Context) -> None:
        expect.refused(context.main.get("/templates", **parameters), 400, next(iter(parameters)))

    add(f"templates.{name}", rule, run)


_refuse("limit_0", "`limit` is at least 1.", limit=0)
_refuse("limit_201", "`limit` is at most 200.", limit=201)
_refuse("offset_negative", "`offset` is not below 0.", offset=-1)
_refuse("offset_is_a_number", "An `offset` that is not a number is refused with 400.", offset="first")


@check()
def one_gift(context: Context) -> None:
    """A template names at most one gift, a product or a collection, which matches `giftSelectionType`."""
    for one in context.templates():
        both = one["giftProductId"] is not None and one["giftsCollectionId"] is not None
        expect.expect(not both, f"Template {one['id']} names a product and a collection.")
        if one["giftSelectionType"] == "gift":
            expect.equal(one["giftsCollectionId"], None, f"`giftsCollectionId` of template {one['id']}")
        if one["giftSelectionType"] == "gifts":
            expect.equal(one["giftProductId"], None, f"`giftProductId` of template {one['id']}")


@check()
def value_fits_the_currency(context: Context) -> None:
    """`value` of a template is not finer than its currency's smallest unit."""
    for one in context.templates():
        if one["currency"] is not None:
            expect.no_finer(one["value"], one["currency"], f"`value` of template {one['id']}")


@check()
def of_one_customer(context: Context) -> None:
    """GET /templates lists no template of another customer."""
    theirs = set(_ids(expect.listed(context.caller("other").get("/templates", limit=200))))
    expect.equal(theirs & set(_ids(context.templates())), set(), "Templates in both lists")
