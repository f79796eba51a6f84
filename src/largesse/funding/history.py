"""What accounts held on the last days, to be drawn as a line."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.database.pool import Connection

DAYS = 30
_EVERY = 2  # days: a line shows no more, and each place is looked for


async def read_history(
    connection: Connection, customer_id: int, account_ids: Sequence[int]
) -> dict[int, list[int]]:
    """What each of those accounts of a customer held, in minor units, as every second of the last DAYS (UTC) began, oldest first.

    Ids of entries ascend with time but for a moment, so each place is found by halving, as in statements; what was written at midnight
    may count for either day.
    """
    rows = await connection.fetch(_HISTORY, customer_id, list(account_ids), DAYS, _EVERY)
    found: dict[int, list[int]] = {account_id: [] for account_id in account_ids}
    for row in rows:
        found[row["account_id"]].append(row["balance_minor"])
    return found


# What an index is asked is a plain column, `middle`, as in statements.
_HISTORY = """
    WITH RECURSIVE halved (account_id, at, low, high, middle) AS (
        SELECT last.account_id, day.at, 0::bigint, last.id, last.id / 2
        FROM (
            SELECT account.id AS account_id, coalesce((
                SELECT max(e.id) FROM entries e WHERE e.customer_id = $1 AND e.account_id = account.id), 0)::bigint AS id
            FROM unnest($2::int[]) AS account (id)) AS last
        CROSS JOIN (
            SELECT date_trunc('day', clock_now(), 'UTC') - n * interval '1 day' AS at FROM generate_series(0, $3::int - 1, $4::int) AS n) AS day
        UNION ALL
        SELECT half.account_id, half.at, half.low, half.high, (half.low + half.high) / 2 FROM (
            SELECT h.account_id, h.at, CASE WHEN probe.is_before THEN probe.id ELSE low END AS low,
                   CASE WHEN probe.is_before THEN high ELSE middle END AS high
            FROM halved h LEFT JOIN LATERAL (
                SELECT e.id, e.created_at < h.at AS is_before FROM entries e
                WHERE e.customer_id = $1 AND e.account_id = h.account_id AND e.id > h.middle ORDER BY e.id LIMIT 1) AS probe ON true
            WHERE low < high) AS half)
    SELECT account_id, coalesce((
        SELECT e.balance_minor FROM entries e
        WHERE e.customer_id = $1 AND e.account_id = h.account_id AND e.id <= h.low ORDER BY e.id DESC LIMIT 1), 0) AS balance_minor
    FROM halved h WHERE low >= high ORDER BY account_id, at
"""
