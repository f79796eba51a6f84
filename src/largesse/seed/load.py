"""Loading a world into the database, all of it or nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from largesse.catalogue.pictures import save_pictures
from largesse.catalogue.store import save_collections, save_products
from largesse.customers.customer_store import save_customers, save_service_accounts, save_users
from largesse.db.pool import Connection
from largesse.db.statements import Saved
from largesse.encryption.chain import Chain
from largesse.ledger.posting import top_up
from largesse.ledger.store import assign, list_unfunded, save_accounts
from largesse.seed.document import Collection, Customer, Product, SeedFile, Template
from largesse.seed.fields import SeedErrors
from largesse.seed.saving import NewRow, save, save_api_keys
from largesse.templates.store import save_templates

_ONE_LOAD_AT_A_TIME = 7_526_913_001  # an advisory lock of this installation's database


_Ids = dict[str, int]
_OwnIds = dict[tuple[str, str], int]  # by the customer's key and the own


@dataclass(frozen=True, slots=True)
class LoadedSeed:
    """The ids of all that a world file names, the secrets of the API keys made by this load, and what its author should know.

    What belongs to a customer is named by its key, or as `customer/key` where two customers have the same.
    """

    ids: Mapping[str, Mapping[str, int]]
    api_keys: Mapping[str, str] = field(repr=False)  # secrets: shown once, to the operator
    warnings: Sequence[str] = ()  # each with its place in the file
    new_users: Sequence[int] = ()  # ids of the active people whom this load added

    def to_json(self) -> str:
        """All of it as one JSON object, secrets included; `warnings` only where there are any."""
        told: dict[str, object] = {"ids": self.ids, "api_keys": self.api_keys}
        if self.warnings:
            told["warnings"] = list(self.warnings)
        return json.dumps(told, indent=2, ensure_ascii=False)


async def load_seed(connection: Connection, chain: Chain, world: SeedFile) -> LoadedSeed:
    """Creates or updates what `world` describes, in one transaction; safe to repeat, deletes nothing.

    Opening balances are entries of the ledger's `chain`.

    Raises StartError, with the place in the file, for an unknown currency and for a change of what cannot change.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _ONE_LOAD_AT_A_TIME)
        await _check_currencies(connection, world)
        customers = await _save_customers(connection, world)
        new_users = await _save_users(connection, world, customers)
        service_accounts = await _save_service_accounts(connection, world, customers)
        products = await _save_products(connection, world, customers)
        collections, kept = await _save_collections(connection, world, customers, products)
        templates, kept_templates = await _save_templates(connection, world, customers, products, collections)
        accounts = await _save_accounts(connection, chain, world, customers, service_accounts)
        api_keys = await save_api_keys(connection, world, customers, service_accounts)
        unfunded = await _unfunded(connection, world, service_accounts)
    ids = {
        "products": products,
        "collections": collections,
        "templates": _by_name(templates),
        "funding_accounts": _by_name(accounts),
        "customers": customers,
        "service_accounts": _by_name(service_accounts),
    }
    names = _names((customer.key, api_key.key) for customer in world.customers for api_key in customer.api_keys)
    secrets = {names[own]: secret for own, secret in api_keys.secrets.items()}
    return LoadedSeed(ids, secrets, [*kept, *kept_templates, *api_keys.warnings, *unfunded], new_users)


async def _check_currencies(connection: Connection, world: SeedFile) -> None:
    known = {row["code"] for row in await connection.fetch("SELECT code FROM currencies")}
    mistakes = SeedErrors(world.file)
    used = [(product.place, product.currency) for product in world.products]
    used += [(collection.place, collection.currency) for collection in world.collections]
    used += [(account.place, account.currency) for customer in world.customers for account in customer.funding_accounts]
    for place, currency in used:
        if currency not in known:
            mistakes.note(place, "currency", f"{currency} is no currency in use (ISO 4217)")
    mistakes.refuse_any()


