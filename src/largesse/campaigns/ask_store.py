"""The SQL of visitors' requests for a code."""

from collections.abc import Sequence

from largesse.campaigns.model import CODE_LASTS, CODES_OF_CAMPAIGN, Campaign, mailbox_of
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row

_ADD = """
    INSERT INTO campaign_asks (customer_id, environment, campaign_id, mailbox, email, language, asked_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now())
"""
# A request above the limit gets no mail, and the previous code stays valid. Otherwise anybody could make a visitor's code invalid.
_LATEST = """
    SELECT id, email, language, state = 'mailed' AND asked_at > (SELECT clock_now()) - $4::interval AS counts FROM campaign_asks
    WHERE customer_id = $1 AND campaign_id = $2 AND mailbox = $3 AND state <> 'ignored' ORDER BY id DESC LIMIT 1 FOR UPDATE
"""
# Another worker that reads the same rows waits, and then finds them decided.
_LOCK_NEW = """
    SELECT customer_id, id FROM campaign_asks WHERE state = 'new' ORDER BY asked_at, id LIMIT $1 FOR UPDATE
"""
# The facts that decide about each request, and how many mails its mailbox got in the last hour.
_TO_DECIDE = """
    SELECT a.customer_id, a.environment, a.id, a.campaign_id, a.mailbox, a.email, c.order_reference,
           c.ended_at IS NULL AND c.paused_at IS NULL AND c.opens_at <= now AND c.closes_at > now AS is_open,
           split_part(a.mailbox, '@', 2) = ANY(c.domains) OR p.mailbox IS NOT NULL AS may,
           (SELECT count(*) FROM campaign_asks m
            WHERE m.customer_id = a.customer_id AND m.campaign_id = a.campaign_id AND m.mailbox = a.mailbox AND m.state = 'mailed'
              AND m.asked_at > now - interval '1 hour')::int AS mailed
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, id)
    JOIN campaign_asks a ON a.customer_id = wanted.customer_id AND a.id = wanted.id
    JOIN campaigns c ON c.customer_id = a.customer_id AND c.id = a.campaign_id
    LEFT JOIN campaign_people p ON p.customer_id = a.customer_id AND p.campaign_id = a.campaign_id AND p.mailbox = a.mailbox
    CROSS JOIN (SELECT clock_now()) AS clock (now)
    ORDER BY a.id
"""
_COUNT_MAILED = """
    SELECT count(*)::int FROM (
        SELECT FROM campaign_asks WHERE customer_id = $1 AND campaign_id = $2 AND state = 'mailed'
        AND asked_at > (SELECT clock_now()) - interval '1 hour' LIMIT $3) AS mailed
"""
_DECIDE = """
    UPDATE campaign_asks SET state = decided.state
    FROM unnest($1::int[], $2::int[], $3::text[]) AS decided (customer_id, id, state)
    WHERE campaign_asks.customer_id = decided.customer_id AND campaign_asks.id = decided.id
"""
_ORDER_ID = "SELECT id FROM orders WHERE customer_id = $1 AND reference = $2"
_OF_MAILBOX = Fragment("WHERE mailbox = $1 AND ($2::int IS NULL OR customer_id = $2)")
_LIST = compose(
    """
    SELECT k.key AS customer, a.environment, c.name AS campaign, a.email, a.language, a.state, a.asked_at
    FROM (SELECT * FROM campaign_asks {of_mailbox}) AS a JOIN campaigns c ON c.customer_id = a.customer_id AND c.id = a.campaign_id
    JOIN customers k ON k.id = a.customer_id ORDER BY a.asked_at, a.id
""",
    of_mailbox=_OF_MAILBOX,
)
_DROP = compose("DELETE FROM campaign_asks {of_mailbox}", of_mailbox=_OF_MAILBOX)
_DROP_OF_CAMPAIGN = "DELETE FROM campaign_asks WHERE customer_id = $1 AND campaign_id = $2"


async def insert_ask(connection: Connection, campaign: Campaign, email: str, language: str) -> None:
    """Adds a visitor's request to mail a code to an address."""
    key = (campaign.customer_id, campaign.environment, campaign.id)
    await connection.execute(_ADD, *key, mailbox_of(email), email, language)


async def lock_latest(connection: Connection, campaign: Campaign, mailbox: str) -> Row | None:
    """Returns and locks the last code request for a mailbox, apart from ignored ones: `id`, `email` as typed, `language`, and whether its code `counts`."""
    return await connection.fetchrow(_LATEST, campaign.customer_id, campaign.id, mailbox, CODE_LASTS)


async def take_new(connection: Connection, limit: int) -> list[Row]:
    """Returns and locks the undecided code requests, with the facts that decide. Call it inside a transaction."""
    keys = await connection.fetch(_LOCK_NEW, limit)
    if not keys:
        return []
    return await connection.fetch(_TO_DECIDE, [key["customer_id"] for key in keys], [key["id"] for key in keys])


async def count_mailed(connection: Connection, customer_id: int, campaign_id: int) -> int:
    """Returns how many codes were mailed for a campaign in the last hour. Counts up to CODES_OF_CAMPAIGN."""
    return int(await connection.fetchval(_COUNT_MAILED, customer_id, campaign_id, CODES_OF_CAMPAIGN))


async def find_order_id(connection: Connection, customer_id: int, reference: str) -> int | None:
    """Returns the id of a campaign's order. None if it was not placed."""
    order_id: int | None = await connection.fetchval(_ORDER_ID, customer_id, reference)
    return order_id


async def decide(connection: Connection, decided: Sequence[tuple[int, int, str]]) -> None:
    """Saves the decision about each request: customer, number and state."""
    await connection.execute(_DECIDE, *map(list, zip(*decided, strict=True)))


async def drop_asks_of(connection: Connection, campaign: Campaign) -> None:
    """Deletes the code requests of a campaign."""
    await connection.execute(_DROP_OF_CAMPAIGN, campaign.customer_id, campaign.id)


async def list_asks(connection: Connection, email: str, customer_id: int | None) -> list[Row]:
    """Returns the recent code requests for a mailbox, of one customer's campaigns or of all, the earliest first."""
    return await connection.fetch(_LIST, mailbox_of(email), customer_id)


async def forget_asks(connection: Connection, email: str, customer_id: int | None) -> int:
    """Deletes the code requests for a mailbox. Returns how many."""
    tag = await connection.execute(_DROP, mailbox_of(email), customer_id)
    return int(tag.split()[-1])
