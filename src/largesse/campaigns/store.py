"""The SQL of campaigns: the campaigns, the people who have a gift, and the orders of the gifts."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from largesse.base.errors import existing
from largesse.campaigns.model import Campaign, CampaignRule, mailbox_of
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.db.scope import Place
from largesse.db.statements import count_changed
from largesse.lines.states import LineKey
from largesse.orders.order import ALL_COLUMNS

_COLUMNS = Fragment("""
    c.customer_id, c.id, c.environment, c.name, c.user_id, c.token, c.order_reference, c.gifts, c.given_through, c.greeting, c.domains,
    c.opens_at, c.closes_at, c.paused_at, c.ended_at, c.created_at
""")
_WITH_OWNER = compose(
    """
    SELECT {columns}, u.name AS owner FROM campaigns c
    LEFT JOIN users u ON u.customer_id = c.customer_id AND u.id = c.user_id
    WHERE c.customer_id = $1 AND c.environment = $2
    """,
    columns=_COLUMNS,
)
_LIST = compose("{rows} AND ($3::int IS NULL OR c.user_id = $3) ORDER BY c.id DESC LIMIT $4", rows=_WITH_OWNER)
_ONE = compose("{rows} AND c.id = $3", rows=_WITH_OWNER)
_LOCK = compose(
    "SELECT {columns} FROM campaigns c WHERE c.customer_id = $1 AND c.environment = $2 AND c.id = $3 FOR UPDATE",
    columns=_COLUMNS,
)
_BY_LINK = "SELECT customer_id, id FROM campaign_of_token($1, $2)"
_OF_ORDER = "SELECT id, name FROM campaigns WHERE customer_id = $1 AND order_reference = $2"
COUNT = "SELECT count(*) FROM campaigns WHERE customer_id = $1 AND environment = $2 AND ended_at IS NULL AND closes_at > clock_now()"
_IS_NAMED = """
    SELECT EXISTS (SELECT FROM campaigns WHERE customer_id = $1 AND environment = $2 AND lower(name) = lower($3) AND id <> $4
                   AND ended_at IS NULL AND closes_at > clock_now())
"""
_ADD = """
    INSERT INTO campaigns (customer_id, environment, user_id, token, order_reference, name, gifts, greeting, domains, opens_at, closes_at,
        due_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) RETURNING id
"""
_CHANGE = """
    UPDATE campaigns SET name = $3, gifts = $4, greeting = $5, domains = $6, opens_at = $7, closes_at = $8, due_at = $8,
        order_reference = $9, user_id = $10
    WHERE customer_id = $1 AND id = $2
"""
_PAUSE = "UPDATE campaigns SET paused_at = CASE WHEN $3 THEN clock_now() END WHERE customer_id = $1 AND id = $2"
_CLOSE = "UPDATE campaigns SET closes_at = now, due_at = now FROM (SELECT clock_now()) AS clock (now) WHERE customer_id = $1 AND id = $2"
_PUT_OFF = "UPDATE campaigns SET due_at = (SELECT clock_now()) + $3::interval WHERE customer_id = $1 AND id = $2 AND ended_at IS NULL"
_END = "UPDATE campaigns SET ended_at = clock_now() WHERE customer_id = $1 AND id = $2"
_SET_LIST = """
    INSERT INTO campaign_people (customer_id, environment, campaign_id, mailbox) SELECT $1, $2, $3, unnest($4::text[])
"""
_DROP_LIST = "DELETE FROM campaign_people WHERE customer_id = $1 AND campaign_id = $2 AND number IS NULL"
_READ_LIST = """
    SELECT mailbox FROM campaign_people WHERE customer_id = $1 AND campaign_id = $2 ORDER BY mailbox LIMIT $3
"""
_COUNT_LIST = "SELECT count(*) FROM campaign_people WHERE customer_id = $1 AND campaign_id = $2"
_ORDERS = """
    SELECT reference, id, code_count, total_minor, currency, product_id, collection_id, country, value_minor, wrapping_key, from_name, created_at
    FROM orders WHERE customer_id = $1 AND reference = ANY($2::text[])
"""
_ORDER = compose("SELECT {columns} FROM orders WHERE customer_id = $1 AND reference = $2", columns=ALL_COLUMNS)
_TAKEN = """
    SELECT campaign_id, count(number)::int AS taken FROM campaign_people
    WHERE customer_id = $1 AND campaign_id = ANY($2::int[]) AND number IS NOT NULL GROUP BY campaign_id
