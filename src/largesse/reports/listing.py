"""Orders as a list shows them, and what a list can be filtered by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from largesse.database import Connection
from largesse.reports.filters import OrderFilter, Place
from largesse.reports.finding import find_orders

MAX_CHOICES = 5_000  # groups whose names are offered


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """An order in a list: what it is, how it stands, and who placed it. Amounts are in minor units."""

    order_id: int
    reference: str
    external_reference: str | None
    gift: str
    created_at: datetime
    state: str
    codes: int
    claimed: int
    cancelled: int
    bounced: int
    recipients: int
    is_batch: bool
    spent_minor: int
    currency: str
    source: str
    placed_by: str  # a person or a service account
    account: str | None  # None: invoiced


@dataclass(frozen=True, slots=True)
class OrderPage:
    """A part of a list, the newest first. `older` and `newer` are ids of orders to go on from; None: there is no more."""

    orders: list[ListedOrder]
    older: int | None
    newer: int | None


async def list_page(
    connection: Connection,
    wanted: OrderFilter,
    limit: int,
    *,
    before: Place | None = None,
    after: Place | None = None,
) -> OrderPage:
    """At most `limit` orders that pass the filter: the newest, those before a place, or those after one."""
    found = await find_orders(connection, wanted, limit, past=after or before, newer=after is not None)
    orders = await read_listed(connection, wanted.customer_id, found.places)
    goes_on = None if found.goes_on is None else found.goes_on.order_id
    if after is not None:
        return OrderPage(orders, found.places[-1].order_id if found.places else None, goes_on)
    first = found.places[0].order_id if found.places else None
    return OrderPage(orders, goes_on, first if before is not None else None)


async def read_listed(connection: Connection, customer_id: int, places: list[Place]) -> list[ListedOrder]:
    """The orders of a customer that stand at these places, in their order."""
    rows = await connection.fetch(
        """
        SELECT r.order_id, o.reference, o.external_reference, coalesce(p.name, l.name, '') AS gift, r.created_at, r.state,
               r.codes, r.claimed, r.cancelled, r.bounced, o.recipient_count AS recipients,
               o.delivery_mode = 'manual' AS is_batch, r.spent_minor, o.currency, o.source,
               coalesce(u.name, s.name, '') AS placed_by, a.name AS account
        FROM unnest($2::int[]) AS listed (order_id)
        JOIN report_orders AS r ON r.customer_id = $1 AND r.order_id = listed.order_id
        JOIN orders AS o ON o.id = listed.order_id AND o.customer_id = $1
        LEFT JOIN products AS p ON p.id = o.product_id
        LEFT JOIN collections AS l ON l.id = o.collection_id
        LEFT JOIN service_accounts AS s ON s.id = o.service_account_id
        LEFT JOIN users AS u ON u.id = o.user_id
        LEFT JOIN accounts AS a ON a.customer_id = $1 AND a.id = o.account_id
        ORDER BY r.created_at DESC, r.order_id DESC
        """,
        customer_id,
        [place.order_id for place in places],
    )
    return [ListedOrder(**row) for row in rows]


@dataclass(frozen=True, slots=True)
class Choices:
    """What a customer's orders have in common, each as pairs of what is asked for and what people read, by name."""

    sources: list[tuple[str, str]]
    gifts: list[tuple[str, str]]  # `product-7` or `collection-3`
    accounts: list[tuple[str, str]]
    placed_by: list[tuple[str, str]]  # `key-7`, of a service account, or `person-3`


async def read_choices(
    connection: Connection, customer_id: int, environment: str, *, user_id: int | None = None
) -> Choices:
    """What a customer's orders in an environment can be filtered by, or those that a user has placed."""
    rows = await connection.fetch(
        """
        SELECT g.source, p.id AS product_id, l.id AS collection_id, coalesce(p.name, l.name) AS gift,
               a.id AS account_id, a.name AS account, s.id AS service_account_id, u.id AS user_id,
               coalesce(u.name, s.name) AS placed_by
        FROM (SELECT * FROM report_groups WHERE customer_id = $1 AND environment = $2 AND ($4::int IS NULL OR user_id = $4)
              ORDER BY id DESC LIMIT $3) AS g
        LEFT JOIN products AS p ON p.id = g.product_id
        LEFT JOIN collections AS l ON l.id = g.collection_id
        LEFT JOIN accounts AS a ON a.customer_id = $1 AND a.id = g.account_id
        LEFT JOIN service_accounts AS s ON s.id = g.service_account_id
        LEFT JOIN users AS u ON u.id = g.user_id
        """,
        customer_id,
        environment,
        MAX_CHOICES,
        user_id,
    )
    sources, gifts, accounts, placed_by = set(), set(), set(), set()
    for row in rows:
        sources.add((row["source"], row["source"]))
        if row["gift"]:
            of = f"product-{row['product_id']}" if row["product_id"] else f"collection-{row['collection_id']}"
            gifts.add((of, row["gift"]))
        if row["account"]:
            accounts.add((str(row["account_id"]), row["account"]))
        if row["placed_by"]:
            of = f"person-{row['user_id']}" if row["user_id"] else f"key-{row['service_account_id']}"
            placed_by.add((of, row["placed_by"]))
    return Choices(*(_by_name(pairs) for pairs in (sources, gifts, accounts, placed_by)))


def _by_name(pairs: set[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(pairs, key=lambda pair: (pair[1].casefold(), pair[0]))
