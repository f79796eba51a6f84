"""Reads the current state of changed orders, and their state in the read models."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import msgspec

from largesse.base.email import email_key
from largesse.db.fragments import Fragment, each, grouped
from largesse.db.pool import Connection, Row
from largesse.db.shard_groups import Customers
from largesse.db.sharding import arguments
from largesse.orders.options import PERSONAL
from largesse.reports.sums import AGES_S, Moves, OrderSummary

OrderKey = tuple[int, int]  # customer and order


class Facts(msgspec.Struct):
    """The state of changed orders. Orders that do not exist are not in it."""

    orders: dict[OrderKey, Row] = {}
    moves: Mapping[int, Moves] = {}
    bounced: Mapping[int, int] = {}
    refunds: Mapping[OrderKey, Mapping[date, int]] = {}  # refunds by corrections, by day, in minor units
    before: Mapping[OrderKey, OrderSummary] = {}


async def read_code_counts(
    connection: Connection, keys: Sequence[OrderKey], shard_group: Customers = None
) -> dict[OrderKey, int]:
    """Returns how many codes each of the orders has."""
    rows = await connection.fetch(_COUNTS.of(shard_group), *_columns(keys), *arguments(shard_group))
    return {(row["customer_id"], row["id"]): row["code_count"] for row in rows}


async def read_facts(connection: Connection, keys: Sequence[OrderKey], shard_group: Customers = None) -> Facts:
    """Returns the states of these orders, which must all be of `shard_group`, if one is given. Locks nothing: a later change is recorded, too."""
    facts = Facts()
    columns = _columns(keys)
    of = arguments(shard_group)
    for row in await connection.fetch(_ORDERS.of(shard_group), *columns, *of):
        facts.orders[row["customer_id"], row["id"]] = row
    moves: dict[int, Moves] = defaultdict(Moves)
    for row in await connection.fetch(_MOVES.of(shard_group), *columns, list(AGES_S), *of):
        moves[row["order_id"]].add(row["event"], row["day"], row["age"], row["count"], row["last_at"])
    facts.moves = moves
    sent = [key for key, order in facts.orders.items() if order["delivery_mode"] == "send"]
    facts.bounced = await _read_bounced(connection, sent, shard_group)
    facts.refunds = await _read_refunds(connection, facts.orders)
    facts.before = {
        (row["customer_id"], row["order_id"]): summary_of(row) for row in await connection.fetch(_BEFORE, *columns)
    }
    return facts


async def _read_bounced(connection: Connection, keys: Sequence[OrderKey], shard_group: Customers) -> dict[int, int]:
    """Returns by order id how many recipients have a gift to claim and a latest mail that was refused."""
    refused = {row["order_id"]: row for row in await connection.fetch(_BOUNCED, *_columns(keys))}
    if not refused:
        return {}
    asked = [key for key in keys if key[1] in refused]
    rows = await connection.fetch(_UNCLAIMED.of(shard_group), *_columns(asked), *arguments(shard_group))
    unclaimed = {(row["order_id"], email_key(row["recipient_email"])) for row in rows}
    counts = {one: sum((one, email_key(email)) in unclaimed for email in refused[one]["emails"]) for one in refused}
    return {one: count for one, count in counts.items() if count}


async def _read_refunds(connection: Connection, orders: Mapping[OrderKey, Row]) -> dict[OrderKey, Mapping[date, int]]:
    keys = {
        (customer_id, order["reference"]): (customer_id, order_id) for (customer_id, order_id), order in orders.items()
    }
    columns = [customer_id for customer_id, _ in keys], [reference for _, reference in keys]
    refunds: dict[OrderKey, dict[date, int]] = defaultdict(dict)
    for row in await connection.fetch(_REFUNDS, *columns):
        refunds[keys[row["customer_id"], row["order_reference"]]][row["day"]] = row["amount_minor"]
    return dict(refunds)


async def read_recipients(
    connection: Connection, keys: Sequence[OrderKey], shard_group: Customers = None
) -> dict[int, list[tuple[str | None, str | None]]]:
    """Returns the addresses and names on the lines of orders, by the order's id."""
    recipients: dict[int, list[tuple[str | None, str | None]]] = defaultdict(list)
    for row in await connection.fetch(_RECIPIENTS.of(shard_group), *_columns(keys), *arguments(shard_group)):
        recipients[row["order_id"]].append((row["recipient_email"], row["recipient_name"]))
    return recipients


def _columns(keys: Sequence[OrderKey]) -> tuple[list[int], list[int]]:
    return [customer_id for customer_id, _ in keys], [order_id for _, order_id in keys]


