"""Reads a whole seed file, and checks the references within and between its lists."""

import codecs
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TypeVar

import msgspec

from largesse.base.errors import OperatorError
from largesse.catalogue.service import MOST_COLLECTIONS
from largesse.customers.customers import MOST_CUSTOMER_NAME, PLANS
from largesse.customers.members import MOST_PEOPLE
from largesse.customers.roles import ROLES
from largesse.customers.service_accounts import MOST_SERVICE_ACCOUNTS
from largesse.ledger.accounts import MOST_ACCOUNTS
from largesse.ledger.payment_sources import SOURCES
from largesse.seed import document, values
from largesse.seed.document import Collection, SeedFile
from largesse.seed.fields import Fields, SeedErrors
from largesse.seed.gifts import PictureFolder, gift_value, read_collection, read_product, sold_in
from largesse.templates.service import MAX_EXPIRY_DAYS, MAX_NAME, MOST_TEMPLATES

ENVIRONMENTS = ("production", "staging")
_NAME_LENGTH = 100  # the same limit as in the web application
_FROM_NAME_LENGTH = 32  # the limit in docs/contract.md, Limits
_MESSAGE_LENGTH = 256  # the limit in docs/contract.md, Limits
_WRAPPING_KEY_LENGTH = 64
_DEFAULT_COUNTRY = "GB"

Gift = TypeVar("Gift", document.Product, document.Collection)


class Gifts(msgspec.Struct, frozen=True):
    """The gifts that templates may send, by key. None for a gift that has mistakes."""

    products: Mapping[str, document.Product | None]
    collections: Mapping[str, document.Collection | None]


def read_customer(fields: Fields, gifts: Gifts) -> document.Customer:
    """Returns the customer that a mapping describes, with its lists. Adds mistakes to `fields`."""
    key = fields.key()
    customer = document.Customer(
        place=fields.place,
        key=key,
        name=fields.text("name", MOST_CUSTOMER_NAME, required=True) or "",
        plan=fields.choice("plan", PLANS),
        funding=fields.choice("funding", tuple(SOURCES)),
        users=tuple(_read_user(user) for user in fields.objects("users")),
        service_accounts=tuple(_read_service_account(account) for account in fields.objects("service_accounts")),
        api_keys=tuple(_read_api_key(api_key) for api_key in fields.objects("api_keys")),
        funding_accounts=tuple(_read_funding_account(account) for account in fields.objects("funding_accounts")),
        templates=tuple(_read_template(template, key, gifts) for template in fields.objects("templates")),
        managed=fields.managed(),
    )
    fields.at_most("users", MOST_PEOPLE, [user for user in customer.users if user.active is not False])
    fields.at_most("service_accounts", MOST_SERVICE_ACCOUNTS, customer.service_accounts)
    fields.at_most("funding_accounts", MOST_ACCOUNTS, customer.funding_accounts)
    fields.at_most("templates", MOST_TEMPLATES, customer.templates)
    return fields.finish(customer)


def _read_user(fields: Fields) -> document.User:
    return fields.finish(
        document.User(
            place=fields.place,
            email=fields.one("email", values.email, required=True) or "",
            name=fields.text("name", _NAME_LENGTH, required=True) or "",
            role=fields.choice("role", ROLES, "member"),
            active=fields.one("active", values.flag),
        )
    )


def _read_service_account(fields: Fields) -> document.ServiceAccount:
    return fields.finish(
        document.ServiceAccount(
            place=fields.place,
            key=fields.key(),
            name=fields.text("name", _NAME_LENGTH, required=True) or "",
            active=fields.one("active", values.flag),
        )
    )


def _read_api_key(fields: Fields) -> document.ApiKey:
    return fields.finish(
        document.ApiKey(
            place=fields.place,
            key=fields.key(slash=True),  # the name that a person gave it
            service_account=fields.key("service_account"),
            environment=fields.choice("environment", ENVIRONMENTS),
        )
    )


