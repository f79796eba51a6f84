"""What a world file says, checked and in minor units.

A field `x` of the file is here `x`, or `x_minor` where it is an amount. `place` says where it was written.
Currencies are looked up only when the world is loaded: which there are is for the database to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from largesse.catalogue.pictures import Picture


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object was written: file, line, path (`products[2]`) and the lines of its fields."""

    file: str
    line: int
    path: str
    lines: Mapping[str, int]

    def line_of(self, name: str) -> int:
        """The line of the field `name`, or the object's own where it is not there."""
        return self.lines.get(name, self.line)

    def mistake(self, name: str, text: str) -> str:
        """One line about the field `name`: `world.yaml:14: products[2].name: …`."""
        return f"{self.file}:{self.line_of(name)}: {self.path}.{name}: {text}"


@dataclass(frozen=True, slots=True)
class User:
    """A person of a customer, found again by e-mail address whatever its letter case."""

    place: Place = field(compare=False, repr=False)
    email: str
    name: str
    role: str  # admin, member, finance or viewer
    active: bool


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """Whom API keys act as; its key is unique within the customer."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str
    active: bool


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key of a service account in one environment; its secret is drawn when it is loaded, and is never in a file."""

    place: Place = field(compare=False, repr=False)
    key: str
    service_account: str
    environment: str  # production or staging


@dataclass(frozen=True, slots=True)
class FundingAccount:
    """Prepaid money that service accounts draw on. The balance is its opening one: a repeated load leaves it alone."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str
    master: bool
    currency: str
    environment: str  # production or staging
    balance_minor: int  # the opening balance
    service_accounts: tuple[str, ...] | None  # None: open to all


@dataclass(frozen=True, slots=True)
class Template:
    """A saved preset of a customer: what is sent, at which value and to which country. One of product and collection is set."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str | None
    product: str | None  # this or a collection
    collection: str | None
    value_minor: int  # in the gift's currency
    country: str
    wrapping_key: str | None
    from_name: str | None
    message: str | None
    expiry_after_days: int | None


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer and all that is its own; the parts refer to one another by key."""

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


@dataclass(frozen=True, slots=True)
class Product:
    """A gift, digital or physical, with the prices of its kind."""

    place: Place = field(compare=False, repr=False)
    key: str
    name: str
    digital: bool
    currency: str
    countries: tuple[str, ...]  # digital only, like the next three
    denominations_minor: tuple[int, ...]  # ascending
    min_amount_minor: int | None
    max_amount_minor: int | None
    cost_minor: int | None  # physical only, like the next three
    markup_percent: Decimal
    postage_minor: Mapping[str, int]  # by country
    vat_percent: Mapping[str, Decimal]  # by country
    customers: tuple[str, ...] | None  # None: sold to all
    active: bool
    picture: Picture | None
    description: str | None
    how_to_redeem: str | None
    terms: str | None


@dataclass(frozen=True, slots=True)
class Collection:
    """What a recipient chooses from: a curated one, or with `customer` a custom one."""

    place: Place = field(compare=False, repr=False)
    key: str
    customer: str | None  # None: curated
    name: str
    country: str
    currency: str
    value_minor: int | None  # custom only
    value_points_minor: tuple[int, ...]  # curated only, ascending
    allow_custom_value: bool  # curated only
    products: tuple[str, ...]
    active: bool


@dataclass(frozen=True, slots=True)
class SeedFile:
    """All that one world file describes; every reference in it resolves."""

    file: str
    customers: tuple[Customer, ...]
    products: tuple[Product, ...]
    collections: tuple[Collection, ...]