async def _save_customers(connection: Connection, world: SeedFile) -> _Ids:
    rows = [
        NewRow(c.place, {"key": c.key, "name": c.name, "plan": c.plan, "funding": c.funding}) for c in world.customers
    ]
    saved = await save(connection, save_customers, rows)
    return dict(zip((customer.key for customer in world.customers), saved.ids, strict=True))


async def _save_users(connection: Connection, world: SeedFile, customers: _Ids) -> list[int]:
    """Returns the ids of those who are new and active."""
    rows = [
        NewRow(
            user.place,
            {
                "customer_id": customers[customer.key],
                "email": user.email,
                "name": user.name,
                "role": user.role,
                "is_active": user.active,
            },
        )
        for customer in world.customers
        for user in customer.users
    ]
    saved = await save(connection, save_users, rows)
    added = zip(saved.ids, saved.created, rows, strict=True)
    return [user_id for user_id, is_new, row in added if is_new and row.values["is_active"]]


async def _save_service_accounts(connection: Connection, world: SeedFile, customers: _Ids) -> _OwnIds:
    owned = [(customer, account) for customer in world.customers for account in customer.service_accounts]
    rows = [
        NewRow(
            account.place,
            {
                "customer_id": customers[customer.key],
                "key": account.key,
                "name": account.name,
                "active": account.active,
            },
        )
        for customer, account in owned
    ]
    saved = await save(connection, save_service_accounts, rows)
    return {(customer.key, account.key): n for (customer, account), n in zip(owned, saved.ids, strict=True)}


async def _save_products(connection: Connection, world: SeedFile, customers: _Ids) -> _Ids:
    await save_pictures(connection, [one.picture for one in world.products if one.picture])
    rows = [NewRow(product.place, _product_values(product, customers)) for product in world.products]
    saved = await save(connection, save_products, rows)
    return dict(zip((product.key for product in world.products), saved.ids, strict=True))


def _product_values(product: Product, customers: _Ids) -> dict[str, object]:
    named = product.customers
    return {
        "key": product.key,
        "name": product.name,
        "is_digital": product.digital,
        "currency": product.currency,
        "countries": product.countries,
        "denominations_minor": product.denominations_minor,
        "min_amount_minor": product.min_amount_minor,
        "max_amount_minor": product.max_amount_minor,
        "cost_minor": product.cost_minor,
        "markup_percent": None if product.digital else str(product.markup_percent),
        "postage_minor": dict(product.postage_minor),
        # Few enough digits that the shortest text of the double is the number itself.
        "vat_percent": {country: float(percent) for country, percent in product.vat_percent.items()},
        "customer_ids": None if named is None else sorted(customers[key] for key in named),
        "active": product.active,
        "picture": product.picture.name if product.picture else None,
        "description": product.description,
        "how_to_redeem": product.how_to_redeem,
        "terms": product.terms,
    }


async def _save_collections(
    connection: Connection, world: SeedFile, customers: _Ids, products: _Ids
) -> tuple[_Ids, list[str]]:
    rows = [
        NewRow(collection.place, _collection_values(collection, customers, products))
        for collection in world.collections
    ]
    saved = await save(connection, save_collections, rows)
    ids = dict(zip((collection.key for collection in world.collections), saved.ids, strict=True))
    return ids, _left_to_people("collection", rows, saved)


def _collection_values(collection: Collection, customers: _Ids, products: _Ids) -> dict[str, object]:
    return {
        "key": collection.key,
        "customer_id": None if collection.customer is None else customers[collection.customer],
        "name": collection.name,
        "country": collection.country,
        "currency": collection.currency,
        "value_minor": collection.value_minor,
        "value_points_minor": collection.value_points_minor,
        "allow_custom_value": collection.allow_custom_value,
        "product_ids": [products[key] for key in collection.products],
        "active": collection.active,
    }


