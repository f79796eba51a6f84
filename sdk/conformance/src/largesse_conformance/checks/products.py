"""The catalogue of products: members, filters, pages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from largesse_conformance import expect
from largesse_conformance.context import Context
from largesse_conformance.outcome import Failed, Skipped
from largesse_conformance.shapes import PRODUCT
from largesse_conformance.suite import add, add_members, check

Product = dict[str, Any]

add_members("products", "product", PRODUCT, lambda context: context.products())


def _some(context: Context, what: str, fits: Any) -> list[Product]:
    found = [product for product in context.products() if fits(product)]
    if not found:
        raise Skipped(f"The catalogue has no product for this check: {what}.")
    return found


def _digital(context: Context) -> list[Product]:
    return _some(context, "a digital gift", lambda product: product["isDigital"])


def _physical(context: Context) -> list[Product]:
    return _some(context, "a physical gift", lambda product: not product["isDigital"])


def _with_denominations(context: Context) -> list[Product]:
    return _some(context, "fixed denominations", lambda product: product["denominations"])


def _with_range(context: Context) -> list[Product]:
    return _some(context, "a range of amounts", lambda p: p["isDigital"] and not p["denominations"])


def _ids(products: list[Product]) -> list[int]:
    return [product["id"] for product in products]


def _least(product: Product) -> Decimal:
    return Decimal(product["minAmount"] if product["isDigital"] else product["totalPrice"])


@check()
def ids_are_unique(context: Context) -> None:
    """No two products have the same id."""
    expect.unique(_ids(context.products()), "The ids of products")


@check()
def digital_has_no_total_price(context: Context) -> None:
    """`totalPrice` of a digital gift is null."""
    for product in _digital(context):
        expect.equal(product["totalPrice"], None, f"`totalPrice` of product {product['id']}")


@check()
def physical_has_a_total_price(context: Context) -> None:
    """`totalPrice` of a physical gift is its delivered price, above zero."""
    for product in _physical(context):
        price = expect.amount(product["totalPrice"], f"`totalPrice` of product {product['id']}")
        expect.expect(price > 0, f"`totalPrice` of product {product['id']} is {price}.")


@check()
def physical_has_no_denominations(context: Context) -> None:
    """`denominations` of a physical gift are empty."""
    for product in _physical(context):
        expect.equal(product["denominations"], [], f"`denominations` of product {product['id']}")


@check()
def denomination_choices(context: Context) -> None:
    """`denominationChoices` has each denomination with two decimals as its key and a label as its value."""
    for product in _with_denominations(context):
        keys = [f"{Decimal(one):.2f}" for one in product["denominations"]]
        if expect.decimals(product["currency"]) == 3:
            keys = [
                one if Decimal(one) == Decimal(amount) else f"{Decimal(amount):.3f}"
                for one, amount in zip(keys, product["denominations"], strict=True)
            ]
        expect.equal(
            sorted(product["denominationChoices"]),
            sorted(keys),
            f"The keys of `denominationChoices` of product {product['id']}",
        )


@check()
def denomination_labels(context: Context) -> None:
    """Each label in `denominationChoices` begins or ends with the prefix of the currency."""
    for product in _with_denominations(context):
        for label in product["denominationChoices"].values():
            expect.expect(
                product["currencyPrefix"].strip() in label,
                f"The label {label!r} of product {product['id']} lacks {product['currencyPrefix']!r}.",
            )


@check()
def range_has_no_choices(context: Context) -> None:
    """`denominationChoices` of a gift with a range is empty."""
    for product in _with_range(context):
        expect.equal(product["denominationChoices"], {}, f"`denominationChoices` of product {product['id']}")


@check()
def amounts_of_denominations(context: Context) -> None:
    """`minAmount` and `maxAmount` are the lowest and the highest denomination."""
    for product in _with_denominations(context):
        amounts = [Decimal(one) for one in product["denominations"]]
        expect.equal(product["minAmount"], min(amounts), f"`minAmount` of product {product['id']}")
        expect.equal(product["maxAmount"], max(amounts), f"`maxAmount` of product {product['id']}")


@check()
def amounts_of_a_range(context: Context) -> None:
    """`minAmount` of a range is above zero and at most `maxAmount`."""
    for product in _with_range(context):
        least = expect.amount(product["minAmount"], f"`minAmount` of product {product['id']}")
        most = expect.amount(product["maxAmount"], f"`maxAmount` of product {product['id']}")
        expect.expect(0 < least <= most, f"The range of product {product['id']} is {least} to {most}.")


@check()
def requires_amount(context: Context) -> None:
    """`requiresAmount` is false for physical gifts and single denominations, and true for all others."""
    for product in context.products():
        implied = not product["isDigital"] or len(product["denominations"]) == 1
        expect.equal(product["requiresAmount"], not implied, f"`requiresAmount` of product {product['id']}")


@check()
def amounts_fit_the_currency(context: Context) -> None:
    """No amount of a product is finer than its currency's smallest unit."""
    for product in context.products():
        amounts = [product["totalPrice"], product["minAmount"], product["maxAmount"], *product["denominations"]]
        for amount in amounts:
            if amount is not None:
                expect.no_finer(amount, product["currency"], f"An amount of product {product['id']}")


