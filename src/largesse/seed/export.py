"""Writes a seed file from the database, with its pictures. If you load it into an empty database and export that, you get the same file."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from largesse.base.confidential import Confidential
from largesse.base.errors import OperatorError
from largesse.base.money import to_decimal
from largesse.catalogue.model import STOCK, Collection, Product, ProductReader, can_be_sent, collection_from_row
from largesse.catalogue.pictures import read_content
from largesse.customers.actor import Actor
from largesse.db.pool import Connection, Row
from largesse.seed.reading import MAX_BYTES

_HEAD = "# Written by `largesse export`. docs/seed-file.md explains every field. API keys get new secrets when they are loaded.\n"
_FOLDER = "pictures"
# Texts that need no quotes in YAML. All others are written as JSON.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?: [A-Za-z0-9_-]+)*")
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n"])
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}
_POSTAGE = msgspec.json.Decoder(dict[str, int])
_VAT = msgspec.json.Decoder(dict[str, Decimal])

# The objects that a seed file describes, in the order in which a load would create them again.
_CUSTOMERS = "SELECT id, key, name, plan, funding, managed FROM customers ORDER BY id"
_USERS = "SELECT customer_id, email, name, role, is_active FROM users ORDER BY customer_id, id"
_SERVICE_ACCOUNTS = """
    SELECT customer_id, id, key, name, active, limits IS NOT NULL AS is_limited FROM service_accounts ORDER BY customer_id, id
"""
_API_KEYS = """
    SELECT customer_id, key, service_account_id, environment, coalesce(scopes::text, networks::text) IS NOT NULL AS is_narrowed
    FROM api_keys WHERE deleted_at IS NULL ORDER BY customer_id, id
"""
# Open funding accounts, with their current balances.
_ACCOUNTS = """
    SELECT a.customer_id, a.id, a.key, a.name, a.is_master, a.open_to_all, a.currency, a.environment, a.balance_minor,
           ARRAY(SELECT s.service_account_id FROM account_service_accounts s
                 WHERE s.customer_id = a.customer_id AND s.account_id = a.id ORDER BY s.service_account_id) AS service_account_ids
    FROM accounts a WHERE a.kind = 'funding' AND a.closed_at IS NULL ORDER BY a.customer_id, a.id
"""
_TEMPLATES = """
    SELECT customer_id, key, name, product_id, collection_id, value_minor, currency, country, wrapping_key, from_name, message,
           expiry_after_days
    FROM templates WHERE removed_at IS NULL ORDER BY customer_id, id
"""
_PRODUCTS = """
    SELECT id, key, name, is_digital, currency, countries, denominations_minor, min_amount_minor, max_amount_minor, cost_minor,
           markup_percent, postage_minor, vat_percent, customer_ids, active, picture, description, how_to_redeem, terms, suppliers, managed
    FROM products ORDER BY id
"""
_COLLECTIONS = """
    SELECT id, key, customer_id, name, country, currency, value_minor, value_points_minor, allow_custom_value, product_ids, active, managed
    FROM collections ORDER BY id
