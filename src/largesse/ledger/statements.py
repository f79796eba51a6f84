"""Statements of accounts: the entries of a period, with an opening and a closing balance. And the balances of the last days, for a chart.

The entries of a month begin with its first entry and end before the first entry of the next month, in the order in which they changed the
balance. So consecutive months miss no entry, count none twice, and each opens with the closing balance of the month before.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from largesse.db.fragments import Fragment, compose, identifier, placeholder
from largesse.db.pool import Connection, Database
from largesse.db.scope import Scope

DAYS = 30
_EVERY = 2  # days: more points would not be visible, and each costs a look-up
_PAGE = """
    SELECT e.id, e.created_at AS at, e.kind, o.reference AS order_reference,
           coalesce(nullif(o.external_reference, o.reference), e.reference) AS external_reference, e.amount_minor, e.balance_minor,
           other.name AS counterpart
    FROM entries e
    LEFT JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id AND ($6::int IS NULL OR o.user_id = $6)
    LEFT JOIN transfers t ON e.kind = 'transfer' AND t.customer_id = e.customer_id AND t.id = e.movement_id
    LEFT JOIN accounts other ON other.customer_id = t.customer_id
        AND other.id = CASE t.from_account_id WHEN e.account_id THEN t.to_account_id ELSE t.from_account_id END
    WHERE e.customer_id = $1 AND e.account_id = $2 AND e.id > $3 AND e.id < $4
    ORDER BY e.id LIMIT $5
"""
_BALANCE_BEFORE = """
    SELECT balance_minor FROM entries WHERE customer_id = $1 AND account_id = $2 AND id < $3
    ORDER BY id DESC LIMIT 1
"""
# Not by max(id): a plan for any arguments expects an account to have few entries, and would read all of a large one.
_LAST_ENTRY = Fragment("SELECT id FROM entries WHERE customer_id = $1 AND account_id = $2 ORDER BY id DESC LIMIT 1")


async def read_history(connection: Connection, customer_id: int, account_ids: Sequence[int]) -> dict[int, list[int]]:
    """Returns the balances of some accounts of a customer, in minor units, at the start of every other day of the last DAYS (UTC), oldest first.

    Finds each position by binary search, as statements do. Ids of entries do not ascend exactly with time, so an entry around midnight may
    count for either day.
    """
    rows = await connection.fetch(_HISTORY, customer_id, list(account_ids), DAYS, _EVERY)
    found: dict[int, list[int]] = {account_id: [] for account_id in account_ids}
    for row in rows:
        found[row["account_id"]].append(row["balance_minor"])
    return found


def _halved_days(name: str, start: Fragment) -> Fragment:
    """Returns SQL for a recursive table, as `_halved` does, of several accounts and days. `start` selects its first rows."""
    return compose(
        """
        {name} (account_id, at, low, high, middle) AS (
            {start}
            UNION ALL
            SELECT half.account_id, half.at, half.low, half.high, (half.low + half.high) / 2 FROM (
                SELECT h.account_id, h.at, CASE WHEN probe.is_before THEN probe.id ELSE low END AS low,
                       CASE WHEN probe.is_before THEN high ELSE middle END AS high
                FROM {name} h LEFT JOIN LATERAL (
                    SELECT e.id, e.created_at < h.at AS is_before FROM entries e
                    WHERE e.customer_id = $1 AND e.account_id = h.account_id AND e.id > h.middle ORDER BY e.id LIMIT 1) AS probe ON true
                WHERE low < high) AS half)
        """,
        name=identifier(name),
        start=start,
    )


# The oldest day is searched first. For the other days, only the entries after it are searched.
_HISTORY = compose(
    """
    WITH RECURSIVE last (account_id, id) AS MATERIALIZED (
        SELECT account.id, coalesce((
            SELECT e.id FROM entries e WHERE e.customer_id = $1 AND e.account_id = account.id ORDER BY e.id DESC LIMIT 1), 0)::bigint
        FROM unnest($2::int[]) AS account (id)),
    days (at, is_oldest) AS MATERIALIZED (
        SELECT date_trunc('day', clock_now(), 'UTC') - n * interval '1 day', row_number() OVER (ORDER BY n DESC) = 1
        FROM generate_series(0, $3::int - 1, $4::int) AS n),
    {oldest},
    {halved}
    SELECT account_id, coalesce((
        SELECT e.balance_minor FROM entries e
        WHERE e.customer_id = $1 AND e.account_id = h.account_id AND e.id <= h.low ORDER BY e.id DESC LIMIT 1), 0) AS balance_minor
    FROM halved h WHERE low >= high ORDER BY account_id, at
    """,
    oldest=_halved_days(
        "oldest",
        Fragment(
            "SELECT last.account_id, days.at, 0::bigint, last.id, last.id / 2 FROM last, days WHERE days.is_oldest"
        ),
    ),
    halved=_halved_days(
        "halved",
        Fragment("""
        SELECT o.account_id, days.at, o.low, ends.high, (o.low + ends.high) / 2
        FROM oldest o JOIN last USING (account_id) CROSS JOIN days
        CROSS JOIN LATERAL (SELECT CASE WHEN days.is_oldest THEN o.low ELSE last.id END AS high) AS ends
        WHERE o.low >= o.high
        """),
    ),
)


# An entry has the time at which its transaction began. After that it may have waited this long for the lock of the account.
SKEW = timedelta(minutes=2)
_CLOSE = timedelta(seconds=2)  # most entries wait no longer
_ENTRIES_AT_ONCE = 2_000


class StatementEntry(msgspec.Struct, frozen=True):
    """One entry: its kind, the change of the balance, and the balance after it, in minor units."""

    id: int
    at: datetime
    kind: str  # top_up, transfer, settlement, order or refund
    order_reference: str | None
    # The caller's reference of the order, if it has one; or the reference of a top-up or settlement.
    external_reference: str | None
    amount_minor: int
    balance_minor: int
    counterpart: str | None  # the name of the other account, for a transfer


class Statement(msgspec.Struct, frozen=True):
    """An account's entries with ids from `first` to below `end`. Balances are in minor units."""

    customer_id: int
    account_id: int
    first: int
    end: int
    opening_minor: int
    closing_minor: int
    orders_of: int | None  # the person whose orders alone are named; None for all