"""
# Counts the gifts of an order: those left, those cancelled before anybody got them, and those cancelled after they were given.
_COUNT_LINES = """
    SELECT count(*) FILTER (WHERE NOT is_given AND state IS NULL)::int AS left,
           count(*) FILTER (WHERE NOT is_given AND state = 'cancelled')::int AS returned,
           count(*) FILTER (WHERE is_given AND state = 'cancelled')::int AS withdrawn,
           count(*) FILTER (WHERE is_given AND state <> 'cancelled')::int AS claimed
    FROM (SELECT l.recipient_email IS NOT NULL AS is_given, (
              SELECT s.state FROM line_states s WHERE s.customer_id = $1 AND s.order_id = $2 AND s.number = l.number) AS state
          FROM lines l WHERE l.customer_id = $1 AND l.order_id = $2 OFFSET 0) AS line
"""
_PEOPLE = """
    SELECT number, taken_at FROM campaign_people
    WHERE customer_id = $1 AND campaign_id = $2 AND number IS NOT NULL AND number < $3 ORDER BY number DESC LIMIT $4
"""
_LINES = """
    SELECT l.number, l.recipient_email, coalesce((
        SELECT s.state FROM line_states s WHERE s.customer_id = $1 AND s.order_id = $2 AND s.number = l.number), 'issued') AS state
    FROM lines l WHERE l.customer_id = $1 AND l.order_id = $2 AND l.number = ANY($3::int[])
"""
_FREE = """
    SELECT number FROM lines l
    WHERE customer_id = $1 AND order_id = $2 AND number > $3 AND recipient_email IS NULL AND NOT EXISTS (
        SELECT FROM line_states s
        WHERE s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number)
    ORDER BY number LIMIT $4
"""
# LATERAL looks the gifts up order by order. A join could read all lines of a customer.
_WITH_FREE = """
    SELECT o.order_id FROM unnest($2::int[], $3::int[]) AS o (order_id, after) CROSS JOIN LATERAL (
        SELECT number FROM lines l
        WHERE customer_id = $1 AND order_id = o.order_id AND number > o.after AND recipient_email IS NULL AND NOT EXISTS (
            SELECT FROM line_states s
            WHERE s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number)
        ORDER BY number LIMIT 1) AS next
"""
_CANCELLATIONS = """
    SELECT at, count(*)::int AS gifts FROM line_events
    WHERE customer_id = $1 AND order_id = $2 AND event = 'cancelled' GROUP BY at ORDER BY at
"""
_GIFT_OF = "SELECT number FROM campaign_people WHERE customer_id = $1 AND campaign_id = $2 AND mailbox = $3"
_GIVE = """
    INSERT INTO campaign_people (customer_id, environment, campaign_id, mailbox, number, language, taken_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now())
    ON CONFLICT (customer_id, campaign_id, mailbox) DO UPDATE SET number = excluded.number, language = excluded.language, taken_at = excluded.taken_at
    WHERE campaign_people.number IS NULL RETURNING number
"""
_GIVEN = "UPDATE campaigns SET given_through = $3 WHERE customer_id = $1 AND id = $2"
_DUE = """
    SELECT customer_id, id FROM campaigns WHERE ended_at IS NULL AND due_at <= (SELECT clock_now()) ORDER BY due_at LIMIT $1
"""
_LOCK_DUE = compose(
    """
    SELECT {columns} FROM campaigns c WHERE c.customer_id = $1 AND c.id = $2 AND c.ended_at IS NULL AND c.due_at <= (SELECT clock_now())
    FOR UPDATE SKIP LOCKED
    """,
    columns=_COLUMNS,
)
_REFERENCE = "SELECT reference FROM orders WHERE customer_id = $1 AND id = $2"
_ERASE_GIVEN = """
    UPDATE campaign_people SET mailbox = 'erased-' || number || '@erased.invalid'
    WHERE customer_id = $1 AND campaign_id = $2 AND number = ANY($3::int[])
"""
_FIND = """
    SELECT p.customer_id, p.campaign_id, p.number, p.taken_at, c.name, c.environment, c.order_reference, k.key AS customer
    FROM campaign_people p JOIN campaigns c ON c.customer_id = p.customer_id AND c.id = p.campaign_id
    JOIN customers k ON k.id = p.customer_id
    WHERE p.mailbox = $1 AND ($2::int IS NULL OR p.customer_id = $2) ORDER BY p.customer_id, p.campaign_id
"""
_FORGET = """
    DELETE FROM campaign_people WHERE mailbox = $1 AND number IS NULL AND ($2::int IS NULL OR customer_id = $2)