"""
_OWNED = {
    "templates": _TEMPLATES,
    "api_keys": _API_KEYS,
    "accounts": _ACCOUNTS,
    "service_accounts": _SERVICE_ACCOUNTS,
    "users": _USERS,
}

# The rows of customers, products and collections, and those of customers by their kind.
_Read = tuple[Sequence[Row], Sequence[Row], Sequence[Row], Mapping[str, Sequence[Row]]]
_Fields = Mapping[str, object]  # the fields of an object; None for one that is left out


class Exported(Confidential, frozen=True):
    """A seed file, the names of the pictures it refers to, and a sentence for each kind of object that it leaves out."""

    content: str
    pictures: Sequence[str]
    left_out: Sequence[str]


async def export_seed(actor: Actor, output: Path | None = None) -> Exported:
    """Exports the database as a seed file, and records the export in the audit log. With `output`, writes the file and, beside it, its pictures.

    Raises OperatorError if the file cannot be written, or would be larger than a seed file may be.
    """
    async with actor.transaction() as transaction:
        rows = await _read(transaction.connection)
    # Describing many customers takes longer than a transaction may be idle.
    exported = _Exporter(*rows).export()
    if len(exported.content.encode()) > MAX_BYTES:
        raise OperatorError(f"the seed file would have more than {MAX_BYTES // 2**20} MiB: use a backup instead")
    async with actor.transaction() as transaction:
        if output is not None:
            try:
                await _write(transaction.connection, exported, output)
            except OSError as error:
                raise OperatorError(f"{output}: {error.strerror or error}") from None
        await transaction.record("world.exported", "seed file", after={"bytes": len(exported.content)})
    return exported


async def _write(connection: Connection, exported: Exported, output: Path) -> None:
    file = _replaceable(output)
    if exported.pictures:
        (output.parent / _FOLDER).mkdir(exist_ok=True)
    for name in exported.pictures:
        content = await read_content(connection, name)
        if content is not None:
            (output.parent / _FOLDER / name).write_bytes(content)
    unfinished = file.with_name(f"{file.name}.unfinished")
    unfinished.write_text(exported.content, encoding="utf-8")
    unfinished.replace(file)


def _replaceable(output: Path) -> Path:
    """Returns the file to replace: for a link, the file that it points to. Raises OperatorError for a device or a pipe."""
    if output.exists() and not output.is_file():
        raise OperatorError(f"{output} is not a regular file: without --output the seed file goes to standard output")
    return output.resolve()


async def _read(connection: Connection) -> _Read:
    """Reads objects before those they refer to. As these are never deleted, each reference then finds its object."""
    owned = {name: await connection.fetch(statement) for name, statement in _OWNED.items()}
    collections = await connection.fetch(_COLLECTIONS)
    products = await connection.fetch(_PRODUCTS)
    customers = await connection.fetch(_CUSTOMERS)
    return customers, products, collections, owned


class _Exporter:
    """Describes the rows of a database as the objects of a seed file."""

    def __init__(
        self,
        customers: Sequence[Row],
        products: Sequence[Row],
        collections: Sequence[Row],
        owned: Mapping[str, Sequence[Row]],
    ) -> None:
        read = ProductReader()
        self._customers, self._products = customers, products
        self._collections = [row for row in collections if "/" not in row["key"] and row["product_ids"]]
        self._customer_keys = {row["id"]: row["key"] for row in customers}
        self._product_keys = {row["id"]: row["key"] for row in products}
        self._collection_keys = {row["id"]: row["key"] for row in self._collections}
        self._gifts: dict[int, Product] = {row["id"]: read(row) for row in products}
        self._choices: dict[int, Collection] = {row["id"]: collection_from_row(row) for row in self._collections}
        self._owned = {name: _by_customer(rows) for name, rows in owned.items()}
        self._made_by_people = len(collections) - len(self._collections)
        self._unfit: list[str] = []

    def export(self) -> Exported:
        """Returns the seed file."""
        parts = [
            _HEAD,
            _list("customers", map(self._customer, self._customers)),
            _list("products", map(self._product, self._products)),
            _list("collections", map(self._collection, self._collections)),
        ]
        left_out = list(self._unfit)
        if self._made_by_people:
            left_out.append(
                f"{self._made_by_people} templates and collections that people made in the web application: they are the customers' own"
            )
        pictures = sorted({row["picture"] for row in self._products if row["picture"]})
        return Exported("\n".join(part for part in parts if part), pictures, left_out)

    def _customer(self, row: Row) -> _Fields:
        own = {name: rows.get(row["id"], []) for name, rows in self._owned.items()}
        service_accounts = {account["id"]: account["key"] for account in own["service_accounts"]}
        self._unfit += _unlimited(row["key"], own)
        return {
            "key": row["key"],
            "name": row["name"],
            "plan": row["plan"],
            "funding": row["funding"],
            "managed": _managed(row),
            "users": [_user(user) for user in own["users"]],
            "service_accounts": [_service_account(account) for account in own["service_accounts"]],
            "api_keys": [
                {
                    "key": key["key"],
                    "service_account": service_accounts[key["service_account_id"]],
                    "environment": key["environment"],
                }
                for key in own["api_keys"]
            ],
            "funding_accounts": [_account(account, service_accounts) for account in own["accounts"]],
            "templates": [one for template in own["templates"] if (one := self._template(row, template)) is not None],
        }

    def _template(self, customer: Row, row: Row) -> _Fields | None:
        """Describes a template. Returns None if the file cannot: people of the customer made it, or its gift is no longer sold like this."""
        if "/" in row["key"]:
            self._made_by_people += 1
            return None
        if not self._can_be_sent(row):
            self._unfit.append(
                f"the template {row['key']!r} of {customer['key']!r}: its gift is no longer sold like this"
            )
            return None
        by_collection = row["collection_id"] is not None
        return {
            "key": row["key"],
            "name": row["name"],
            "product": self._product_keys.get(row["product_id"]),
            "collection": self._collection_keys.get(row["collection_id"]),
            "value": _amount(row["value_minor"], row["currency"]),
            "country": None if by_collection else row["country"],
            **{name: row[name] for name in ("wrapping_key", "from_name", "message", "expiry_after_days")},
        }

    def _can_be_sent(self, row: Row) -> bool:
        gift = self._gifts.get(row["product_id"]) or self._choices.get(row["collection_id"])
        return gift is not None and can_be_sent(
            gift, row["customer_id"], row["country"] or "", row["currency"], row["value_minor"]
        )

    def _product(self, row: Row) -> _Fields:
        currency, is_digital = row["currency"], row["is_digital"]
        customers = row["customer_ids"]
        postage, vat = _POSTAGE.decode(row["postage_minor"]), _VAT.decode(row["vat_percent"])
        return {
            "key": row["key"],
            "name": row["name"],
            "digital": is_digital,
            "currency": currency,
            "countries": list(row["countries"]) if is_digital else None,
            "denominations": [_amount(minor, currency) for minor in row["denominations_minor"]] or None,
            "min_amount": _amount(row["min_amount_minor"], currency),
            "max_amount": _amount(row["max_amount_minor"], currency),
            "cost": _amount(row["cost_minor"], currency),
            "markup_percent": _percent(row["markup_percent"]) if row["markup_percent"] else None,
            "postage": {country: _amount(minor, currency) for country, minor in postage.items()} or None,
            "vat_percent": {country: _percent(percent) for country, percent in vat.items()} or None,
            "customers": None if customers is None else [self._customer_keys[one] for one in customers],
            "active": None if row["active"] else False,
            "picture": row["picture"] and f"{_FOLDER}/{row['picture']}",
            **{name: row[name] for name in ("description", "how_to_redeem", "terms")},
            "suppliers": None if list(row["suppliers"]) == [STOCK] else list(row["suppliers"]),
            "managed": _managed(row),
        }

    def _collection(self, row: Row) -> _Fields:
        currency = row["currency"]
        return {
            "key": row["key"],
            "customer": None if row["customer_id"] is None else self._customer_keys[row["customer_id"]],
            "name": row["name"],
            "country": row["country"],
            "currency": currency,
            "value": _amount(row["value_minor"], currency),
            "value_points": [_amount(minor, currency) for minor in row["value_points_minor"]] or None,
            "allow_custom_value": row["allow_custom_value"] or None,
            "products": [self._product_keys[one] for one in row["product_ids"]],
            "active": None if row["active"] else False,
            "managed": _managed(row),
        }


def _by_customer(rows: Sequence[Row]) -> dict[int, list[Row]]:
    by_customer: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_customer[row["customer_id"]].append(row)
    return by_customer


def _unlimited(customer: str, own: Mapping[str, Sequence[Row]]) -> list[str]:
    """Returns the limits of service accounts and API keys of a customer that the file cannot contain, so that a load removes them."""
    accounts = [row["key"] for row in own["service_accounts"] if row["is_limited"]]
    keys = [row["key"] for row in own["api_keys"] if row["is_narrowed"]]
    return [
        *(f"the limits of the service account {one!r} of {customer!r}: once loaded, it has none" for one in accounts),
        *(
            f"the scopes and networks of the API key {one!r} of {customer!r}: once loaded, it is for everything and from everywhere"
            for one in keys
        ),
    ]


def _user(row: Row) -> _Fields:
    return {
        "email": row["email"],
        "name": row["name"],
        "role": row["role"],
        "active": None if row["is_active"] else False,
    }


def _service_account(row: Row) -> _Fields:
    return {"key": row["key"], "name": row["name"], "active": None if row["active"] else False}


def _account(row: Row, service_accounts: Mapping[int, str]) -> _Fields:
    return {
        "key": row["key"],
        "name": row["name"],
        "master": row["is_master"] or None,
        "currency": row["currency"],
        "environment": row["environment"],
        "balance": _amount(row["balance_minor"], row["currency"]) if row["balance_minor"] > 0 else None,
        "service_accounts": None
        if row["open_to_all"]
        else [service_accounts[one] for one in row["service_account_ids"]],
    }


def _managed(row: Row) -> str | None:
    return None if row["managed"] == "file" else "office"


def _amount(minor: int | None, currency: str) -> Decimal | None:
    return None if minor is None else to_decimal(minor, currency)


def _percent(percent: Decimal) -> Decimal:
    return percent.normalize()


def _list(name: str, objects: Iterable[_Fields]) -> str:
    """Returns the YAML of a list of the top level; empty if it has no objects."""
    lines = [line for one in objects for line in _block(one)]
    return "\n".join([f"{name}:", *lines, ""]) if lines else ""


def _block(fields: _Fields) -> list[str]:
    """Returns the YAML lines of an object: one for each field, and one for each object in its lists."""
    lines: list[str] = []
    for name, value in fields.items():
        lead = "    " if lines else "  - "
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{lead}{name}:", *(f"      - {_written(one)}" for one in value)]
        elif value is not None and (value != [] or name == "products"):
            lines.append(f"{lead}{name}: {_written(value)}")
    return lines


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_written(one)}" for name, one in value.items() if one is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_ESCAPES.get(char) or _character(char) for char in text) + '"'


def _character(char: str) -> str:
    """Returns a printable character as it is, and any other as its escape: a line separator would be a line break in YAML."""
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
