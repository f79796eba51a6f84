"""Send bodies that are refused, and bodies that are just accepted. Accepted ones are only quoted, which costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from largesse_conformance import expect
from largesse_conformance.context import Context, Gift
from largesse_conformance.outcome import Skipped
from largesse_conformance.suite import add, check

Members = Callable[[Context], dict[str, Any]]
_TO = {"email": "conformance@example.com"}
_MISSING = 2147483647


def _refuse(name: str, rule: str, naming: str, members: dict[str, Any] | Members, gift: str = "cheapest") -> None:
    """Adds a check that a send of a gift with these members is refused with 400, and that `detail` names the member."""

    def run(context: Context) -> None:
        found = context.gift(gift)
        changed = members(context) if callable(members) else members
        expect.refused(context.send(found.path, context.body(found, **changed)), 400, naming)

    add(f"bodies.{name}", rule, run)


def _accept(name: str, rule: str, members: dict[str, Any] | Members, gift: str = "cheapest") -> None:
    """Adds a check that a gift with these members can be quoted."""

    def run(context: Context) -> None:
        found = context.gift(gift)
        changed = members(context) if callable(members) else members
        expect.status(context.quote(found.kind, context.body(found, **changed)), 200)

    add(f"bodies.{name}", rule, run)


def _to(**members: Any) -> dict[str, Any]:
    return {"recipients": [_TO | members]}


_refuse("product_missing", "`productId` is required.", "productId", {"productId": ...})
_refuse("product_unknown", "An unknown `productId` is 400.", "productId", {"productId": _MISSING})
_refuse("product_text", "`productId` is a number: a text is not converted.", "productId", {"productId": "1"})
_refuse("product_true", "`productId` is a number: true is not converted.", "productId", {"productId": True})
_refuse("neither", "One of `recipients` and `codeQuantity` is required.", "codeQuantity", {"codeQuantity": ...})
_refuse(
    "both",
    "`recipients` and `codeQuantity` exclude each other.",
    "codeQuantity",
    {"recipients": [_TO], "codeQuantity": 1},
)
_refuse("code_quantity_0", "`codeQuantity` is at least 1.", "codeQuantity", {"codeQuantity": 0})
_refuse("code_quantity_negative", "`codeQuantity` is not negative.", "codeQuantity", {"codeQuantity": -1})
_refuse("code_quantity_5001", "`codeQuantity` is at most 5,000.", "codeQuantity", {"codeQuantity": 5001})
_refuse(
    "code_quantity_text", "`codeQuantity` is a number: a text is not converted.", "codeQuantity", {"codeQuantity": "1"}
)
_refuse("code_quantity_fraction", "`codeQuantity` is a whole number.", "codeQuantity", {"codeQuantity": Decimal("1.5")})
_refuse("recipients_empty", "An empty list of recipients is as if left out.", "recipients", {"recipients": []})
_refuse("recipients_object", "`recipients` is an array.", "recipients", {"recipients": _TO})
_refuse("email_missing", "Each recipient needs an `email`.", "email", {"recipients": [{"name": "First"}]})
_refuse("email_malformed", "`email` is an address.", "email", _to(email="not an address"))
_refuse("email_number", "`email` is a text.", "email", _to(email=1))
_refuse("quantity_0", "`quantity` is at least 1.", "quantity", _to(quantity=0))
_refuse("quantity_1001", "`quantity` is at most 1,000.", "quantity", _to(quantity=1001))
_refuse("quantity_text", "`quantity` is a number: a text is not converted.", "quantity", _to(quantity="2"))
_refuse("from_name_33", "`fromName` has at most 32 characters.", "fromName", {"fromName": "x" * 33})
_refuse("from_name_line_break", "`fromName` has no line breaks.", "fromName", {"fromName": "a\nb"})
_refuse("from_name_number", "`fromName` is a text.", "fromName", {"fromName": 1})
_refuse("message_257", "`message` has at most 256 characters.", "message", {"message": "x" * 257})
_refuse("message_control", "`message` has no control characters.", "message", {"message": "a\u0007b"})
_refuse(
    "reference_129",
    "`externalReference` has at most 128 characters.",
    "externalReference",
    {"externalReference": "x" * 129},
)
_refuse("reference_number", "`externalReference` is a text.", "externalReference", {"externalReference": 1})
_refuse("country_unknown", "`country` is a code of a country.", "country", {"country": "GBR"})
_refuse("expiry_text", "`expiryAfterDays` is a number.", "expiryAfterDays", {"expiryAfterDays": "90"})
_refuse("send_at_malformed", "`sendAt` is an instant.", "sendAt", {"recipients": [_TO], "sendAt": "tomorrow"})
_refuse("send_at_past", "`sendAt` is in the future.", "sendAt", {"recipients": [_TO], "sendAt": "2001-01-01T00:00:00Z"})
_refuse("value_text", "`value` is a number: a text is not converted.", "value", {"value": "10"})
_refuse("value_true", "`value` is a number: true is not converted.", "value", {"value": True})
_refuse("value_negative", "`value` is above zero.", "value", {"value": -5})
_refuse(
    "value_missing", "`value` is required where `requiresAmount` is true.", "value", {"value": ...}, "denominations"
)
_refuse(
    "value_too_fine",
    "`value` is not finer than the smallest unit, and is not rounded.",
    "value",
    {"value": Decimal("10.0001")},
)
_refuse(
    "recipients_5001",
    "An order has at most 5,000 codes.",
    "recipients",
    {"recipients": [{**_TO, "quantity": 1000}] * 5 + [_TO]},
)

_accept("code_quantity_5000", "`codeQuantity` may be 5,000.", lambda context: _affordable(context, 5000))
_accept("quantity_1000", "`quantity` may be 1,000.", lambda context: _affordable(context, 1000) and _to(quantity=1000))
_accept("quantity_null", "A null `quantity` is 1.", _to(quantity=None))
_accept("name_null", "A null `name` is as if left out.", _to(name=None))
_accept(
    "recipients_empty_batch",
    "An empty list of recipients does not exclude `codeQuantity`.",
    {"recipients": [], "codeQuantity": 1},
)
_accept("recipients_null", "Null `recipients` do not exclude `codeQuantity`.", {"recipients": None, "codeQuantity": 1})
_accept("from_name_32", "`fromName` may have 32 characters, whatever their bytes.", {"fromName": "é" * 32})
_accept("from_name_blank", "A blank `fromName` is as if left out.", {"fromName": "  "})
_accept("message_256", "`message` may have 256 characters, and line breaks.", {"message": "é\n" * 128})
_accept(
    "reference_128",
    "`externalReference` may have 128 characters.",
    lambda context: {"externalReference": context.new_reference().ljust(128, "x")},
)
_accept("wrapping_unknown", "An unknown `wrappingKey` is accepted.", {"wrappingKey": "unheard-of"})
_accept(
    "country_lower_case",
    "Letter case of `country` is ignored.",
    lambda context: {"country": context.settings.country.lower()},
)
_accept("source_any", "Any text is a `source`.", {"source": "  Any! Text? "})


def _affordable(context: Context, codes: int) -> dict[str, Any]:
    """Returns a code batch of this size. Raises Skipped if the account cannot pay for it, as the quote would be 402."""
    account = context.account
    if account is not None and context.gift().value * codes > context.balance():
        raise Skipped(f"{codes} codes cost more than the account to charge holds.")
    return {"codeQuantity": codes}


@check()
def value_not_a_denomination(context: Context) -> None:
    """`value` is one of the `denominations`."""
    gift = context.gift("denominations")
    amounts = {Decimal(one) for one in gift.item["denominations"]}
    value = next(Decimal(one) for one in range(1, 1000) if Decimal(one) not in amounts)
    expect.refused(context.send(gift.path, context.body(gift, value=value)), 400, "value")


@check()
def value_below_the_range(context: Context) -> None:
    """`value` is at least `minAmount`."""
    gift = context.gift("a range")
    unit = Decimal(1).scaleb(-expect.decimals(gift.item["currency"]))
    expect.refused(
        context.send(gift.path, context.body(gift, value=Decimal(gift.item["minAmount"]) - unit)), 400, "value"
    )


@check()
def value_above_the_range(context: Context) -> None:
    """`value` is at most `maxAmount`."""
    gift = context.gift("a range")
    unit = Decimal(1).scaleb(-expect.decimals(gift.item["currency"]))
    expect.refused(
        context.send(gift.path, context.body(gift, value=Decimal(gift.item["maxAmount"]) + unit)), 400, "value"
    )


@check()
def value_implied(context: Context) -> None:
    """`value` may be left out if there is a single denomination."""
    gift = context.gift("one denomination")
    quoted = expect.found(context.quote(gift.kind, context.body(gift, value=...)))
    expect.equal(quoted["value"], gift.value, "`value`")


@check()
def value_implied_is_right(context: Context) -> None:
    """A `value` that may be left out must be right if it is sent."""
    gift = context.gift("one denomination")
    expect.refused(context.send(gift.path, context.body(gift, value=gift.value + 1)), 400, "value")


@check()
def value_of_a_physical_gift(context: Context) -> None:
    """`value` may be left out for a physical gift, and does not change the cost."""
    gift = context.gift("physical")
    quoted = expect.found(context.quote(gift.kind, context.body(gift, value=...)))
    expect.equal(quoted["totalCost"], gift.value, "`totalCost`")


@check()
def product_not_sold_there(context: Context) -> None:
    """A product that is not available in `country` is 400."""
    for country in ("AQ", "JP", "FR", "US"):
        sold = {product["id"] for product in context.products(country)}
        gift = context.gift()
        if gift.item["id"] not in sold:
            expect.refused(context.send(gift.path, context.body(gift, country=country)), 400)
            return
    raise Skipped("The product is sold in all the countries that were tried.")


@check()
def send_at_without_an_offset(context: Context) -> None:
    """A `sendAt` without an offset is UTC."""
    gift = context.gift()
    at = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0, tzinfo=None).isoformat()
    quoted = expect.found(context.quote(gift.kind, context.body(gift, recipients=[_TO], sendAt=at)))
    found = datetime.fromisoformat(quoted["scheduledFor"])
    expect.equal(found, datetime.fromisoformat(at).replace(tzinfo=UTC), "`scheduledFor`")


@check()
def send_at_with_an_offset(context: Context) -> None:
    """A `sendAt` with an offset is that instant, returned in UTC."""
    gift = context.gift()
    at = (datetime.now(UTC) + timedelta(days=2)).replace(microsecond=0, tzinfo=None)
    quoted = expect.found(
        context.quote(gift.kind, context.body(gift, recipients=[_TO], sendAt=f"{at.isoformat()}+02:00"))
    )
    found = datetime.fromisoformat(quoted["scheduledFor"])
    expect.equal(found, at.replace(tzinfo=UTC) - timedelta(hours=2), "`scheduledFor`")


@check()
def several_bad_recipients(context: Context) -> None:
    """A single 400 names all wrong recipients in `errors`, each with a `pointer`."""
    gift = context.gift()
    recipients = [{"email": "no"}, _TO, {"email": "neither"}]
    body = expect.refused(context.send(gift.path, context.body(gift, recipients=recipients)), 400)
    pointers = [error["pointer"] for error in expect.member(body, "errors")]
    expect.equal(pointers, ["#/recipients/0/email", "#/recipients/2/email"], "The pointers")


def _paying(context: Context) -> Gift:
    if context.account is None:
        raise Skipped("Orders of this customer are invoiced.")
    return context.gift()


@check()
def account_missing(context: Context) -> None:
    """`accountId` is required when paying from a balance."""
    gift = _paying(context)
    expect.refused(context.send(gift.path, context.body(gift, accountId=...)), 400, "accountId")


@check()
def account_unknown(context: Context) -> None:
    """An unknown `accountId` is 400."""
    gift = _paying(context)
    expect.refused(context.send(gift.path, context.body(gift, accountId=_MISSING)), 400, "accountId")


@check()
def account_text(context: Context) -> None:
    """`accountId` is a number: a text is not converted."""
    gift = _paying(context)
    body = context.body(gift, accountId=str(context.settings.account))
    expect.refused(context.send(gift.path, body), 400, "accountId")


@check()
def account_in_another_currency(context: Context) -> None:
    """An account in another currency than the order's is 400."""
    gift = _paying(context)
    others = [one["id"] for one in context.accounts() if one["currency"] != gift.item["currency"]]
    if not others:
        raise Skipped("The customer has no account in another currency.")
    expect.refused(context.send(gift.path, context.body(gift, accountId=others[0])), 400, "accountId")


