"""Loads a seed file into the database, all of it or nothing."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from largesse.automations.service import ending_approvals, start_over
from largesse.base.confidential import Confidential
from largesse.base.email import email_key
from largesse.base.errors import OperatorError
from largesse.catalogue.pictures import save_pictures
from largesse.catalogue.store import COLLECTIONS, PRODUCTS
from largesse.customers import customer_store
from largesse.customers.actor import Actor
from largesse.customers.authenticator import new_secret, secret_hash
from largesse.customers.key_store import deleted_keys
from largesse.customers.members import unbind_user
from largesse.db.pool import Connection
from largesse.db.statements import FixedColumn, Saved, Table, Values
from largesse.encryption.chain import Chain
from largesse.jobs.outbox import mail_users
from largesse.ledger import store as ledger_store
from largesse.ledger.payment_sources import names_account
from largesse.ledger.posting import top_up
from largesse.seed.document import (
    ApiKey,
    Collection,
    Customer,
    FundingAccount,
    Product,
    SeedFile,
    ServiceAccount,
    Template,
    User,
)
from largesse.seed.fields import SeedErrors
from largesse.templates.store import TEMPLATES

_ONE_LOAD_AT_A_TIME = 7_526_913_001  # the key of an advisory lock
# Columns whose field has another name.
_FIELDS = {"customer_id": "customer", "is_digital": "digital", "service_account_id": "service_account"}

_Ids = dict[str, int]
_OwnIds = dict[tuple[str, str], int]  # ids by the customer's key and the object's key
_Described = ApiKey | Collection | Customer | FundingAccount | Product | ServiceAccount | Template | User
_IN_APP = "was changed or removed in the web application and stays as it is there: take it out of the file, or give this one another key"
_IN_OFFICE = "is managed in the office and stays as it is there: take it out of the file, or bring the file up to date with `largesse export`"
_IN_OFFICE_OR_APP = (
    "was changed in the web application or is managed in the office, and stays as it is there: take it out of the file"
)
_STAYS_INACTIVE = "was removed or switched off and stays so: take it out of the file, or write `active: true`"
_CUSTOMER_IN_OFFICE = "stays as it is: its customer is managed in the office"
_LOCK = "SELECT pg_advisory_xact_lock($1)"
_CURRENCIES = "SELECT code FROM currencies"


class LoadedSeed(Confidential, frozen=True):
    """The ids of all objects of a seed file, the secrets of the API keys that this load made, and its warnings.

    An object of a customer is named by its key, or as `customer/key` if two customers use the same key, or it has a slash.
    """

    ids: Mapping[str, Mapping[str, int]]
    api_keys: Mapping[str, str]  # the secrets by key, which the operator sees only once
    warnings: Sequence[str] = ()  # each with its place in the file
    new_users: Sequence[int] = ()  # ids of the active people whom this load added or activated again
    moved: Sequence[tuple[int, int, User]] = ()  # those, and the removed ones, by the ids of customer and user

    def to_json(self) -> str:
        """Returns everything as one JSON object, with the secrets. It has `warnings` only if there are any."""
        content: dict[str, object] = {"ids": self.ids, "api_keys": self.api_keys}
        if self.warnings:
            content["warnings"] = list(self.warnings)
        return json.dumps(content, indent=2, ensure_ascii=False)


async def load_file(actor: Actor, seed: SeedFile, *, invites: bool) -> LoadedSeed:
    """Loads a seed file as `load_seed` does, and records it. With `invites` new people get an invitation by mail."""
    async with actor.transaction() as transaction:
        loaded = await load_seed(transaction.connection, transaction.entries, seed)
        for customer_id, user_id, user in loaded.moved:
            here = transaction.on_behalf_of(customer_id)
            if user.active:
                await start_over(here, user_id)
                await here.record("person.invited", user.email, after={"role": user.role})
            else:
                await here.record("person.removed", user.email)
        counts = {kind: len(ids) for kind, ids in loaded.ids.items()} | {"api_keys": len(loaded.api_keys)}
        if invites:
            counts["invitations"] = len(loaded.new_users)
            await mail_users(transaction.connection, "invitation", loaded.new_users)
        await transaction.record("world.loaded", f"file {seed.file}"[:200], after=counts)
    return loaded


async def load_seed(connection: Connection, chain: Chain, seed: SeedFile) -> LoadedSeed:
    """Creates or updates what a seed file describes, in one transaction. It deletes nothing, and can be repeated.

    Opening balances become entries of the ledger's `chain`.

    Raises OperatorError, with the place in the file, for an unknown currency, and for a change of a field that cannot change.
    """
    loader = _Loader(connection, seed)
    async with connection.transaction():
        await connection.execute(_LOCK, _ONE_LOAD_AT_A_TIME)
        await loader.check_currencies()
        await loader.save_customers()
        await loader.save_users()
        await loader.save_service_accounts()
        await loader.save_products()
        await loader.save_collections()
        async with ending_approvals(connection, loader.customers.values()):
            templates = await loader.save_templates()
        accounts = await loader.save_accounts(chain)
        secrets = await loader.save_api_keys()
        await loader.warn_of_unfunded()
        await loader.warn_of_unspendable()
    ids = {
        "products": loader.products,
        "collections": loader.collections,
        "templates": _by_name(templates),
        "funding_accounts": _by_name(accounts),
        "customers": loader.customers,
        "service_accounts": _by_name(loader.service_accounts),
    }
    names = _names((customer.key, api_key.key) for customer in seed.customers for api_key in customer.api_keys)
    made = {names[own]: secret for own, secret in secrets.items()}
    return LoadedSeed(ids, made, loader.warnings, loader.new_users, loader.moved)


class _Loader:
    """Saves a seed file list by list, each after the lists that it refers to."""

    def __init__(self, connection: Connection, seed: SeedFile) -> None:
        self._connection = connection
        self._seed = seed
        self.warnings: list[str] = []
        self.new_users: list[int] = []
        self.moved: list[tuple[int, int, User]] = []
        self.customers: _Ids = {}
        self._known: list[int] = []  # ids of customers that existed before
        self._written: list[Customer] = []  # customers that are now as in the file
        self.service_accounts: _OwnIds = {}
        self.products: _Ids = {}
        self.collections: _Ids = {}

    async def check_currencies(self) -> None:
        """Raises OperatorError for each currency that the database does not have."""
        known = {row["code"] for row in await self._connection.fetch(_CURRENCIES)}
        errors = SeedErrors(self._seed.file)
        priced: list[Product | Collection | FundingAccount] = [*self._seed.products, *self._seed.collections]
        priced += [account for customer in self._seed.customers for account in customer.funding_accounts]
        for one in priced:
            if one.currency not in known:
                errors.note(one.place, "currency", f"{one.currency} is no currency in use (ISO 4217)")
        errors.refuse_any()

    async def save_customers(self) -> None:
        customers = self._seed.customers
        rows = [_values(customer_store.CUSTOMERS, customer) for customer in customers]
        saved = await self._save(customer_store.CUSTOMERS, customers, rows, "customer", _IN_OFFICE)
        self.customers = {customer.key: n for customer, n in zip(customers, saved.ids, strict=True)}
        self._known = [n for n, is_new in zip(saved.ids, saved.created, strict=True) if not is_new]
        self._written = [customer for customer, skip in zip(customers, saved.protected, strict=True) if not skip]

    async def save_users(self) -> None:
        removed = await customer_store.inactive_users(self._connection, self._known) if self._known else set()
        owned = [(customer, user) for customer in self._seed.customers for user in customer.users]
        rows = [
            _values(
                customer_store.USERS,
                user,
                customer_id=self.customers[customer.key],
                is_active=self._is_active(customer, user, email_key(user.email), removed),
            )
            for customer, user in owned
        ]
        saved = await self._save(customer_store.USERS, [user for _, user in owned], rows, "person", _CUSTOMER_IN_OFFICE)
        found = zip(owned, saved.ids, rows, saved.created, saved.protected, strict=True)
        for (customer, user), user_id, row, is_new, skip in found:
            customer_id, is_active = self.customers[customer.key], bool(row["is_active"])
            was_removed = (customer_id, email_key(user.email)) in removed
            if skip or (not is_new and is_active != was_removed):
                continue
            if not is_new:  # as on the page People: nobody comes back to what they had
                await unbind_user(
                    self._connection, customer_id, user_id, ledger_store.take_all_accounts, is_active=is_active
                )
                self.moved.append((customer_id, user_id, user))
            if is_active:
                self.new_users.append(user_id)

    async def save_service_accounts(self) -> None:
        owned = [(customer, account) for customer in self._seed.customers for account in customer.service_accounts]
        off = await customer_store.inactive_service_accounts(self._connection, self._known) if self._known else set()
        rows = [
            _values(
                customer_store.SERVICE_ACCOUNTS,
                one,
                customer_id=self.customers[customer.key],
                active=self._is_active(customer, one, one.key, off),
            )
            for customer, one in owned
        ]
        accounts = [account for _, account in owned]
        saved = await self._save(
            customer_store.SERVICE_ACCOUNTS, accounts, rows, "service account", _CUSTOMER_IN_OFFICE
        )
        self.service_accounts = {(c.key, one.key): n for (c, one), n in zip(owned, saved.ids, strict=True)}

    def _is_active(
        self, customer: Customer, one: User | ServiceAccount, name: str, inactive: set[tuple[int, str]]
    ) -> bool:
        """Returns whether the person or service account is active: as the file says, otherwise as now, with a warning if inactive."""
        if one.active is not None:
            return one.active
        is_off = (self.customers[customer.key], name) in inactive
        if is_off and customer in self._written:
            self._warn(one, f"{name!r} {_STAYS_INACTIVE}")
        return not is_off

    async def save_products(self) -> None:
        products = self._seed.products
        await save_pictures(self._connection, [product.picture for product in products if product.picture])
        rows = [self._product_values(product) for product in products]
        saved = await self._save(PRODUCTS, products, rows, "product", _IN_OFFICE)
        self.products = {product.key: n for product, n in zip(products, saved.ids, strict=True)}

    def _product_values(self, product: Product) -> Values:
        return _values(
            PRODUCTS,
            product,
            is_digital=product.digital,
            markup_percent=None if product.digital else str(product.markup_percent),
            postage_minor=dict(product.postage_minor),
            # It has so few digits that the shortest text of the float is the number itself.
            vat_percent={country: float(percent) for country, percent in product.vat_percent.items()},
            customer_ids=None
            if product.customers is None
            else sorted(self.customers[key] for key in product.customers),
            picture=product.picture.name if product.picture else None,
        )

    async def save_collections(self) -> None:
        collections = self._seed.collections
        rows = [
            _values(
                COLLECTIONS,
                one,
                customer_id=None if one.customer is None else self.customers[one.customer],
                product_ids=[self.products[key] for key in one.products],
            )
            for one in collections
        ]
        saved = await self._save(COLLECTIONS, collections, rows, "collection", _IN_OFFICE_OR_APP)
        self.collections = {one.key: n for one, n in zip(collections, saved.ids, strict=True)}

    async def save_templates(self) -> _OwnIds:
        owned = [(customer, template) for customer in self._seed.customers for template in customer.templates]
        products = {product.key: product for product in self._seed.products}
        collections = {collection.key: collection for collection in self._seed.collections}

        def values(customer: Customer, template: Template) -> Values:
            gift = products[template.product] if template.product else collections[template.collection or ""]
            return _values(
                TEMPLATES,
                template,
                customer_id=self.customers[customer.key],
                product_id=self.products[template.product] if template.product else None,
                collection_id=self.collections[template.collection] if template.collection else None,
                gift_name=gift.name,
                currency=gift.currency,
            )

        rows = [values(*one) for one in owned]
        saved = await self._save(TEMPLATES, [template for _, template in owned], rows, "template", _IN_APP)
        return {(c.key, one.key): n for (c, one), n in zip(owned, saved.ids, strict=True)}

    async def save_accounts(self, chain: Chain) -> _OwnIds:
        owned = [(customer, account) for customer in self._seed.customers for account in customer.funding_accounts]
        rows = [
            _values(
                ledger_store.ACCOUNTS,
                account,
                customer_id=self.customers[customer.key],
                kind="funding",
                is_master=account.master,
                open_to_all=account.service_accounts is None,
            )
            for customer, account in owned
        ]
        accounts = [account for _, account in owned]
        saved = await self._save(ledger_store.ACCOUNTS, accounts, rows, "funding account", _CUSTOMER_IN_OFFICE)
        assigned = [
            (self.customers[customer.key], account_id, self.service_accounts[customer.key, key])
            for (customer, account), account_id, skip in zip(owned, saved.ids, saved.protected, strict=True)
            if not skip
            for key in account.service_accounts or ()
        ]
        written = [account_id for account_id, skip in zip(saved.ids, saved.protected, strict=True) if not skip]
        await ledger_store.assign(self._connection, written, assigned)
        for (_, account), account_id, is_new in zip(owned, saved.ids, saved.created, strict=True):
            if is_new and account.balance_minor:
                await top_up(self._connection, chain, account_id, account.balance_minor, None)
        return {(c.key, one.key): n for (c, one), n in zip(owned, saved.ids, strict=True)}

    async def save_api_keys(self) -> dict[tuple[str, str], str]:
        """Makes the keys that are missing and were not deleted. Returns their secrets by the keys of customer and API key."""
        described = [(customer, api_key) for customer in self._seed.customers for api_key in customer.api_keys]
        deleted = await deleted_keys(self._connection, [(self.customers[c.key], one.key) for c, one in described])
        owned, rows, secrets = [], [], []
        for customer, api_key in described:
            if at := deleted.get((self.customers[customer.key], api_key.key)):
                self._warn(
                    api_key,
                    f"the API key {api_key.key!r} was deleted on {at:%Y-%m-%d} and stays deleted: take it out of "
                    "the file, or give the new one another key",
                )
                continue
            secret = new_secret(api_key.environment)
            owned.append((customer, api_key))
            secrets.append(secret)
            rows.append(
                _values(
                    customer_store.API_KEYS,
                    api_key,
                    customer_id=self.customers[customer.key],
                    service_account_id=self.service_accounts[customer.key, api_key.service_account],
                    hash="\\x" + secret_hash(secret).hex(),
                )
            )
        saved = await self._save(customer_store.API_KEYS, [api_key for _, api_key in owned], rows)
        made = zip(owned, secrets, saved.created, strict=True)
        return {(customer.key, api_key.key): secret for (customer, api_key), secret, is_new in made if is_new}

    async def warn_of_unfunded(self) -> None:
        """Warns of service accounts that cannot send, since no funding account is open to them."""
        found = dict(await ledger_store.list_unfunded(self._connection, list(self.service_accounts.values())))
        for customer in self._seed.customers:
            for account in customer.service_accounts:
                environments = found.get(self.service_accounts[customer.key, account.key])
                if environments:
                    self._warn(
                        account,
                        f"the customer pays from a balance, but no funding account in {' or '.join(environments)} is open "
                        f"to the service account {account.key!r}: it cannot send",
                    )

    async def warn_of_unspendable(self) -> None:
        """Warns of invoiced customers whose accounts hold money."""
        invoiced = [customer for customer in self._written if not names_account(customer.funding)]
        accounts = defaultdict(list)
        keys = [customer.key for customer in invoiced]
        for account in await ledger_store.list_accounts(self._connection, keys) if keys else ():
            accounts[account.customer].append(account)
        for customer in invoiced:
            if held := ledger_store.unspendable(accounts[customer.key], customer.funding):
                self._warn(customer, ledger_store.warn_of_unspendable(customer.key, held, "`funding: balance`"))

    def _warn(self, described: _Described, text: str) -> None:
        self.warnings.append(described.place.mistake("email" if isinstance(described, User) else "key", text))

    async def _save(
        self, table: Table, described: Sequence[_Described], rows: Sequence[Values], what: str = "", why: str = ""
    ) -> Saved:
        """Adds the rows that are missing and updates those that differ. `described` are the objects of the rows.

        Warns of objects that differ but stay as they are, as people or the office changed them. `why` says so, and what to do.
        Raises OperatorError, with the place in the file, for a change of a column that cannot change.
        """
        try:
            saved = await table.save(self._connection, rows)
        except FixedColumn as fixed:
            was = f", and is {fixed.was}" if isinstance(fixed.was, str) else ""
            field = _FIELDS.get(fixed.column, fixed.column)
            place = described[fixed.place].place
            raise OperatorError(place.mistake(field, f"cannot change once it is loaded{was}")) from None
        for one, is_changed in zip(described, saved.unchanged, strict=True):
            if is_changed and why:
                self._warn(one, f"the {what} {one.email if isinstance(one, User) else one.key!r} {why}")
        return saved


def _values(table: Table, described: object, **others: object) -> Values:
    """Returns the values of a row: the fields of the object that have the name of a column, and the other values."""
    return {name: getattr(described, name) for name in table.columns if hasattr(described, name)} | others


def _by_name(ids: _OwnIds) -> _Ids:
    names = _names(ids)
    return {names[own]: n for own, n in ids.items()}


def _names(keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Returns the names of objects of customers: the key if it is unique and has no slash, else `customer/key`. No two have the same name."""
    keys = list(keys)
    uses = Counter(key for _, key in keys)
    return {
        (customer, key): key if uses[key] == 1 and "/" not in key else f"{customer}/{key}" for customer, key in keys
    }