def month_of(at: datetime, months: int = 0) -> tuple[datetime, datetime]:
    """Returns the first instant of the month of `at`, or of one so many months later, and the first of the month after it."""
    first = at.year * 12 + at.month - 1 + months
    since, until = (
        at.replace(year=n // 12, month=n % 12 + 1, day=1, hour=0, minute=0, second=0, microsecond=0)
        for n in (first, first + 1)
    )
    return since, until


async def read_statement(
    connection: Connection,
    customer_id: int,
    account_id: int,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    orders_of: int | None = None,
) -> Statement:
    """Returns the statement of a customer's account from `since` to before `until`; without them, of all its entries until now.

    With `orders_of`, entries name only the orders that this person placed.
    """
    account = (customer_id, account_id)
    first = 0 if since is None else await _first_entry(connection, account, since)
    end = await (_end(connection, account) if until is None else _first_entry(connection, account, until))
    return Statement(
        *account,
        first,
        end,
        await _balance_before(connection, account, first),
        await _balance_before(connection, account, end),
        orders_of,
    )


class Place(msgspec.Struct, frozen=True):
    """The start of a period in an account: the id of its first entry, and the balance before it in minor units."""

    first: int
    balance_minor: int


async def read_places(
    connection: Connection, customer_id: int, account_id: int, instants: Iterable[datetime]
) -> list[Place]:
    """Returns the starts of periods in a customer's account, as in statements."""
    account = (customer_id, account_id)
    firsts = [await _first_entry(connection, account, at) for at in instants]
    return [Place(first, await _balance_before(connection, account, first)) for first in firsts]


async def statement_entries(
    database: Database, scope: Scope, statement: Statement
) -> AsyncIterator[list[StatementEntry]]:
    """Returns the entries of a statement, oldest first, some thousand at a time. Holds no connection in between, so the reader may be slow.

    Later entries are not included: entries never change, and a statement has a fixed end.
    """
    after = None
    while True:
        entries = await database.read(scope, statement_page, statement, after, _ENTRIES_AT_ONCE)
        yield entries
        if len(entries) < _ENTRIES_AT_ONCE:
            return
        after = entries[-1].id


async def statement_page(
    connection: Connection, statement: Statement, after: int | None, most: int
) -> list[StatementEntry]:
    """Returns a page of the entries of a statement, oldest first: its first ones, or those after an id."""
    since = max(statement.first - 1, after or 0)
    named = (statement.customer_id, statement.account_id, since, statement.end, most, statement.orders_of)
    rows = await connection.fetch(_PAGE, *named)
    return [StatementEntry(**row) for row in rows]


# A customer and its account, by id.
_Account = tuple[int, int]


async def order_entries(
    connection: Connection, customer_id: int, account_id: int, order_id: int, moments: Iterable[datetime]
) -> list[StatementEntry]:
    """Returns the entries of an order on the account that paid for it, the payment and refunds, which were written at `moments`.

    There is no index of entries by order (docs/decisions/0044-no-index-by-order.md). So it reads the entries of some seconds around each
    time, or of some minutes if it finds no entry of the order with exactly that time.
    """
    found: dict[int, StatementEntry] = {}
    for at in moments:
        for around in (_CLOSE, SKEW):
            rows = await connection.fetch(_OF_ORDER, customer_id, account_id, at - around, at + around, order_id)
            found |= {row["id"]: StatementEntry(**row) for row in rows}
            if any(row["at"] == at for row in rows):
                break
    return [found[id_] for id_ in sorted(found)]


async def find_entry(
    connection: Connection, customer_id: int, account_id: int, transfer_id: int, at: datetime
) -> int | None:
    """Returns the id of a transfer's entry on an account, written at `at`; None if it is not there."""
    named = (customer_id, account_id, at - SKEW, at + SKEW, transfer_id)
    entry_id: int | None = await connection.fetchval(_OF_TRANSFER, *named)
    return entry_id


async def _balance_before(connection: Connection, account: _Account, entry_id: int) -> int:
    balance_minor: int | None = await connection.fetchval(_BALANCE_BEFORE, *account, entry_id)
    return balance_minor or 0


async def _first_entry(connection: Connection, account: _Account, at: datetime) -> int:
    """Returns the id of the account's first entry at this time or later, or the id after its last entry.

    Ids ascend with time except for the skew, so binary search finds the position in some thirty look-ups of the primary key, and then reads the
    last part: all in one statement.
    """
    found: int | None = await connection.fetchval(_FIRST_ENTRY, *account, at, at - SKEW)
    return await _end(connection, account) if found is None else found


async def _end(connection: Connection, account: _Account) -> int:
    """Returns the id after the account's last entry. Ids of one account ascend as its entries are committed."""
    last: int | None = await connection.fetchval(_LAST_ENTRY, *account)
    return (last or 0) + 1


def _halved(name: str, at: str) -> Fragment:
    """Returns SQL for a recursive table, a binary search in account $2 of customer $1. In its row with `low >= high`, `low` is the last entry
    before the instant `at`, as far as ids ascend with time.

    The index is searched for a plain column, `middle`: under row-level security, an expression over columns would be evaluated for each row.
    """
    return compose(
        """
        {name} (low, high, middle) AS (
            SELECT 0::bigint, last.id, last.id / 2
            FROM (SELECT coalesce(({last}), 0)::bigint AS id) AS last
            UNION ALL
            SELECT half.low, half.high, (half.low + half.high) / 2 FROM (
                SELECT CASE WHEN probe.is_before THEN probe.id ELSE low END AS low,
                       CASE WHEN probe.is_before THEN high ELSE middle END AS high
                FROM {name} LEFT JOIN LATERAL (
                    SELECT id, created_at < {at} AS is_before FROM entries
                    WHERE customer_id = $1 AND account_id = $2 AND id > middle ORDER BY id LIMIT 1) AS probe ON true
                WHERE low < high) AS half)
    """,
        name=identifier(name),
        at=placeholder(at),
        last=_LAST_ENTRY,
    )


# The first entry at $3 or later. The id of the first entry at $4 or later is not higher.
_FIRST_ENTRY = compose(
    """
    WITH RECURSIVE {halved}
    SELECT id FROM entries
    WHERE customer_id = $1 AND account_id = $2 AND id > (SELECT low FROM halved WHERE low >= high) AND created_at >= $3
    ORDER BY id LIMIT 1
""",
    halved=_halved("halved", "$4"),
)


def _between(found: Fragment) -> Fragment:
    """Returns SQL for the entries `found` between $3 and $4."""
    return compose(
        """
    WITH RECURSIVE {since}, {until}
    SELECT e.id, e.created_at AS at, e.kind, NULL AS order_reference, NULL AS external_reference,
           e.amount_minor, e.balance_minor, NULL AS counterpart
    FROM entries e
    WHERE e.customer_id = $1 AND e.account_id = $2 AND e.id > (SELECT low FROM since WHERE low >= high)
      AND e.id <= (SELECT low FROM until WHERE low >= high) AND {found}
    ORDER BY e.id
""",
        since=_halved("since", "$3"),
        until=_halved("until", "$4"),
        found=found,
    )


_OF_ORDER = _between(Fragment("e.order_id = $5"))
_OF_TRANSFER = _between(Fragment("e.movement_id = $5"))