def _add_unreadable() -> None:
    for name, rule, content in (
        ("unreadable", "A body that is not JSON is 400.", "{"),
        ("empty", "An empty body is 400.", ""),
        ("array", "A body that is not an object is 400.", "[]"),
        ("not_a_number", "NaN is not JSON: 400.", '{"productId": NaN, "codeQuantity": 1}'),
        ("not_utf_8", "A body that is not UTF-8 is 400.", b'{"productId": 1, "message": "\xff"}'),
    ):
        for kind in ("gift", "collection", "template"):

            def run(context: Context, content: Any = content, kind: str = kind) -> None:
                expect.refused(context.main.post_raw(f"/send/{kind}", content), 400)

            add(f"bodies.{kind}_{name}", f"{rule} (POST /send/{kind})", run)


_add_unreadable()


@check()
def collection_missing(context: Context) -> None:
    """`collectionId` is required in POST /send/collection."""
    expect.refused(context.send("/send/collection", context.body(context.gift(), productId=...)), 400, "collectionId")


@check()
def collection_unknown(context: Context) -> None:
    """An unknown `collectionId` is 400."""
    gift = context.collection("points")
    expect.refused(context.send(gift.path, context.body(gift, collectionId=_MISSING)), 400, "collectionId")


@check()
def collection_value_missing(context: Context) -> None:
    """A curated collection requires `value`."""
    gift = context.collection("points")
    expect.refused(context.send(gift.path, context.body(gift, value=...)), 400, "value")


