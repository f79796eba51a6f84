"""The content of a seed file, checked and in minor units.

A field `x` of the file is `x` here, or `x_minor` if it is an amount. `place` is where an object is in the file. Currencies are
checked when the file is loaded, since the database has the list.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from largesse.catalogue.pictures import Picture


class Place(msgspec.Struct, frozen=True):
    """The place of an object: file, line, path (`products[2]`) and the lines of its fields."""

    file: str
    line: int
    path: str
    lines: Mapping[str, int]

    def line_of(self, name: str) -> int:
        """Returns the line of the field `name`, or the object's own if it is missing."""
        return self.lines.get(name, self.line)

    def mistake(self, name: str, text: str) -> str:
        """Returns a line about the field `name`: `seed.yaml:14: products[2].name: …`."""
        return f"{self.file}:{self.line_of(name)}: {self.path}.{name}: {text}"


@dataclass(frozen=True, slots=True)
class User:
    """A person of a customer, identified by e-mail address, in any letter case."""

    place: Place = field(compare=False, repr=False)
    email: str
    name: str
    role: str  # admin, member, finance or viewer
    active: bool | None  # None if the file does not say


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A service account, which API keys belong to. Its key is unique within the customer."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str
    active: bool | None  # None if the file does not say


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of a service account in one environment. Loading draws its secret, which is never in a file."""

    place: Place = field(compare=False, repr=False)
    key: str
    service_account: str
    environment: str  # production or staging


@dataclass(frozen=True, slots=True)
class FundingAccount:
    """Prepaid money that service accounts draw on. The balance is the opening one: a repeated load does not change it."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str
    master: bool
    currency: str
    environment: str  # production or staging
    balance_minor: int  # the opening balance
    service_accounts: tuple[str, ...] | None  # None if it is open to all


@dataclass(frozen=True, slots=True)
class Template:
    """A saved preset of a customer: gift, value and country. One of product and collection is set."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str | None
    product: str | None  # either this or a collection
    collection: str | None
    value_minor: int  # the value in the gift's currency
    country: str
    wrapping_key: str | None
    from_name: str | None
    message: str | None
    expiry_after_days: int | None


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer with its lists, which refer to one another by key."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str
    plan: str  # starter, pro or enterprise
    funding: str  # balance or invoiced
    users: tuple[User, ...]
    service_accounts: tuple[ServiceAccount, ...]
    api_keys: tuple[ApiKey, ...]
    funding_accounts: tuple[FundingAccount, ...]
    templates: tuple[Template, ...]
    managed: str  # `file`, or `office`: then the back office manages it after the first load


@dataclass(frozen=True, slots=True)
class Product:
    """A gift, digital or physical, with the prices of its kind."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str
    digital: bool
    currency: str
    countries: tuple[str, ...]  # only for digital gifts, like the next three
    denominations_minor: tuple[int, ...]  # ascending
    min_amount_minor: int | None
    max_amount_minor: int | None
    cost_minor: int | None  # only for physical gifts, like the next three
    markup_percent: Decimal
    postage_minor: Mapping[str, int]  # the postage by country
    vat_percent: Mapping[str, Decimal]  # the VAT by country
    customers: tuple[str, ...] | None  # None if it is sold to all
    active: bool
    picture: Picture | None
    description: str | None
    how_to_redeem: str | None
    terms: str | None
    suppliers: tuple[str, ...]  # `stock` or names of suppliers, in the order in which they are tried
    managed: str  # `file` or `office`, as for a customer


@dataclass(frozen=True, slots=True)
class Collection:
    """The products a recipient chooses from. Curated, or custom if it has a `customer`."""

    place: Place = field(compare=False, repr=False)
    key: str
    customer: str | None  # None if it is curated
    name: str
    country: str
    currency: str
    value_minor: int | None  # only for custom collections
    value_points_minor: tuple[int, ...]  # only for curated collections, ascending
    allow_custom_value: bool  # only for curated collections
    products: tuple[str, ...]
    active: bool
    managed: str  # `file` or `office`, as for a customer


class SeedFile(msgspec.Struct, frozen=True):
    """The objects of one seed file. Every reference in it resolves."""

    file: str
    customers: tuple[Customer, ...]
    products: tuple[Product, ...]
    collections: tuple[Collection, ...]