@check()
def label_has_the_name(context: Context) -> None:
    """`label` contains the name of the product."""
    for product in context.products():
        expect.expect(product["name"] in product["label"], f"`label` of product {product['id']} lacks its name.")


@check()
def country_is_gb_by_default(context: Context) -> None:
    """Without `country`, GET /products lists what can be sent to GB."""
    default = expect.listed(context.main.get("/products", limit=200))
    expect.equal(_ids(default), _ids(expect.listed(context.main.get("/products", limit=200, country="GB"))), "The list")


@check()
def country_ignores_letter_case(context: Context) -> None:
    """Letter case of `country` is ignored."""
    lower = expect.listed(context.main.get("/products", limit=200, country=context.settings.country.lower()))
    expect.equal(_ids(lower), _ids(context.products()), "The list")


@check()
def country_must_be_a_code(context: Context) -> None:
    """A `country` that is not an ISO 3166-1 alpha-2 code is refused with 400."""
    expect.refused(context.main.get("/products", country="GBR"), 400, "country")


@check()
def country_decides(context: Context) -> None:
    """A product that is not sold in a country is 404 for it."""
    for country in ("AQ", "JP", "FR", "US"):
        sold = set(_ids(context.products(country)))
        missing = [one for one in _ids(context.products()) if one not in sold]
        if missing:
            expect.refused(context.main.get(f"/products/{missing[0]}", country=country), 404)
            return
    raise Skipped("Every product is sold in all the countries that were tried.")


@check()
def keyword_filters_by_name(context: Context) -> None:
    """`keyword` lists exactly the products with that text in their name, in any letter case."""
    word = context.products()[0]["name"].split()[0].upper()
    found = _ids(
        expect.listed(context.main.get("/products", keyword=word, limit=200, country=context.settings.country))
    )
    wanted = [product["id"] for product in context.products() if word.lower() in product["name"].lower()]
    expect.equal(sorted(found), sorted(wanted), f"The products for the keyword {word}")


@check()
def keyword_without_a_match(context: Context) -> None:
    """A `keyword` that no product has returns an empty list."""
    expect.equal(expect.listed(context.main.get("/products", keyword=f"none-{context.run_id}")), [], "The list")


@check()
def currency_filters(context: Context) -> None:
    """`currency` lists exactly the products priced in it."""
    currency = context.products()[0]["currency"]
    found = _ids(
        expect.listed(context.main.get("/products", currency=currency, limit=200, country=context.settings.country))
    )
    expect.equal(
        found, [p["id"] for p in context.products() if p["currency"] == currency], f"The products in {currency}"
    )


@check()
def currency_without_products(context: Context) -> None:
    """A `currency` that nothing is priced in returns an empty list."""
    expect.equal(expect.listed(context.main.get("/products", currency="XTS")), [], "The list")


@check()
def currency_must_be_a_code(context: Context) -> None:
    """A `currency` that is not an ISO 4217 code is refused with 400."""
    expect.refused(context.main.get("/products", currency="pounds"), 400, "currency")


