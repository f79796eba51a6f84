"""Writes the read models: each function runs one statement for all its rows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import groupby

import msgspec
from asyncpg import UniqueViolationError

from largesse.db.fragments import Fragment, compose, each, join, names
from largesse.db.pool import Connection
from largesse.reports.sums import SUMS, Sums, SumsKey

_encode = msgspec.json.Encoder().encode


class Group(msgspec.Struct, frozen=True):
    """The properties that orders of a group share: the columns of `report_groups` without its id. 0 means none."""

    customer_id: int
    environment: str
    currency: str
    source: str
    product_id: int
    collection_id: int
    account_id: int
    service_account_id: int
    user_id: int


class ReportedOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `report_orders`."""

    customer_id: int
    order_id: int
    environment: str
    group_id: int
    state: str
    created_at: datetime
    template_id: int  # 0 for none
    codes: int
    spent_minor: int
    claimed: int
    fulfilled: int
    expired: int
    cancelled: int
    bounced: int
    claim_days: list[date]
    claim_counts: list[int]
    cancel_days: list[date]
    cancel_counts: list[int]
    refund_days: list[date]
    refund_amounts: list[int]  # minor units
    ages: list[int]
    erasable_since: datetime | None  # the result of `ended_at`; also None once its recipients were erased


WordedOrder = tuple[int, str, datetime, int]  # customer, environment, time and id, as in `report_words`

_GROUP = Group.__struct_fields__
_GROUP_COLUMNS = names(_GROUP)
_GROUP_TYPES = Fragment("""
    customer_id integer, environment text, currency text, source text COLLATE "C", product_id integer, collection_id integer,
    account_id integer, service_account_id integer, user_id integer
""")
_ADD_GROUPS = compose(
    """
    INSERT INTO report_groups ({columns})
    SELECT {columns} FROM json_to_recordset($1::json) AS new ({types})
    ON CONFLICT DO NOTHING
    """,
    columns=_GROUP_COLUMNS,
    types=_GROUP_TYPES,
)
_FIND_GROUPS = compose(
    "SELECT g.id, {columns} FROM json_to_recordset($1::json) AS wanted ({types}) JOIN report_groups AS g ON {same}",
    columns=each("g.{name}", _GROUP, ", "),
    types=_GROUP_TYPES,
    same=each("g.{name} = wanted.{name}", _GROUP, " AND "),
)
_ORDER = ReportedOrder.__struct_fields__
_WRITE_ORDERS = compose(
    """
    INSERT INTO report_orders ({columns})
    SELECT {columns} FROM json_populate_recordset(NULL::report_orders, $1::json)
    ORDER BY customer_id, order_id
    ON CONFLICT (customer_id, order_id) DO UPDATE SET {changes}
    """,
    columns=names(_ORDER),
    changes=each("{name} = excluded.{name}", [name for name in _ORDER if name not in {"customer_id", "order_id"}]),
)
_IS_REPORTED = "SELECT EXISTS (SELECT FROM report_orders WHERE customer_id = $1 AND order_id = $2)"
# Sends each order once, and each word once with the positions of its orders, as most words are shared by several orders.
# Subscripts are quick only for types of a fixed length, so environments are sent as booleans.
_ADD_WORDS = """
    INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
    SELECT ($1::int[])[place], CASE WHEN ($2::bool[])[place] THEN 'production' ELSE 'staging' END, word,
           ($3::timestamptz[])[place], ($4::int[])[place]
    FROM unnest($5::text[], $6::text[]) AS found (word, places), unnest(string_to_array(places, ',')::int[]) AS place
"""
_ADD_MISSING_WORDS = compose("{add} ON CONFLICT DO NOTHING", add=Fragment(_ADD_WORDS))
# Finds each row by its whole key, because very many orders may have the same word.
REMOVE_WORDS = """
    DELETE FROM report_words AS w USING (
        SELECT o.order_id, o.environment, o.created_at, word COLLATE "C" AS word
        FROM report_orders AS o CROSS JOIN unnest($3::text[]) AS word
        WHERE o.customer_id = $1 AND o.order_id = ANY($2::int[])) AS gone
    WHERE w.customer_id = $1 AND w.environment = gone.environment AND w.word = gone.word AND w.created_at = gone.created_at
      AND w.order_id = gone.order_id
"""
_SUMS_KEY = ("customer_id", "grain", "day", "group_id", "state")
_ADD_TO_SUMS = compose(
    """
    INSERT INTO report_sums ({key}, {sums})
    SELECT * FROM unnest($1::int[], $2::text[], $3::date[], $4::bigint[], $5::text[], {values})
    ON CONFLICT ({key}) DO UPDATE SET {added}
    """,
    key=names(_SUMS_KEY),
    sums=names(SUMS),
    values=join(Fragment(", "), [compose("${at}::bigint[]", at=at) for at, _ in enumerate(SUMS, 1 + len(_SUMS_KEY))]),
    added=each("{name} = report_sums.{name} + excluded.{name}", SUMS),
)


