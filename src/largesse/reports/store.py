"""Writing the read models: each function one statement for all rows it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime

import msgspec

from largesse.db.pool import Connection
from largesse.reports.sums import SUMS, Sums, SumsKey

_encode = msgspec.json.Encoder().encode


class Group(msgspec.Struct, frozen=True):
    """What orders have in common; 0 stands for none. The columns of `report_groups` but for its id."""

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
    template_id: int  # 0: none
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
    ages: list[int]
    erasable_since: datetime | None  # see `ended_at`; None as well once its recipients were erased


class FoundWord(msgspec.Struct, frozen=True):
    """A row of `report_words`."""

    customer_id: int
    environment: str
    word: str
    created_at: datetime
    order_id: int


async def group_ids(connection: Connection, groups: Iterable[Group]) -> dict[Group, int]:
    """The id of each of the groups, which are added where they are new."""
    wanted = sorted(set(groups), key=msgspec.structs.astuple)
    found = await _find_groups(connection, wanted)
    new = [group for group in wanted if group not in found]
    if new:
        await connection.execute(
            f"""
            INSERT INTO report_groups ({_GROUP_COLUMNS})
            SELECT {_GROUP_COLUMNS} FROM json_to_recordset($1::json) AS new ({_GROUP_TYPES})
            ON CONFLICT DO NOTHING
            """,  # noqa: S608 - constants
            _encode(new).decode(),
        )
        found |= await _find_groups(connection, new)
    return found


async def _find_groups(connection: Connection, groups: Sequence[Group]) -> dict[Group, int]:
    same = " AND ".join(f"g.{name} = wanted.{name}" for name in Group.__struct_fields__)
    rows = await connection.fetch(
        f"""
        SELECT g.* FROM json_to_recordset($1::json) AS wanted ({_GROUP_TYPES})
        JOIN report_groups AS g ON {same}
        """,  # noqa: S608 - constants
        _encode(groups).decode(),
    )
    return {Group(*(row[name] for name in Group.__struct_fields__)): row["id"] for row in rows}


async def write_orders(connection: Connection, orders: Sequence[ReportedOrder]) -> None:
    """Writes the state of orders over their earlier one."""
    await connection.execute(_WRITE_ORDERS, _encode(orders).decode())


async def add_words(connection: Connection, words: Sequence[FoundWord]) -> None:
    """Adds words by which orders are found; those that are there stay."""
    if words:
        await connection.execute(
            """
            INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
            SELECT customer_id, environment, word, created_at, order_id FROM json_to_recordset($1::json)
                AS new (customer_id integer, environment text, word text, created_at timestamptz, order_id integer)
            ORDER BY customer_id, environment, word, created_at, order_id
            ON CONFLICT DO NOTHING
            """,
            _encode(words).decode(),
        )


async def remove_words(
    connection: Connection, customer_id: int, order_ids: Sequence[int], words: Iterable[str]
) -> None:
    """Has orders of a customer no longer found by these words."""
    await connection.execute(REMOVE_WORDS, customer_id, order_ids, sorted(words))


async def add_to_sums(connection: Connection, changes: Mapping[SumsKey, Sums]) -> None:
    """Adds to the sums, whose rows are made where they are new."""
    if changes:
        rows = [(*key, *(getattr(sums, name) for name in SUMS)) for key, sums in sorted(changes.items())]
        columns = zip(*rows, strict=True)
        await connection.execute(_ADD_TO_SUMS, *(list(column) for column in columns))


_GROUP_COLUMNS = ", ".join(Group.__struct_fields__)
_TYPES = {"environment": "text", "currency": "text", "source": 'text COLLATE "C"'}
_GROUP_TYPES = ", ".join(f"{name} {_TYPES.get(name, 'integer')}" for name in Group.__struct_fields__)

_ORDER_COLUMNS = ", ".join(ReportedOrder.__struct_fields__)
_CHANGING = [name for name in ReportedOrder.__struct_fields__ if name not in {"customer_id", "order_id"}]
_WRITE_ORDERS = f"""
    INSERT INTO report_orders ({_ORDER_COLUMNS})
    SELECT {_ORDER_COLUMNS} FROM json_populate_recordset(NULL::report_orders, $1::json)
    ORDER BY customer_id, order_id
    ON CONFLICT (customer_id, order_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _CHANGING)}
"""  # noqa: S608 - constants

# Each by its whole key, since every order may have the same word.
REMOVE_WORDS = """
    DELETE FROM report_words AS w USING (
        SELECT o.order_id, o.environment, o.created_at, word COLLATE "C" AS word
        FROM report_orders AS o CROSS JOIN unnest($3::text[]) AS word
        WHERE o.customer_id = $1 AND o.order_id = ANY($2::int[])) AS gone
    WHERE w.customer_id = $1 AND w.environment = gone.environment AND w.word = gone.word AND w.created_at = gone.created_at
      AND w.order_id = gone.order_id
"""

_SUMS_KEY = ("customer_id", "grain", "day", "group_id", "state")
_SUMS_TYPES = ("int", "text", "date", "bigint", "text", *("bigint" for _ in SUMS))
_ADD_TO_SUMS = f"""
    INSERT INTO report_sums ({", ".join((*_SUMS_KEY, *SUMS))})
    SELECT * FROM unnest({", ".join(f"${at}::{kind}[]" for at, kind in enumerate(_SUMS_TYPES, 1))})
    ON CONFLICT ({", ".join(_SUMS_KEY)}) DO UPDATE SET {", ".join(f"{name} = report_sums.{name} + excluded.{name}" for name in SUMS)}
"""  # noqa: S608 - constants