def summary_of(row: Any) -> OrderSummary:
    """Returns the summary of a row of `report_orders`, given by column."""
    return OrderSummary(
        **{name: row[name] for name in ("customer_id", "group_id", "state", "created_at", "codes", "spent_minor")},
        claims=dict(zip(row["claim_days"], row["claim_counts"], strict=True)),
        cancellations=dict(zip(row["cancel_days"], row["cancel_counts"], strict=True)),
        refunds=dict(zip(row["refund_days"], row["refund_amounts"], strict=True)),
        ages=tuple(row["ages"]),
    )


_PERSONAL = each("o.{name}", PERSONAL)


# The orders of customers $1 and ids $2.
_WANTED = Fragment("""
    unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id)
    JOIN orders AS o ON o.id = wanted.order_id AND o.customer_id = wanted.customer_id
""")
_ORDERS = grouped(
    """
    SELECT o.customer_id, o.id, o.reference, o.environment, o.created_at, o.source, o.currency, o.product_id, o.collection_id,
           o.account_id, o.service_account_id, o.user_id, o.template_id, o.code_count, o.total_minor, o.external_reference,
           {personal}, o.erased_at, o.delivery_mode,
           o.scheduled_for IS NOT NULL AND EXISTS (
               SELECT FROM mail_jobs AS m
               WHERE m.customer_id = o.customer_id AND m.order_id = o.id AND m.fanned_out_at IS NULL AND m.due_at > (SELECT clock_now())
                 {within m.customer_id}
           ) AS is_scheduled
    FROM {wanted} {within o.customer_id}
    """,
    "$3",
    personal=_PERSONAL,
    wanted=_WANTED,
)
_MOVES = grouped(
    """
    SELECT o.id AS order_id, e.event, (e.at AT TIME ZONE 'UTC')::date AS day,
           width_bucket(extract(epoch FROM e.at - coalesce(o.scheduled_for, o.created_at))::float8, $3::float8[]) AS age,
           count(*) AS count, max(e.at) AS last_at
    FROM {wanted} {within o.customer_id}
    JOIN line_events AS e ON e.customer_id = o.customer_id AND e.order_id = o.id
        AND e.event IN ('claimed', 'fulfilled', 'expired', 'cancelled') {within e.customer_id}
    GROUP BY 1, 2, 3, 4
    """,
    "$4",
    wanted=_WANTED,
)
_RECIPIENTS = grouped(
    """
    SELECT l.order_id, l.recipient_email, l.recipient_name FROM {wanted} {within o.customer_id}
    JOIN lines AS l ON l.customer_id = o.customer_id AND l.order_id = o.id {within l.customer_id}
    WHERE l.recipient_email IS NOT NULL OR l.recipient_name IS NOT NULL
    """,
    "$3",
    wanted=_WANTED,
)
_COUNTS = grouped("SELECT o.customer_id, o.id, o.code_count FROM {wanted} {within o.customer_id}", "$3", wanted=_WANTED)
_BOUNCED = """
    SELECT wanted.order_id, refused.emails FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id)
    CROSS JOIN LATERAL (
        SELECT array_agg(email) AS emails FROM (
            SELECT DISTINCT ON (email) email, state FROM messages
            WHERE messages.customer_id = wanted.customer_id AND messages.order_id = wanted.order_id AND kind = 'gift'
            ORDER BY email, edition DESC) AS latest
        WHERE state IN ('bounced', 'exhausted')) AS refused
    WHERE refused.emails IS NOT NULL
"""
# The addresses with a code that was neither claimed nor cancelled.
_UNCLAIMED = grouped(
    """
    SELECT DISTINCT l.order_id, l.recipient_email FROM {wanted} {within o.customer_id}
    JOIN lines AS l ON l.customer_id = o.customer_id AND l.order_id = o.id {within l.customer_id}
    WHERE l.recipient_email IS NOT NULL AND NOT EXISTS (
        SELECT FROM line_states AS s
        WHERE s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number {within s.customer_id})
    """,
    "$3",
    wanted=_WANTED,
)
# The refunds of orders by customers $1 and references $2. A separate statement: orders may be on nodes, corrections are not.
_REFUNDS = """
    SELECT c.customer_id, c.order_reference, (c.decided_at AT TIME ZONE 'UTC')::date AS day, sum(c.amount_minor)::bigint AS amount_minor
    FROM unnest($1::int[], $2::text[]) AS wanted (customer_id, order_reference)
    JOIN corrections AS c ON c.customer_id = wanted.customer_id AND c.order_reference = wanted.order_reference
    WHERE c.kind = 'refund' AND c.state = 'approved'
    GROUP BY 1, 2, 3
"""
_BEFORE = """
    SELECT r.customer_id, r.order_id, r.group_id, r.state, r.created_at, r.codes, r.spent_minor, r.claim_days,
           r.claim_counts, r.cancel_days, r.cancel_counts, r.refund_days, r.refund_amounts, r.ages
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, order_id)
    JOIN report_orders AS r ON r.customer_id = wanted.customer_id AND r.order_id = wanted.order_id
"""