"""


class GiftCounts(msgspec.Struct, frozen=True):
    """How many gifts of a campaign are in each state."""

    left: int
    returned: int  # refunded, because nobody took them
    withdrawn: int  # given, and cancelled afterwards
    claimed: int


async def list_campaigns(connection: Connection, place: Place, user_id: int | None, limit: int) -> list[Campaign]:
    """Returns the newest campaigns, of one person or of all."""
    return [Campaign(**row) for row in await connection.fetch(_LIST, *place, user_id, limit)]


async def find_campaign(connection: Connection, place: Place, campaign_id: int) -> Campaign:
    """Returns a campaign with the name of its person. Raises NotFound."""
    row = existing(
        await connection.fetchrow(_ONE, *place, campaign_id), f"There is no campaign {campaign_id} in {place[1]}."
    )
    return Campaign(**row)


async def lock_campaign(connection: Connection, place: Place, campaign_id: int) -> Campaign | None:
    """Returns a campaign, locked."""
    row = await connection.fetchrow(_LOCK, *place, campaign_id)
    return None if row is None else Campaign(**row)


async def find_by_token(connection: Connection, token: str, environment: str) -> tuple[int, int] | None:
    """Returns the customer and id of the campaign of a link."""
    row = await connection.fetchrow(_BY_LINK, token, environment)
    return None if row is None else (row["customer_id"], row["id"])


async def find_by_order(connection: Connection, customer_id: int, reference: str) -> tuple[int, str] | None:
    """Returns the id and name of the campaign whose gifts an order holds."""
    row = await connection.fetchrow(_OF_ORDER, customer_id, reference)
    return None if row is None else (row["id"], row["name"])


async def is_named(connection: Connection, place: Place, name: str, besides: int) -> bool:
    """Returns whether another campaign that is not over has the name."""
    return bool(await connection.fetchval(_IS_NAMED, *place, name, besides))


async def insert_campaign(
    connection: Connection, whose: tuple[int, str, int], token: str, reference: str, rule: CampaignRule
) -> int:
    """Adds a campaign of a customer, in an environment, by a person; returns its id."""
    campaign_id: int = await connection.fetchval(_ADD, *whose, token, reference, *_columns(rule))
    await connection.execute(_SET_LIST, whose[0], whose[1], campaign_id, list(rule.mailboxes))
    return campaign_id


async def change_campaign(
    connection: Connection, campaign: Campaign, rule: CampaignRule, reference: str, user_id: int
) -> None:
    """Replaces the settings, the draft's reference and the person of a campaign that has given no gift yet."""
    key = (campaign.customer_id, campaign.id)
    await connection.execute(_CHANGE, *key, *_columns(rule), reference, user_id)
    await connection.execute(_DROP_LIST, *key)
    await connection.execute(_SET_LIST, campaign.customer_id, campaign.environment, campaign.id, list(rule.mailboxes))


def _columns(rule: CampaignRule) -> tuple[object, ...]:
    return rule.name, rule.gifts, rule.greeting, list(rule.domains), rule.opens_at, rule.closes_at


async def pause_campaign(connection: Connection, campaign: Campaign, *, paused: bool) -> None:
    """Pauses a campaign, or resumes it."""
    await connection.execute(_PAUSE, campaign.customer_id, campaign.id, paused)


async def close_campaign(connection: Connection, campaign: Campaign) -> None:
    """Closes a campaign now. The worker refunds the gifts that are left."""
    await connection.execute(_CLOSE, campaign.customer_id, campaign.id)


async def end_campaign(connection: Connection, campaign: Campaign) -> None:
    """Records that no gift of a campaign is left, and deletes the list of those who could take part."""
    await connection.execute(_END, campaign.customer_id, campaign.id)
    await connection.execute(_DROP_LIST, campaign.customer_id, campaign.id)


async def read_list(connection: Connection, campaign: Campaign, limit: int) -> list[str]:
    """Returns the first mailboxes that may take part or have a gift."""
    return [row["mailbox"] for row in await connection.fetch(_READ_LIST, campaign.customer_id, campaign.id, limit)]


async def count_list(connection: Connection, campaign: Campaign) -> int:
    """Returns how many mailboxes may take part or have a gift."""
    return int(await connection.fetchval(_COUNT_LIST, campaign.customer_id, campaign.id))


async def read_orders(connection: Connection, customer_id: int, references: Sequence[str]) -> dict[str, Row]:
    """Returns the orders of campaigns by reference. Leaves out those that were not placed."""
    return {row["reference"]: row for row in await connection.fetch(_ORDERS, customer_id, list(references))}


async def read_order(connection: Connection, campaign: Campaign) -> Row | None:
    """Returns the whole row of a campaign's order. None if it was not placed."""
    return await connection.fetchrow(_ORDER, campaign.customer_id, campaign.order_reference)


async def list_cancellations(connection: Connection, order: tuple[int, int]) -> list[tuple[datetime, int]]:
    """Returns when gifts of a campaign's order were cancelled, and how many each time."""
    return [(row["at"], row["gifts"]) for row in await connection.fetch(_CANCELLATIONS, *order)]