async def _save_templates(
    connection: Connection, world: SeedFile, customers: _Ids, products: _Ids, collections: _Ids
) -> tuple[_OwnIds, list[str]]:
    gifts: dict[tuple[str, str], Product | Collection] = {}
    gifts.update({("product", product.key): product for product in world.products})
    gifts.update({("collection", collection.key): collection for collection in world.collections})

    def values(customer: Customer, template: Template) -> dict[str, object]:
        kind, key = ("product", template.product) if template.product else ("collection", template.collection)
        gift = gifts[kind, key or ""]
        return {
            "customer_id": customers[customer.key],
            "key": template.key,
            "name": template.name,
            "product_id": products[gift.key] if kind == "product" else None,
            "collection_id": collections[gift.key] if kind == "collection" else None,
            "gift_name": gift.name,
            "value_minor": template.value_minor,
            "currency": gift.currency,
            "country": template.country,
            "wrapping_key": template.wrapping_key,
            "from_name": template.from_name,
            "message": template.message,
            "expiry_after_days": template.expiry_after_days,
        }

    owned = [(customer, template) for customer in world.customers for template in customer.templates]
    rows = [NewRow(template.place, values(customer, template)) for customer, template in owned]
    saved = await save(connection, save_templates, rows)
    ids = {(customer.key, template.key): n for (customer, template), n in zip(owned, saved.ids, strict=True)}
    return ids, _left_to_people("template", rows, saved)


async def _save_accounts(
    connection: Connection, chain: Chain, world: SeedFile, customers: _Ids, service_accounts: _OwnIds
) -> _OwnIds:
    owned = [(customer, account) for customer in world.customers for account in customer.funding_accounts]
    rows = [
        NewRow(
            account.place,
            {
                "customer_id": customers[customer.key],
                "key": account.key,
                "kind": "funding",
                "name": account.name,
                "is_master": account.master,
                "open_to_all": account.service_accounts is None,
                "currency": account.currency,
                "environment": account.environment,
            },
        )
        for customer, account in owned
    ]
    saved = await save(connection, save_accounts, rows)
    assigned = [
        (customers[customer.key], account_id, service_accounts[customer.key, key])
        for (customer, account), account_id in zip(owned, saved.ids, strict=True)
        for key in account.service_accounts or ()
    ]
    await assign(connection, saved.ids, assigned)
    for (_, account), account_id, created in zip(owned, saved.ids, saved.created, strict=True):
        if created and account.balance_minor:
            await top_up(connection, chain, account_id, account.balance_minor, None)
    return {(customer.key, account.key): n for (customer, account), n in zip(owned, saved.ids, strict=True)}


async def _unfunded(connection: Connection, world: SeedFile, service_accounts: _OwnIds) -> list[str]:
    """What to say of service accounts that can send nothing: no funding account is theirs."""
    found = dict(await list_unfunded(connection, list(service_accounts.values())))
    return [
        account.place.mistake(
            "key",
            f"the customer pays from a balance, but no funding account in {' or '.join(found[account_id])} is open to the "
            f"service account {account.key!r}: it cannot send",
        )
        for customer in world.customers
        for account in customer.service_accounts
        if (account_id := service_accounts[customer.key, account.key]) in found
    ]


def _left_to_people(what: str, rows: Sequence[NewRow], saved: Saved) -> list[str]:
    """What to say of those that people have changed or removed since, and that stay so."""
    return [
        row.place.mistake(
            "key",
            f"the {what} {row.values['key']!r} was changed or removed in the web application and stays as it is there: "
            "take it out of the file, or give this one another key",
        )
        for row, kept in zip(rows, saved.kept, strict=True)
        if kept
    ]


def _by_name(ids: _OwnIds) -> _Ids:
    names = _names(ids)
    return {names[own]: n for own, n in ids.items()}


def _names(keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What belongs to a customer, by its key where that is unique, else as `customer/key`."""
    keys = list(keys)
    uses = Counter(key for _, key in keys)
    return {(customer, key): key if uses[key] == 1 else f"{customer}/{key}" for customer, key in keys}
