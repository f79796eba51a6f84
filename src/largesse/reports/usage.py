"""Finds recipients who had a gift before, and counts uses of templates and what a customer has set up."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from largesse.customers.principal import Principal
from largesse.db.fragments import compose
from largesse.db.pool import Connection, is_distributed
from largesse.db.scope import Place
from largesse.db.sharding import at_node
from largesse.reports.search import whole

# Most addresses are in no order. One scan of the index leaves these out first.
# The orders are found before the join: in a single join, all orders of the gift would be read for each address.
_EARLIER_GIFTS = """
    WITH known AS (
        SELECT DISTINCT word FROM report_words
        WHERE customer_id = $1 AND environment = $2 AND word = ANY ($3::text[]) AND created_at > $4),
    newest AS MATERIALIZED (
        SELECT known.word, found.order_id FROM known CROSS JOIN LATERAL (
            SELECT order_id FROM report_words w
            WHERE w.customer_id = $1 AND w.environment = $2 AND w.word = known.word AND w.created_at > $4
            ORDER BY w.created_at DESC, w.order_id DESC LIMIT $5) AS found)
    SELECT newest.word, max(o.created_at) AS created_at FROM newest
    JOIN report_orders o ON o.customer_id = $1 AND o.order_id = newest.order_id
    JOIN report_groups g ON g.customer_id = $1 AND g.id = o.group_id
    WHERE g.product_id = $6 AND g.collection_id = $7 AND ($8::int IS NULL OR g.user_id = $8) AND o.state <> 'cancelled'
    GROUP BY newest.word
"""
_TEMPLATE_USES = """
    SELECT asked.id, used.orders, used.last_at FROM unnest($3::int[]) AS asked (id)
    CROSS JOIN LATERAL (
        SELECT count(*) AS orders, max(created_at) AS last_at FROM (
            SELECT created_at FROM report_orders
            WHERE customer_id = $1 AND environment = $2 AND template_id = asked.id AND template_id <> 0
            ORDER BY created_at DESC LIMIT $4) AS newest) AS used
    WHERE used.orders > 0
"""
_FAILING_WEBHOOKS = """
    SELECT s.id, s.target_url FROM webhook_subscriptions AS s
    JOIN subscription_queues AS q ON q.customer_id = s.customer_id AND q.subscription_id = s.id
    WHERE s.customer_id = $1 AND s.environment = $2 AND q.failing ORDER BY s.created_at DESC, s.id LIMIT $3
"""
# Reads the newest order from an index. With EXISTS, the planner might read all orders one after the other.
# The key says whether customers are distributed over nodes.
FIRST_STEPS = {
    on_node: compose(
        """
    SELECT created_at > clock_now() - $2 * interval '1 day' AS is_new,
           EXISTS (SELECT id FROM accounts WHERE customer_id = $1 AND kind = 'funding' AND balance_minor > 0) AS has_money,
           (SELECT true FROM orders WHERE customer_id::bigint = $1 AND environment = $3 {node}
            ORDER BY id::bigint DESC LIMIT 1) IS TRUE AS has_order,
           (SELECT count(*) > 1 FROM users WHERE customer_id = $1 AND is_active) AS has_colleague
    FROM customers WHERE id = $1
""",
        node=at_node("customer_id", "$1" if on_node else ""),
    )
    for on_node in (False, True)
}

# Gifts before this time are not mentioned.
LOOKED_BACK = timedelta(days=90)
_LOOKED_AT = 20  # the newest orders of one address that are read


async def earlier_gifts(
    connection: Connection,
    principal: Principal,
    addresses: Collection[str],
    *,
    product_id: int | None,
    collection_id: int | None,
    now: datetime,
) -> dict[str, datetime]:
    """Returns when each address last got this gift, within LOOKED_BACK, in orders that the principal may see.

    The keys are the addresses as they were given. Orders of the last seconds may be missing.
    """
    by_word = {whole(address): address for address in addresses}
    rows = await connection.fetch(
        _EARLIER_GIFTS,
        principal.customer_id,
        principal.environment,
        list(by_word),
        now - LOOKED_BACK,
        _LOOKED_AT,
        product_id or 0,
        collection_id or 0,
        None if principal.draws_on_all else principal.user_id,
    )
    return {by_word[row["word"]]: row["created_at"] for row in rows}


MOST_COUNTED = 1_000


class TemplateUses(msgspec.Struct, frozen=True):
    """The orders placed with a template in one environment."""

    orders: int  # at most MOST_COUNTED + 1, which means more than MOST_COUNTED
    last_at: datetime


async def template_uses(
    connection: Connection, principal: Principal, template_ids: Collection[int]
) -> dict[int, TemplateUses]:
    """Returns how often each of the customer's templates was used in the environment, by id, without unused ones.

    Orders of the last seconds may be missing.
    """
    rows = await connection.fetch(_TEMPLATE_USES, *principal.place, list(template_ids), MOST_COUNTED + 1)
    return {row["id"]: TemplateUses(row["orders"], row["last_at"]) for row in rows}


async def count_setup_problems(connection: Connection, place: Place, *, unused_days: int) -> tuple[int, int]:
    """Returns how many webhook subscriptions fail, and how many API keys were not used for so many days."""
    row = await connection.fetchrow(_COUNT_SETUP_PROBLEMS, *place, unused_days)
    assert row is not None, "it counts"
    return row["failing"], row["unused"]


_COUNT_SETUP_PROBLEMS = """
    SELECT (SELECT count(*) FROM webhook_subscriptions AS s JOIN subscription_queues AS q ON q.subscription_id = s.id
            WHERE s.customer_id = $1 AND s.environment = $2 AND q.failing) AS failing,
           (SELECT count(*) FROM api_keys WHERE customer_id = $1 AND environment = $2 AND deleted_at IS NULL
            AND coalesce(last_seen_at, created_at) < clock_now() - $3 * interval '1 day') AS unused
"""


class FailingWebhook(msgspec.Struct, frozen=True):
    """A webhook subscription whose last deliveries failed."""

    id: UUID
    target_url: str


async def list_failing_webhooks(connection: Connection, place: Place, *, limit: int) -> list[FailingWebhook]:
    """Returns the webhook subscriptions that fail, the newest first."""
    rows = await connection.fetch(_FAILING_WEBHOOKS, *place, limit)
    return [FailingWebhook(**row) for row in rows]


NEW_DAYS = 30


class FirstSteps(msgspec.Struct, frozen=True):
    """What a customer has done so far. Money and orders are those of the transaction's environment."""

    is_new: bool  # a customer for less than NEW_DAYS
    has_money: bool
    has_order: bool
    has_colleague: bool


async def read_first_steps(connection: Connection, place: Place) -> FirstSteps:
    """Returns what a customer has done so far. The environment must be the transaction's."""
    customer_id, environment = place
    row = await connection.fetchrow(FIRST_STEPS[is_distributed(connection)], customer_id, NEW_DAYS, environment)
    assert row is not None, "the customer of a person is there"
    return FirstSteps(**row)