def _read_funding_account(fields: Fields) -> document.FundingAccount:
    currency = fields.currency()
    return fields.finish(
        document.FundingAccount(
            place=fields.place,
            key=fields.key(),
            name=fields.text("name", _NAME_LENGTH, required=True) or "",
            master=fields.flag("master", default=False),
            currency=currency,
            environment=fields.choice("environment", ENVIRONMENTS, "production"),
            balance_minor=fields.balance("balance", currency),
            service_accounts=fields.references_or_all("service_accounts"),
        )
    )


def _read_template(fields: Fields, customer: str, gifts: Gifts) -> document.Template:
    product, collection = fields.reference("product"), fields.reference("collection")
    country = fields.one("country", values.country)
    value_minor = 0
    if fields.has("product") == fields.has("collection"):
        fields.mistake("product", "exactly one of `product` and `collection` is required")
        fields.amount("value", "")
    elif product is not None:
        country = country or _DEFAULT_COUNTRY
        value_minor = _read_value(fields, _find(fields, "product", product, gifts.products), country, customer)
    elif collection is not None:
        found = _find(fields, "collection", collection, gifts.collections)
        value_minor = _read_value(fields, found, country, customer)
        country = found.country if found else None
    return fields.finish(
        document.Template(
            place=fields.place,
            key=fields.key(),
            name=fields.text("name", MAX_NAME),
            product=product,
            collection=collection,
            value_minor=value_minor,
            country=country or "",
            wrapping_key=fields.text("wrapping_key", _WRAPPING_KEY_LENGTH),
            from_name=fields.text("from_name", _FROM_NAME_LENGTH),
            message=fields.text("message", _MESSAGE_LENGTH, line_ends=True),
            expiry_after_days=fields.one("expiry_after_days", values.whole(1, MAX_EXPIRY_DAYS)),
        )
    )


def _find(fields: Fields, name: str, key: str, known: Mapping[str, Gift | None]) -> Gift | None:
    if key not in known:
        fields.mistake(name, f"there is no {name} {key!r}")
    return known.get(key)


def _read_value(
    fields: Fields, gift: document.Product | document.Collection | None, country: str | None, customer: str
) -> int:
    """Returns the value of a template of `gift`; 0 after a mistake."""
    if gift is None:
        fields.amount("value", "")
        return 0
    value_minor = fields.amount("value", gift.currency)
    wrong_country = None
    if isinstance(gift, document.Product):
        name, is_sold = "product", gift.customers is None or customer in gift.customers
        if country not in sold_in(gift):
            wrong_country = f"{gift.key!r} is not sold in {country}"
    else:
        name, is_sold = "collection", gift.customer in (None, customer)
        if country not in (None, gift.country):
            wrong_country = f"must be {gift.country}, the country of the collection, or left out"
    if not is_sold:
        fields.mistake(name, f"{gift.key!r} is not sold to {customer!r}")
    elif wrong_country:
        fields.mistake("country", wrong_country)
    elif value_minor is not None or not fields.has("value"):
        try:
            return gift_value(gift, country or "", value_minor)
        except ValueError as error:
            fields.mistake("value", str(error))
    return 0


def check_customer(customer: document.Customer, mistakes: SeedErrors) -> None:
    """Checks the references inside a customer, and that no key of a list is used twice."""
    for keyed in (customer.service_accounts, customer.api_keys, customer.funding_accounts, customer.templates):
        check_keys(((one.place, one.key) for one in keyed), mistakes)
    check_keys(((user.place, user.email.lower()) for user in customer.users), mistakes, "email")
    known = {account.key for account in customer.service_accounts}
    for api_key in customer.api_keys:
        if api_key.service_account and api_key.service_account not in known:
            mistakes.note(
                api_key.place, "service_account", f"{customer.key!r} has no service account {api_key.service_account!r}"
            )
    for account in customer.funding_accounts:
        for number, key in enumerate(account.service_accounts or ()):
            if key not in known:
                mistakes.note(
                    account.place, f"service_accounts[{number}]", f"{customer.key!r} has no service account {key!r}"
                )


