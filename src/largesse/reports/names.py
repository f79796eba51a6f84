"""The names of the subjects of the audit log. The log stores ids; people read names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import msgspec

from largesse.db.pool import Connection

_WITH_ID = re.compile(r"(account|service account|API key|template|collection|budget) ([0-9]{1,9})")
_MOST_FOUND = 200  # subjects that a search by name returns


class Names(msgspec.Struct, frozen=True):
    """The names of subjects, such as `account 3` or an e-mail address, and of people by their id; and the currencies of accounts and orders."""

    subjects: dict[str, str] = {}
    people: dict[int, str] = {}
    currencies: dict[str, str] = {}

    def add(self, other: Names) -> None:
        """Adds the other names."""
        self.subjects.update(other.subjects)
        self.people.update(other.people)
        self.currencies.update(other.currencies)


async def read_account_names(connection: Connection, account_ids: Collection[int]) -> Names:
    """Returns the names and currencies of accounts of any customers. Skips those without a name."""
    names = Names()
    for row in await connection.fetch(_ACCOUNTS, list(account_ids)):
        subject = f"account {row['id']}"
        names.currencies[subject] = row["currency"]
        if row["name"]:
            names.subjects[subject] = row["name"]
    return names


async def read_order_currencies(
    connection: Connection, customers: Collection[str], references: Collection[str]
) -> dict[str, str]:
    """Returns the currencies of orders of any customers, by their subjects. `customers` are the keys of their customers."""
    rows = await connection.fetch(_ORDERS, list(customers), list(references))
    return {f"order {row['reference']}": row["currency"] for row in rows}


_ORDERS = """
    SELECT o.reference, o.currency FROM customers c JOIN orders o ON o.customer_id = c.id
    WHERE c.key = ANY($1::text[]) AND o.reference = ANY($2::text[])
    """
_ACCOUNTS = "SELECT id, name, currency FROM accounts WHERE id = ANY($1::int[])"


async def read_names(
    connection: Connection, customer_id: int, subjects: Iterable[str], user_ids: Collection[int]
) -> Names:
    """Returns the names of subjects of a customer, in the transaction's environment. Skips those without a name."""
    subjects = set(subjects)
    ids: dict[str, list[int]] = {
        kind: [] for kind in ("account", "service account", "API key", "template", "collection", "budget")
    }
    for found in filter(None, map(_WITH_ID.fullmatch, subjects)):
        ids[found[1]].append(int(found[2]))
    names = Names()
    rows = await connection.fetch(
        _NAMES,
        customer_id,
        *ids.values(),
        [one.removeprefix("order ") for one in subjects if one.startswith("order ")],
        [one.removeprefix("subscription ") for one in subjects if one.startswith("subscription ")],
        [one.lower() for one in subjects if "@" in one],
        list(user_ids),
    )
    for row in rows:
        if row["name"]:
            names.subjects[row["subject"]] = row["name"]
        if row["currency"]:
            names.currencies[row["subject"]] = row["currency"]
        if row["user_id"]:
            names.people[row["user_id"]] = row["name"]
    # People are known by their address, whatever its letter case.
    by_lower = {subject.lower(): name for subject, name in names.subjects.items() if "@" in subject}
    names.subjects.update({one: by_lower[one.lower()] for one in subjects if one.lower() in by_lower})
    return names


_NAMES = """
    SELECT 'account ' || id AS subject, name, currency, NULL::int AS user_id FROM accounts
    WHERE customer_id = $1 AND id = ANY($2::int[])
    UNION ALL
    SELECT 'service account ' || id, name, NULL, NULL FROM service_accounts WHERE customer_id = $1 AND id = ANY($3::int[])
    UNION ALL
    SELECT 'API key ' || id, key, NULL, NULL FROM api_keys WHERE customer_id = $1 AND id = ANY($4::int[])
    UNION ALL
    SELECT 'template ' || id, name, NULL, NULL FROM templates WHERE customer_id = $1 AND id = ANY($5::int[])
    UNION ALL
    SELECT 'collection ' || id, name, NULL, NULL FROM collections WHERE customer_id = $1 AND id = ANY($6::int[])
    UNION ALL
    SELECT 'budget ' || id, name, currency, NULL FROM budgets WHERE customer_id = $1 AND id = ANY($7::int[])
    UNION ALL
    SELECT 'order ' || reference, nullif(external_reference, reference), currency, NULL FROM orders
    WHERE customer_id = $1 AND reference = ANY($8::text[])
    UNION ALL
    SELECT 'subscription ' || id, target_url, NULL, NULL FROM webhook_subscriptions
    WHERE customer_id = $1 AND id::text = ANY($9::text[])
    UNION ALL
    SELECT email, name, NULL, id FROM users
    WHERE customer_id = $1 AND (lower(email) = ANY($10::text[]) OR id = ANY($11::int[]))
"""


async def find_subjects(connection: Connection, customer_id: int, words: str) -> list[str]:
    """Returns the subjects of a customer whose name contains a text, letter case ignored, in the transaction's environment."""
    rows = await connection.fetch(_FOUND, customer_id, words, _MOST_FOUND)
    return [row["subject"] for row in rows]


_FOUND = """
    SELECT subject FROM (
        SELECT 'account ' || id AS subject, name FROM accounts WHERE customer_id = $1
        UNION ALL
        SELECT 'service account ' || id, name FROM service_accounts WHERE customer_id = $1
        UNION ALL
        SELECT 'API key ' || id, key FROM api_keys WHERE customer_id = $1
        UNION ALL
        SELECT 'template ' || id, name FROM templates WHERE customer_id = $1
        UNION ALL
        SELECT 'collection ' || id, name FROM collections WHERE customer_id = $1
        UNION ALL
        SELECT 'budget ' || id, name FROM budgets WHERE customer_id = $1
        UNION ALL
        SELECT email, name FROM users WHERE customer_id = $1) AS named
    WHERE strpos(lower(name), lower($2)) > 0 LIMIT $3
"""