async def group_ids(connection: Connection, groups: Iterable[Group]) -> dict[Group, int]:
    """Returns the id of each group. Adds new groups."""
    wanted = sorted(set(groups), key=msgspec.structs.astuple)
    found = await _find_groups(connection, wanted)
    new = [group for group in wanted if group not in found]
    if new:
        await connection.execute(_ADD_GROUPS, _encode(new).decode())
        found |= await _find_groups(connection, new)
    return found


async def _find_groups(connection: Connection, groups: Sequence[Group]) -> dict[Group, int]:
    rows = await connection.fetch(_FIND_GROUPS, _encode(groups).decode())
    return {Group(*(row[name] for name in _GROUP)): row["id"] for row in rows}


async def write_orders(connection: Connection, orders: Sequence[ReportedOrder]) -> None:
    """Writes the state of orders, and replaces their earlier one."""
    await connection.execute(_WRITE_ORDERS, _encode(orders).decode())


async def is_reported(connection: Connection, customer_id: int, order_id: int) -> bool:
    """Returns whether the read models have an order."""
    return bool(await connection.fetchval(_IS_REPORTED, customer_id, order_id))


async def add_words(connection: Connection, words: Mapping[WordedOrder, Collection[str]], *, may_exist: bool) -> None:
    """Adds words of orders. Looks for existing ones only with `may_exist`, as that takes half as long again.

    Sorts them as the index does, which saves a third of the time.
    """
    orders = sorted(words)
    found: list[tuple[str, str]] = []
    for _, places in groupby(range(len(orders)), key=lambda place: orders[place][:2]):
        with_word: dict[str, list[str]] = defaultdict(list)
        for place in places:
            shown = str(place + 1)
            for word in words[orders[place]]:
                with_word[word].append(shown)
        found += [(word, ",".join(with_word[word])) for word in sorted(with_word)]
    if found:
        customers, environments, times, ids = zip(*orders, strict=True)
        are_live = [environment == "production" for environment in environments]
        columns = (customers, are_live, times, ids, *zip(*found, strict=True))
        if not may_exist:
            try:
                async with connection.transaction():
                    await connection.execute(_ADD_WORDS, *columns)
            except UniqueViolationError:  # for example after a repair by hand
                may_exist = True
        if may_exist:
            await connection.execute(_ADD_MISSING_WORDS, *columns)


async def remove_words(
    connection: Connection, customer_id: int, order_ids: Sequence[int], words: Iterable[str]
) -> None:
    """Removes words from a customer's orders."""
    await connection.execute(REMOVE_WORDS, customer_id, order_ids, sorted(words))


async def add_to_sums(connection: Connection, changes: Mapping[SumsKey, Sums]) -> None:
    """Adds the changes to the sums, with new rows where there are none."""
    if changes:
        rows = [(*key, *(getattr(sums, name) for name in SUMS)) for key, sums in sorted(changes.items())]
        columns = zip(*rows, strict=True)
        await connection.execute(_ADD_TO_SUMS, *(list(column) for column in columns))