def check_keys(keys: Iterable[tuple[document.Place, str]], mistakes: SeedErrors, name: str = "key") -> None:
    """Checks that no key of a list is used twice."""
    seen = set()
    for place, key in keys:
        if key and key in seen:
            mistakes.note(place, name, f"{key!r} comes twice")
        seen.add(key)


MAX_BYTES = 32 * 2**20


def read_seed(path: Path) -> SeedFile:
    """Returns the seed file at a path.

    Raises OperatorError with file and line for each mistake (one per line, the first 20), or if the file cannot be
    read, is not UTF-8 or exceeds 32 MiB.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror or error}") from None
    return parse_seed(content, path.name, path.parent)


def demo_seed() -> SeedFile:
    """Returns the seed file of `largesse demo`."""
    folder = resources.files("largesse.seed")
    return parse_seed(folder.joinpath("demo.yaml").read_bytes(), "demo.yaml", folder)


def parse_seed(content: bytes, file: str, folder: Traversable | None = None) -> SeedFile:
    """Reads `content`, the bytes of the file named `file` in `folder`, as `read_seed` does. Without a folder it has no pictures."""
    if len(content) > MAX_BYTES:
        raise OperatorError(f"{file}:1: a seed file has at most {MAX_BYTES // 2**20} MiB")
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise OperatorError(f"{file}:{line}: the file must be UTF-8") from None
    root = values.compose(text, file)
    if root is None:
        raise OperatorError(f"{file}:1: the file is empty")
    mistakes = SeedErrors(file)
    seed = _read(Fields(root, "", mistakes), mistakes, PictureFolder(folder))
    mistakes.refuse_any()
    return seed


def _read(fields: Fields, mistakes: SeedErrors, folder: PictureFolder) -> SeedFile:
    products = [(read_product(item, folder), item.is_valid) for item in fields.objects("products")]
    collections = [(read_collection(item), item.is_valid) for item in fields.objects("collections")]
    gifts = Gifts(
        {product.key: product if is_valid else None for product, is_valid in products},
        {collection.key: collection if is_valid else None for collection, is_valid in collections},
    )
    seed = SeedFile(
        file=mistakes.file,
        customers=tuple(read_customer(customer, gifts) for customer in fields.objects("customers")),
        products=tuple(product for product, _ in products),
        collections=tuple(collection for collection, _ in collections),
    )
    _check(fields.finish(seed), mistakes)
    return seed


def _check(seed: SeedFile, mistakes: SeedErrors) -> None:
    """Checks that no key is used twice, and the references between the three lists."""
    for keyed in (seed.customers, seed.products, seed.collections):
        check_keys(((one.place, one.key) for one in keyed), mistakes)
    for customer in seed.customers:
        check_customer(customer, mistakes)
    customers = {customer.key for customer in seed.customers}
    for product in seed.products:
        for number, key in enumerate(product.customers or ()):
            if key not in customers:
                mistakes.note(product.place, f"customers[{number}]", f"there is no customer {key!r}")
    products = {product.key for product in seed.products}
    for collection in seed.collections:
        if collection.customer is not None and collection.customer not in customers:
            mistakes.note(collection.place, "customer", f"there is no customer {collection.customer!r}")
        for number, key in enumerate(collection.products):
            if key not in products:
                mistakes.note(collection.place, f"products[{number}]", f"there is no product {key!r}")
    _check_own(seed.collections, mistakes)


def _check_own(collections: Sequence[Collection], mistakes: SeedErrors) -> None:
    """Checks that no customer has too many collections of its own."""
    counts = Counter[str]()
    for collection in collections:
        if collection.customer is not None and collection.active:
            counts[collection.customer] += 1
            if counts[collection.customer] == MOST_COLLECTIONS + 1:
                text = f"{collection.customer!r} must have at most {MOST_COLLECTIONS} collections of its own"
                mistakes.note(collection.place, "customer", text)