@check()
def collection_value_not_a_point(context: Context) -> None:
    """`value` is one of `valuePoints` if `allowCustomValue` is false."""
    gift = context.collection("points")
    points = {Decimal(point) for point in gift.item["valuePoints"]}
    value = next(Decimal(one) for one in range(1, 1000) if Decimal(one) not in points)
    expect.refused(context.send(gift.path, context.body(gift, value=value)), 400, "value")


@check()
def collection_any_value(context: Context) -> None:
    """Any positive `value` is accepted if `allowCustomValue` is true, also below `minValue`."""
    gift = context.collection("any amount")
    quoted = expect.found(context.quote(gift.kind, context.body(gift, value=1)))
    expect.equal(quoted["value"], 1, "`value`")


@check()
def collection_value_zero(context: Context) -> None:
    """A `value` of zero is 400 if `allowCustomValue` is true."""
    gift = context.collection("any amount")
    expect.refused(context.send(gift.path, context.body(gift, value=0)), 400, "value")


@check()
def custom_collection_ignores_value(context: Context) -> None:
    """`value` is ignored for a custom collection."""
    gift = context.collection("custom")
    quoted = expect.found(context.quote(gift.kind, context.body(gift, value=gift.value + 1)))
    expect.equal(quoted["value"], gift.value, "`value`")


@check()
def template_missing(context: Context) -> None:
    """`templateId` is required in POST /send/template."""
    expect.refused(context.send("/send/template", context.body(context.gift(), productId=...)), 400, "templateId")


@check()
def template_unknown(context: Context) -> None:
    """An unknown `templateId` is 400."""
    gift = context.template()
    expect.refused(context.send(gift.path, context.body(gift, templateId=_MISSING)), 400, "templateId")
