"""Collections, from which the recipient chooses."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from largesse_conformance import expect
from largesse_conformance.context import Context
from largesse_conformance.outcome import Skipped
from largesse_conformance.shapes import COLLECTION
from largesse_conformance.suite import add_members, check

Collection = dict[str, Any]

add_members("collections", "collection", COLLECTION, lambda context: context.collections())


def _of(context: Context, kind: str) -> list[Collection]:
    found = [collection for collection in context.collections() if collection["kind"] == kind]
    if not found:
        raise Skipped(f"There is no {kind} collection.")
    return found


def _ids(collections: list[Collection]) -> list[int]:
    return [collection["id"] for collection in collections]


def _fits(collection: Collection, amount: Decimal) -> bool:
    if collection["kind"] == "custom":
        return Decimal(collection["value"]) <= amount
    return collection["allowCustomValue"] or Decimal(collection["minValue"]) <= amount


def _filtered(context: Context, **parameters: Any) -> list[int]:
    return _ids(expect.listed(context.main.get("/collections", **parameters)))


@check()
def ids_are_unique(context: Context) -> None:
    """No two collections have the same id."""
    expect.unique(_ids(context.collections()), "The ids of collections")


@check()
def curated_has_no_value(context: Context) -> None:
    """`value` of a curated collection is null and `requiresValue` is true."""
    for one in _of(context, "curated"):
        expect.equal(one["value"], None, f"`value` of collection {one['id']}")
        expect.equal(one["requiresValue"], True, f"`requiresValue` of collection {one['id']}")


@check()
def custom_has_a_value(context: Context) -> None:
    """A custom collection has a value above zero and `requiresValue` false."""
    for one in _of(context, "custom"):
        expect.expect(
            expect.amount(one["value"], "`value`") > 0, f"`value` of collection {one['id']} is not above zero."
        )
        expect.equal(one["requiresValue"], False, f"`requiresValue` of collection {one['id']}")


@check()
def custom_has_no_choices(context: Context) -> None:
    """`valuePoints` of a custom collection are empty and `valueChoices` is null."""
    for one in _of(context, "custom"):
        expect.equal(one["valuePoints"], [], f"`valuePoints` of collection {one['id']}")
        expect.equal(one["valueChoices"], None, f"`valueChoices` of collection {one['id']}")


@check()
def value_points_ascend(context: Context) -> None:
    """`valuePoints` are in ascending order."""
    for one in _of(context, "curated"):
        points = [Decimal(point) for point in one["valuePoints"]]
        expect.equal(points, sorted(set(points)), f"`valuePoints` of collection {one['id']}")


@check()
def value_choices(context: Context) -> None:
    """`valueChoices` has each value point with two decimals as its key; it is null if there is nothing to choose."""
    for one in _of(context, "curated"):
        if not one["valuePoints"]:
            expect.equal(one["valueChoices"], None, f"`valueChoices` of collection {one['id']}")
        elif expect.decimals(one["currency"]) < 3:
            keys = [f"{Decimal(point):.2f}" for point in one["valuePoints"]]
            expect.equal(
                sorted(one["valueChoices"]), sorted(keys), f"The keys of `valueChoices` of collection {one['id']}"
            )


@check()
def values_are_the_ends(context: Context) -> None:
    """`minValue` and `maxValue` are the lowest and the highest value point, or null."""
    for one in _of(context, "curated"):
        points = [Decimal(point) for point in one["valuePoints"]]
        expect.equal(one["minValue"], min(points, default=None), f"`minValue` of collection {one['id']}")
        expect.equal(one["maxValue"], max(points, default=None), f"`maxValue` of collection {one['id']}")


@check()
def amounts_fit_the_currency(context: Context) -> None:
    """No amount of a collection is finer than its currency's smallest unit."""
    for one in context.collections():
        for amount in [one["value"], *one["valuePoints"]]:
            if amount is not None:
                expect.no_finer(amount, one["currency"], f"An amount of collection {one['id']}")


@check()
def country_filters(context: Context) -> None:
    """`country` lists exactly the collections of that country."""
    country = context.collections()[0]["country"]
    wanted = [one["id"] for one in context.collections() if one["country"] == country]
    expect.equal(_filtered(context, country=country.lower()), wanted, f"The collections of {country}")


@check()
def currency_filters(context: Context) -> None:
    """`currency` lists exactly the collections in it."""
    currency = context.collections()[0]["currency"]
    wanted = [one["id"] for one in context.collections() if one["currency"] == currency]
    expect.equal(_filtered(context, currency=currency.lower()), wanted, f"The collections in {currency}")


@check()
def amount_filters(context: Context) -> None:
    """`amount` lists exactly the collections that can be sent for that amount or less."""
    for amount in (Decimal(1), Decimal(20), Decimal(25), Decimal(1000)):
        wanted = [one["id"] for one in context.collections() if _fits(one, amount)]
        expect.equal(_filtered(context, amount=str(amount)), wanted, f"The collections for {amount}")


@check()
def malformed_filters(context: Context) -> None:
    """A filter that cannot be read is refused with 400."""
    for name, value in (("country", "GBR"), ("currency", "pounds"), ("amount", "ten")):
        expect.refused(context.main.get("/collections", **{name: value}), 400, name)


@check()
def one_collection(context: Context) -> None:
    """GET /collections/{id} returns the collection as the list has it."""
    for listed in context.collections()[:1]:
        one = expect.found(context.main.get(f"/collections/{listed['id']}"))
        for name, value in listed.items():
            expect.equal(expect.member(one, name), value, f"`{name}`")


@check()
def unknown_collection(context: Context) -> None:
    """An unknown collection is 404."""
    expect.refused(context.main.get("/collections/2147483647"), 404)


@check()
def curated_is_for_everybody(context: Context) -> None:
    """Every customer sees the same curated collections."""
    theirs = expect.listed(context.caller("other").get("/collections"))
    expect.equal(
        _ids([one for one in theirs if one["kind"] == "curated"]),
        _ids(_of(context, "curated")),
        "The curated collections",
    )


@check()
def custom_is_for_its_customer(context: Context) -> None:
    """Another customer's custom collection is not listed, and is 404."""
    theirs = expect.listed(context.caller("other").get("/collections"))
    own = {one["id"] for one in theirs if one["kind"] == "custom"}
    if not own:
        raise Skipped("The other customer has no custom collection.")
    expect.equal(own & set(_ids(context.collections())), set(), "Custom collections in both lists")
    expect.refused(context.main.get(f"/collections/{min(own)}"), 404)