async def count_taken(connection: Connection, customer_id: int, campaign_ids: Sequence[int]) -> Mapping[int, int]:
    """Returns how many gifts each of these campaigns gave."""
    return {row["campaign_id"]: row["taken"] for row in await connection.fetch(_TAKEN, customer_id, list(campaign_ids))}


async def count_gifts(connection: Connection, customer_id: int, order_id: int) -> GiftCounts:
    """Returns how many gifts of a campaign's order are in each state."""
    row = await connection.fetchrow(_COUNT_LINES, customer_id, order_id)
    assert row is not None, "an aggregate has a row"
    return GiftCounts(**row)


async def list_taken(
    connection: Connection, campaign: Campaign, order_id: int, *, before: int, limit: int
) -> list[tuple[Row, Row]]:
    """Returns the gifts with numbers below `before` that people have, highest first: number and time, and the line with address and state."""
    people = await connection.fetch(_PEOPLE, campaign.customer_id, campaign.id, before, limit)
    numbers = [one["number"] for one in people]
    lines = {row["number"]: row for row in await connection.fetch(_LINES, campaign.customer_id, order_id, numbers)}
    return [(one, lines[one["number"]]) for one in people if one["number"] in lines]


async def next_line(connection: Connection, order: tuple[int, int], after: int) -> int | None:
    """Returns the number of the next gift that nobody has, without a lock. None if there is none."""
    number: int | None = await connection.fetchval(_FREE, *order, after, 1)
    return number


async def with_gifts_left(connection: Connection, customer_id: int, given: Mapping[int, int]) -> set[int]:
    """Returns which orders have a gift that nobody has. `given` maps the order id to the number of the gift that was given last."""
    rows = await connection.fetch(_WITH_FREE, customer_id, list(given), list(given.values()))
    return {row["order_id"] for row in rows}


async def list_rest(connection: Connection, order: tuple[int, int], limit: int) -> list[int]:
    """Returns the numbers of gifts that nobody has."""
    return [row["number"] for row in await connection.fetch(_FREE, *order, 0, limit)]


async def read_gift_of(connection: Connection, campaign: Campaign, mailbox: str) -> tuple[bool, int | None]:
    """Returns whether a mailbox is listed, and the number of its gift if it has one."""
    row = await connection.fetchrow(_GIFT_OF, campaign.customer_id, campaign.id, mailbox)
    return (False, None) if row is None else (True, row["number"])


async def give(connection: Connection, campaign: Campaign, mailbox: str, line: LineKey, language: str) -> bool:
    """Records that a mailbox has a gift, and the language of its mail. Returns False if it already has one.

    Call it inside a transaction that has locked the campaign and the line.
    """
    given = await connection.fetchval(
        _GIVE, campaign.customer_id, campaign.environment, campaign.id, mailbox, line.number, language
    )
    await connection.execute(_GIVEN, campaign.customer_id, campaign.id, line.number)
    return given is not None


async def put_off(connection: Connection, customer_id: int, campaign_id: int, by: timedelta) -> None:
    """Makes the worker look again at a campaign that is over, `by` later than now."""
    await connection.execute(_PUT_OFF, customer_id, campaign_id, by)


async def list_due(connection: Connection, limit: int) -> list[tuple[int, int]]:
    """Returns the campaigns that are over and still have gifts to refund, as customer and id."""
    return [(row["customer_id"], row["id"]) for row in await connection.fetch(_DUE, limit)]


async def lock_due(connection: Connection, customer_id: int, campaign_id: int) -> Campaign | None:
    """Returns and locks a campaign that is over. None if another worker has locked or ended it."""
    row = await connection.fetchrow(_LOCK_DUE, customer_id, campaign_id)
    return None if row is None else Campaign(**row)


async def erase_people(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> None:
    """Erases who has these gifts of an order, if it is a campaign's. `order` is its customer and id."""
    reference = await connection.fetchval(_REFERENCE, *order)
    found = None if reference is None else await find_by_order(connection, order[0], reference)
    if found is not None:
        await connection.execute(_ERASE_GIVEN, order[0], found[0], list(numbers))


async def find_people(connection: Connection, email: str, customer_id: int | None) -> list[Row]:
    """Returns the campaigns, of one customer or of all, in which a mailbox may take part or has a gift."""
    return await connection.fetch(_FIND, mailbox_of(email), customer_id)


async def forget_people(connection: Connection, email: str, customer_id: int | None) -> int:
    """Deletes a mailbox without a gift from the lists of campaigns. Returns from how many."""
    return await count_changed(connection, _FORGET, mailbox_of(email), customer_id)
