"""Products and collections as people type them, in forms and in CSV files: the same texts by the same names, so both are read here.

All mistakes are found at once, each with its field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, TypeVar

from largesse.base.amounts import normal_marks, number_in, readings
from largesse.base.i18n.languages import country_codes
from largesse.base.money import MAX_AMOUNT, AmountError, exponent, to_decimal, to_minor
from largesse.base.text import unfit
from largesse.catalogue import content as faults
from largesse.catalogue.content import CollectionContent, Fault, Faulty, ProductContent
from largesse.catalogue.model import MAX_DESCRIPTION, MAX_HOW_TO_REDEEM, MAX_TERMS, STOCK, delivered_minor

MOST_NAME = 200
MOST_COUNTRIES = 250
MOST_AMOUNTS = 200
MOST_CUSTOMERS = 1_000
MOST_SUPPLIERS = 10
MOST_PRODUCTS = 1_000  # products in a collection
MOST_PERCENT = 1_000
_OF_NUMBERS = frozenset("+-.0123456789")
_MOST_DIGITS = 24
_BETWEEN = re.compile(r"[,;\s]+")
_BETWEEN_AMOUNTS = re.compile(r"[;\s]+")
_SURELY_BETWEEN = re.compile(r"[;\n]|,\s")  # what no amount has in it, as it may have a blank: `1 500`
_BETWEEN_KEYS = re.compile(r"[,;\n]+")
_PAIR = re.compile(r"([A-Za-z]{2})(?:\s*[:=])?\s*([0-9.]+)")
_OF_THOUSANDS = 3  # digits between two thousands marks
_SUPPLIER = re.compile(r"[a-z][a-z0-9-]{0,39}")

Read = TypeVar("Read")


class Names(NamedTuple):
    """The customers, and the products with their currencies, to which texts refer by key."""

    customers: Mapping[str, int]
    products: Mapping[str, tuple[int, str]] = {}


PRODUCT_FIELDS = (
    "name", "active", "countries", "denominations", "min_amount", "max_amount", "cost", "markup_percent", "postage", "vat_percent",
    "customers", "suppliers", "description", "how_to_redeem", "terms",
)  # fmt: skip
COLLECTION_FIELDS = ("name", "active", "country", "value_points", "allow_custom_value", "products")
_DIGITAL = ("countries", "denominations", "min_amount", "max_amount", "suppliers")
_PHYSICAL = ("cost", "markup_percent", "postage", "vat_percent")


def fields_of(kind: str, *, is_digital: bool = True) -> tuple[str, ...]:
    """Returns the names of the texts of a product of that kind, or of a collection."""
    if kind == "collection":
        return COLLECTION_FIELDS
    return tuple(name for name in PRODUCT_FIELDS if name not in (_PHYSICAL if is_digital else _DIGITAL))


def typed_product(content: ProductContent, customer_keys: Mapping[int, str]) -> dict[str, str]:
    """Returns a product as people type it."""

    def amount(minor: int | None) -> str:
        return "" if minor is None else _number(to_decimal(minor, content.currency))

    every = {
        "name": content.name,
        "active": _yes(content.active),
        "countries": ", ".join(content.countries),
        "denominations": ", ".join(map(amount, content.denominations_minor)),
        "min_amount": amount(content.min_amount_minor),
        "max_amount": amount(content.max_amount_minor),
        "cost": amount(content.cost_minor),
        "markup_percent": "" if not content.markup_percent else _number(content.markup_percent),
        "postage": ", ".join(f"{country} {amount(minor)}" for country, minor in content.postage_minor.items()),
        "vat_percent": ", ".join(f"{country} {_number(percent)}" for country, percent in content.vat_percent.items()),
        "customers": ", ".join(customer_keys.get(one, str(one)) for one in content.customer_ids or ()),
        "suppliers": ", ".join(content.suppliers),
        "description": content.description or "",
        "how_to_redeem": content.how_to_redeem or "",
        "terms": content.terms or "",
    }
    return {name: every[name] for name in fields_of("product", is_digital=content.is_digital)}


def typed_collection(content: CollectionContent, product_keys: Mapping[int, str]) -> dict[str, str]:
    """Returns a collection as people type it."""
    points = (_number(to_decimal(minor, content.currency)) for minor in content.value_points_minor)
    return {
        "name": content.name,
        "active": _yes(content.active),
        "country": content.country,
        "value_points": ", ".join(points),
        "allow_custom_value": _yes(content.allow_custom_value),
        "products": ", ".join(product_keys.get(one, str(one)) for one in content.product_ids),
    }


def read_product(
    typed: Mapping[str, str], names: Names, *, is_digital: bool, currency: str, picture: str | None = None
) -> ProductContent:
    """Returns the product that texts describe. Raises Faulty with all faults."""
    reader = _Reader(typed, currency)
    content = ProductContent(
        name=reader.text("name", MOST_NAME, required=True) or "",
        is_digital=is_digital,
        currency=currency,
        active=reader.flag("active"),
        countries=reader.countries("countries") if is_digital else (),
        denominations_minor=reader.amounts("denominations") if is_digital else (),
        min_amount_minor=reader.amount("min_amount") if is_digital else None,
        max_amount_minor=reader.amount("max_amount") if is_digital else None,
        cost_minor=None if is_digital else reader.amount("cost", required=True),
        markup_percent=None if is_digital else reader.percent("markup_percent"),
        postage_minor={} if is_digital else reader.pairs("postage", reader.postage, required=True),
        vat_percent={} if is_digital else reader.pairs("vat_percent", reader.vat),
        customer_ids=reader.customers("customers", names),
        picture=picture,
        description=reader.text("description", MAX_DESCRIPTION, lines=True),
        how_to_redeem=reader.text("how_to_redeem", MAX_HOW_TO_REDEEM, lines=True),
        terms=reader.text("terms", MAX_TERMS, lines=True),
        suppliers=reader.suppliers("suppliers") if is_digital else (STOCK,),
    )
    if is_digital:
        _check_amounts(content, reader)
    elif not reader.noted:
        _check_price(content, reader)
    return reader.end(content)


def read_collection(typed: Mapping[str, str], names: Names, *, currency: str) -> CollectionContent:
    """Returns the collection that texts describe. Raises Faulty with all faults."""
    reader = _Reader(typed, currency)
    country = reader.country("country", typed.get("country", "").strip()) if typed.get("country", "").strip() else None
    if country is None and not any(fault.field == "country" for fault in reader.noted):
        reader.fault("country", faults.NO_COUNTRY)
    content = CollectionContent(
        name=reader.text("name", MOST_NAME, required=True) or "",
        country=country or "",
        currency=currency,
        active=reader.flag("active"),
        value_points_minor=reader.amounts("value_points"),
        allow_custom_value=reader.flag("allow_custom_value"),
        product_ids=reader.products("products", names),
    )
    if not content.value_points_minor and not content.allow_custom_value:
        reader.fault("value_points", faults.NO_POINTS)
    return reader.end(content)


def _check_amounts(content: ProductContent, reader: _Reader) -> None:
    lowest, highest = content.min_amount_minor, content.max_amount_minor
    typed = {name: bool(reader.typed.get(name, "").strip()) for name in ("denominations", "min_amount", "max_amount")}
    if typed["denominations"] and (typed["min_amount"] or typed["max_amount"]):
        reader.fault("denominations", faults.BOTH_AMOUNTS)
    elif not any(typed.values()):
        reader.fault("denominations", faults.NO_AMOUNTS)
    elif not typed["denominations"] and typed["min_amount"] != typed["max_amount"]:
        reader.fault("min_amount" if typed["max_amount"] else "max_amount", faults.NO_RANGE)
    elif lowest is not None and highest is not None and lowest > highest:
        reader.fault("min_amount", faults.WRONG_RANGE)


def _check_price(content: ProductContent, reader: _Reader) -> None:
    product = content.as_product(0)
    for country in content.postage_minor:
        if delivered_minor(product, country) > to_minor(MAX_AMOUNT, content.currency):
            reader.fault("cost", faults.TOO_EXPENSIVE, what=country, most=MAX_AMOUNT)
            return


def _words(typed: str) -> list[str]:
    return [part for part in _BETWEEN.split(typed) if part]


def _amounts_in(typed: str) -> list[str]:
    """Returns the amounts in a text. A part such as `5,50` or `1 500` may be one amount or two, so it is not split, and is refused later."""
    parts: list[str] = []
    for group in map(normal_marks, _SURELY_BETWEEN.split(typed)):
        is_unclear = readings(group).mark == " "
        parts += [group] if is_unclear else [part.strip(",") for part in _BETWEEN_AMOUNTS.split(group)]
    return [one for part in parts for one in ([part] if readings(part).mark else part.split(",")) if one]


class _Reader:
    """Reads texts, each by the rule of its field, and collects the faults."""

    def __init__(self, typed: Mapping[str, str], currency: str) -> None:
        self.typed = typed
        self.noted: list[Fault] = []
        self._currency = currency

    def fault(self, field: str, said: str, **values: object) -> None:
        """Adds a fault of a field. Only the first fault of each field counts."""
        if not any(fault.field == field for fault in self.noted):
            self.noted.append(Fault(field, said, values))

    def end(self, content: Read) -> Read:
        """Returns the content. Raises Faulty if there were faults."""
        if self.noted:
            raise Faulty(self.noted)
        return content

    def text(self, field: str, most: int, *, required: bool = False, lines: bool = False) -> str | None:
        """Returns a text of at most `most` characters; None if nothing is typed."""
        text = self.typed.get(field, "").replace("\r\n", "\n").strip()
        if not text and required:
            self.fault(field, faults.REQUIRED)
        if len(text) > most:
            self.fault(field, faults.TOO_LONG, found=len(text), most=most)
        if unfit(text, line_breaks=lines):
            self.fault(field, faults.UNFIT)
        return text or None

    def flag(self, field: str) -> bool:
        """Returns whether the text is yes. Blank means no."""
        typed = self.typed.get(field, "").strip().lower()
        if typed not in {"yes", "true", "no", "false", ""}:
            self.fault(field, faults.NOT_YES)
        return typed in {"yes", "true"}

    def country(self, field: str, typed: str) -> str | None:
        """Returns the code of a country in upper case."""
        if typed.upper() not in country_codes():
            self.fault(field, faults.UNKNOWN_COUNTRY, what=typed[:40])
            return None
        return typed.upper()

    def countries(self, field: str) -> tuple[str, ...]:
        """Returns countries, at least one."""
        parts = self._parts(field, MOST_COUNTRIES)
        if not parts:
            self.fault(field, faults.NO_COUNTRY)
        return tuple(self._each(field, parts, lambda part: self.country(field, part)))

    def amount(self, field: str, *, required: bool = False) -> int | None:
        """Returns an amount above zero in minor units; None if nothing is typed."""
        typed = self.typed.get(field, "").strip()
        if not typed and required:
            self.fault(field, faults.REQUIRED)
        return self._minor(field, self._plain(typed), 1) if typed else None

    def amounts(self, field: str) -> tuple[int, ...]:
        """Returns amounts above zero in ascending order."""
        parts = self._parts(field, MOST_AMOUNTS, _amounts_in)
        return tuple(sorted(self._each(field, parts, lambda part: self._minor(field, part, 1))))

    def postage(self, field: str, typed: str) -> int | None:
        """Returns an amount in minor units. It may be zero."""
        return self._minor(field, typed, 0)

    def percent(self, field: str) -> Decimal:
        """Returns a percentage; 0 if nothing is typed."""
        typed = self.typed.get(field, "").replace("%", " ").strip()
        return (self.vat(field, self._plain(typed)) if typed else None) or Decimal(0)

    def vat(self, field: str, typed: str) -> Decimal | None:
        """Returns a percentage."""
        number = _decimal(typed)
        if number is None or not 0 <= number <= MOST_PERCENT or number != round(number, 4):
            self.fault(field, faults.NO_PERCENT, what=typed[:40])
            return None
        return number

    def pairs(self, field: str, rule: Callable[[str, str], Read | None], *, required: bool = False) -> dict[str, Read]:
        """Returns a value for each country, from texts such as `GB 4.95, IE 9.95`."""
        typed = self.typed.get(field, "").replace("%", " ")
        found = _PAIR.findall(typed)
        if _BETWEEN.sub("", _PAIR.sub("", typed)) or len(found) > MOST_COUNTRIES:
            self.fault(field, faults.NO_PAIRS)
        if not found and required:
            self.fault(field, faults.NO_COUNTRY)
        pairs: dict[str, Read] = {}
        for name, value in found[:MOST_COUNTRIES]:
            country, read = self.country(field, name), rule(field, value)
            if country in pairs:
                self.fault(field, faults.TWICE, what=country)
            if country is not None and read is not None:
                pairs[country] = read
        return pairs

    def customers(self, field: str, names: Names) -> tuple[int, ...] | None:
        """Returns the customers that a product is sold to. Returns None, which means all, if the text names none."""
        parts = self._parts(field, MOST_CUSTOMERS, keys_in)
        found = self._each(
            field, parts, lambda part: self._known(field, part, names.customers, faults.UNKNOWN_CUSTOMER)
        )
        return tuple(sorted(found)) if parts else None

    def suppliers(self, field: str) -> tuple[str, ...]:
        """Returns the names of suppliers in their order. Returns the stock if none is named."""

        def name(part: str) -> str | None:
            if _SUPPLIER.fullmatch(part):
                return part
            self.fault(field, faults.UNKNOWN_SUPPLIER, what=part[:40])
            return None

        return tuple(self._each(field, self._parts(field, MOST_SUPPLIERS), name)) or (STOCK,)

    def products(self, field: str, names: Names) -> tuple[int, ...]:
        """Returns the products of a collection, all of its currency."""

        def product(part: str) -> int | None:
            found = self._known(field, part, names.products, faults.UNKNOWN_PRODUCT)
            if found is not None and found[1] != self._currency:
                self.fault(field, faults.OTHER_CURRENCY, what=part[:100])
            return None if found is None else found[0]

        parts = self._parts(field, MOST_PRODUCTS, keys_in)
        if not parts:
            self.fault(field, faults.NO_PRODUCTS)
        return tuple(self._each(field, parts, product))

    def _known(self, field: str, key: str, known: Mapping[str, Read], said: str) -> Read | None:
        if key not in known:
            self.fault(field, said, what=key[:100])
        return known.get(key)

    def _parts(self, field: str, most: int, split: Callable[[str], list[str]] = _words) -> list[str]:
        parts = split(self.typed.get(field, ""))
        if len(parts) > most:
            self.fault(field, faults.TOO_MANY, found=len(parts), most=most)
        return parts[:most]

    def _each(self, field: str, parts: Iterable[str], read: Callable[[str], Any]) -> dict[Any, None]:
        """Reads each part. A part that comes twice is a fault."""
        found: dict[Any, None] = {}
        for part in parts:
            value = read(part)
            if value in found:
                self.fault(field, faults.TWICE, what=part[:40])
            if value is not None:
                found[value] = None
        return found

    def _minor(self, field: str, typed: str, least: int) -> int | None:
        number = _decimal(typed)
        if number is not None and number > MAX_AMOUNT:
            self.fault(field, faults.TOO_MUCH, most=MAX_AMOUNT)
            return None
        try:
            minor = None if number is None or self._is_unclear(typed) else to_minor(number, self._currency)
        except AmountError:
            minor = None
        if minor is None:
            example = "4.95" if exponent(self._currency) else "500"
            self.fault(field, faults.NO_AMOUNT, what=typed[:40], currency=self._currency, example=example)
        elif minor < least:
            self.fault(field, faults.ZERO)
            return None
        return minor

    def _plain(self, typed: str) -> str:
        """Returns a number without the currency's sign, code or name; with a point and no other mark if it has one meaning."""
        try:
            number = number_in(typed, self._currency)
        except ValueError:
            return typed
        read = readings(number)
        values = [one for one in (read.whole, read.with_decimals) if one is not None]
        return str(values[0]) if len(values) == 1 else number

    def _is_unclear(self, typed: str) -> bool:
        """Returns whether a text such as `1.000` may mean a thousand. In a few currencies, which have three decimals, it means 1."""
        return (
            readings(typed).whole is not None
            and bool(readings(typed).mark)
            and exponent(self._currency) < _OF_THOUSANDS
        )


def keys_in(typed: str) -> list[str]:
    """Returns the keys in a text, separated by commas, semicolons or line breaks."""
    return [part.strip() for part in _BETWEEN_KEYS.split(typed) if part.strip()]


def _decimal(typed: str) -> Decimal | None:
    # Refuses `1e3`, which `Decimal` reads: a spreadsheet that writes a price like this may have lost digits.
    if len(typed) > _MOST_DIGITS or not set(typed) <= _OF_NUMBERS:
        return None
    try:
        number = Decimal(typed)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _number(number: Decimal) -> str:
    return f"{number.normalize():f}"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
