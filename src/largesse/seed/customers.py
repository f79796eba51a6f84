"""Reading customers with all that is theirs, and checking what refers to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from largesse.customers.customers import MOST_CUSTOMER_NAME, PLANS
from largesse.customers.roles import ROLES
from largesse.ledger.payment_sources import SOURCES
from largesse.seed.document import (
    ApiKey,
    Collection,
    Customer,
    FundingAccount,
    Place,
    Product,
    ServiceAccount,
    Template,
    User,
)
from largesse.seed.fields import Fields, SeedErrors
from largesse.seed.gifts import collection_value, product_value, sold_in
from largesse.templates.store import MAX_EXPIRY_DAYS

ENVIRONMENTS = ("production", "staging")
_NAME_LENGTH = 200
_FROM_NAME_LENGTH = 32  # as in docs/contract.md, Limits
_MESSAGE_LENGTH = 256  # as in docs/contract.md, Limits
_WRAPPING_KEY_LENGTH = 64
_DEFAULT_COUNTRY = "GB"


@dataclass(frozen=True, slots=True)
class Gifts:
    """What templates may send, by key; None stands for one that has mistakes of its own."""

    products: Mapping[str, Product | None]
    collections: Mapping[str, Collection | None]


def read_customer(fields: Fields, gifts: Gifts) -> Customer:
    """The customer that a mapping of the file describes, with all that is below it; mistakes are noted in `fields`."""
    key = fields.key()
    customer = Customer(
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
    )
    fields.done()
    return customer


def _read_user(fields: Fields) -> User:
    user = User(
        place=fields.place,
        email=fields.email("email"),
        name=fields.text("name", _NAME_LENGTH, required=True) or "",
        role=fields.choice("role", ROLES, "member"),
        active=fields.flag("active", default=True),
    )
    fields.done()
    return user


def _read_service_account(fields: Fields) -> ServiceAccount:
    account = ServiceAccount(
        place=fields.place,
        key=fields.key(),
        name=fields.text("name", _NAME_LENGTH, required=True) or "",
        active=fields.flag("active", default=True),
    )
    fields.done()
    return account


def _read_api_key(fields: Fields) -> ApiKey:
    api_key = ApiKey(
        place=fields.place,
        key=fields.key(),
        service_account=fields.key("service_account"),
        environment=fields.choice("environment", ENVIRONMENTS),
    )
    fields.done()
    return api_key


def _read_funding_account(fields: Fields) -> FundingAccount:
    currency = fields.currency()
    account = FundingAccount(
        place=fields.place,
        key=fields.key(),
        name=fields.text("name", _NAME_LENGTH, required=True) or "",
        master=fields.flag("master", default=False),
        currency=currency,
        environment=fields.choice("environment", ENVIRONMENTS, "production"),
        balance_minor=fields.amount("balance", currency, least=0) or 0,
        service_accounts=fields.references_or_all("service_accounts"),
    )
    fields.done()
    return account


def _read_template(fields: Fields, customer: str, gifts: Gifts) -> Template:
    product, collection = fields.reference("product"), fields.reference("collection")
    country = fields.country("country")
    value_minor = 0
    if fields.has("product") == fields.has("collection"):
        fields.mistake("product", "exactly one of `product` and `collection` is required")
        fields.amount("value", "")
    elif product is not None:
        country = country or _DEFAULT_COUNTRY
        value_minor = _product_value(fields, _product(fields, product, gifts), country, customer)
    elif collection is not None:
        found = _collection(fields, collection, gifts)
        value_minor = _collection_value(fields, found, country, customer)
        country = found.country if found else None
    template = Template(
        place=fields.place,
        key=fields.key(),
        name=fields.text("name", _NAME_LENGTH),
        product=product,
        collection=collection,
        value_minor=value_minor,
        country=country or "",
        wrapping_key=fields.text("wrapping_key", _WRAPPING_KEY_LENGTH),
        from_name=fields.text("from_name", _FROM_NAME_LENGTH),
        message=fields.text("message", _MESSAGE_LENGTH, line_ends=True),
        expiry_after_days=fields.whole("expiry_after_days", 1, MAX_EXPIRY_DAYS),
    )
    fields.done()
    return template


def _product(fields: Fields, key: str, gifts: Gifts) -> Product | None:
    if key not in gifts.products:
        fields.mistake("product", f"there is no product {key!r}")
    return gifts.products.get(key)


def _collection(fields: Fields, key: str, gifts: Gifts) -> Collection | None:
    if key not in gifts.collections:
        fields.mistake("collection", f"there is no collection {key!r}")
    return gifts.collections.get(key)


def _product_value(fields: Fields, product: Product | None, country: str, customer: str) -> int:
    """The value of a template of `product`; 0 after a mistake."""
    if product is None:
        fields.amount("value", "")
        return 0
    value_minor = fields.amount("value", product.currency)
    if product.customers is not None and customer not in product.customers:
        fields.mistake("product", f"{product.key!r} is not sold to {customer!r}")
    elif country not in sold_in(product):
        fields.mistake("country", f"{product.key!r} is not sold in {country}")
    elif value_minor is not None or not fields.has("value"):
        try:
            return product_value(product, country, value_minor)
        except ValueError as error:
            fields.mistake("value", str(error))
    return 0


def _collection_value(fields: Fields, collection: Collection | None, country: str | None, customer: str) -> int:
    """The value of a template of `collection`; 0 after a mistake."""
    if collection is None:
        fields.amount("value", "")
        return 0
    value_minor = fields.amount("value", collection.currency)
    if collection.customer not in (None, customer):
        fields.mistake("collection", f"{collection.key!r} is not sold to {customer!r}")
    elif country not in (None, collection.country):
        fields.mistake("country", f"must be {collection.country}, the collection's, or left out")
    elif value_minor is not None or not fields.has("value"):
        try:
            return collection_value(collection, value_minor)
        except ValueError as error:
            fields.mistake("value", str(error))
    return 0


def check_customer(customer: Customer, mistakes: SeedErrors) -> None:
    """The references inside a customer, and that no key of a list comes twice."""
    check_keys(((account.place, account.key) for account in customer.service_accounts), mistakes)
    check_keys(((api_key.place, api_key.key) for api_key in customer.api_keys), mistakes)
    check_keys(((account.place, account.key) for account in customer.funding_accounts), mistakes)
    check_keys(((template.place, template.key) for template in customer.templates), mistakes)
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


def check_keys(keys: Iterable[tuple[Place, str]], mistakes: SeedErrors, name: str = "key") -> None:
    """No key of a list comes twice."""
    seen = set()
    for place, key in keys:
        if key and key in seen:
            mistakes.note(place, name, f"{key!r} comes twice")
        seen.add(key)