@check()
def amount_filters(context: Context) -> None:
    """`amount` lists exactly the products that can be sent for that amount or less."""
    products = context.products()
    limits = sorted({_least(product) for product in products})
    limit = limits[len(limits) // 2]
    found = _ids(
        expect.listed(context.main.get("/products", amount=str(limit), limit=200, country=context.settings.country))
    )
    expect.equal(found, [p["id"] for p in products if _least(p) <= limit], f"The products for {limit}")


@check()
def amount_below_everything(context: Context) -> None:
    """An `amount` below every product returns an empty list."""
    least = min(_least(product) for product in context.products())
    if least <= Decimal("0.01"):
        least = Decimal("0.02")
    found = expect.listed(context.main.get("/products", amount="0.01", limit=200, country=context.settings.country))
    expect.expect(all(_least(product) <= Decimal("0.01") for product in found), "The list has a product above 0.01.")


@check()
def amount_must_be_a_number(context: Context) -> None:
    """An `amount` that is not a number is refused with 400."""
    expect.refused(context.main.get("/products", amount="ten"), 400, "amount")


@check()
def pages_make_up_the_list(context: Context) -> None:
    """All pages together are the whole list, in the same order, without gaps and repeats."""
    whole = _ids(context.products())
    size = max(1, (len(whole) + 3) // 4)
    pages: list[int] = []
    for page in range(1, 7):
        items = _ids(
            expect.listed(context.main.get("/products", page=page, limit=size, country=context.settings.country))
        )
        expect.expect(len(items) <= size, f"Page {page} has {len(items)} items, more than limit={size}.")
        pages += items
        if len(items) < size:
            break
    expect.equal(pages, whole[: len(pages)] if len(whole) == 200 else whole, "The products of all pages")


@check()
def first_page_is_the_default(context: Context) -> None:
    """Without `page`, the first page is returned."""
    first = expect.listed(context.main.get("/products", page=1, limit=2))
    expect.equal(_ids(expect.listed(context.main.get("/products", limit=2))), _ids(first), "The list without `page`")


@check()
def page_beyond_the_end(context: Context) -> None:
    """A page beyond the end is empty."""
    expect.equal(expect.listed(context.main.get("/products", page=1000, limit=200)), [], "Page 1000")


@check()
def limit_of_200_is_accepted(context: Context) -> None:
    """`limit` may be 200."""
    expect.status(context.main.get("/products", limit=200), 200)


def _refuse(name: str, rule: str, **parameters: Any) -> None:
    def run(context: Context) -> None:
        expect.refused(context.main.get("/products", **parameters), 400, next(iter(parameters)))

    add(f"products.{name}", rule, run)


_refuse("limit_0", "`limit` is at least 1.", limit=0)
_refuse("limit_201", "`limit` is at most 200.", limit=201)
_refuse("limit_is_a_number", "A `limit` that is not a number is refused with 400.", limit="many")
_refuse("page_0", "`page` begins at 1.", page=0)
_refuse("page_is_a_number", "A `page` that is not a number is refused with 400.", page="first")


@check()
def one_product(context: Context) -> None:
    """GET /products/{id} returns the product as the list has it."""
    listed = context.products()[0]
    one = expect.found(context.main.get(f"/products/{listed['id']}", country=context.settings.country))
    for name, value in listed.items():
        expect.equal(expect.member(one, name), value, f"`{name}`")


@check()
def unknown_product(context: Context) -> None:
    """An unknown product is 404."""
    expect.refused(context.main.get("/products/2147483647"), 404)


@check()
def product_id_is_a_number(context: Context) -> None:
    """A product id that is not a number is 404 or 400."""
    expect.status(context.main.get("/products/first"), 404, 400)


@check()
def restricted_products(context: Context) -> None:
    """A product for another customer is not listed, and is 404."""
    theirs = expect.listed(context.caller("other").get("/products", limit=200, country=context.settings.country))
    foreign = set(_ids(theirs)) - set(_ids(context.products()))
    if not foreign:
        raise Skipped("The other customer has no product of its own.")
    answer = context.main.get(f"/products/{min(foreign)}", country=context.settings.country)
    if answer.status != 404:
        raise Failed(f"{answer.described()}; expected 404, since only another customer may send it.")
