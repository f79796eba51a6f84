"""Reading what a batch of orders is decided on, under the locks of its accounts."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.database import Connection
from largesse.orders.order import Order, ReferenceKey
from largesse.orders.rules import Ground, LockedAccount


async def read_ground(
    connection: Connection, batch: Sequence[Order], *, lock: bool = True, ids: Sequence[int] = ()
) -> Ground:
    """Locks the batch's accounts (unless told not to), then reads what its orders are decided on.

    `ids` are those of the orders where they have been drawn before.
    """
    accounts = await lock_accounts(connection, batch, lock=lock)
    references = [order.reference_key for order in batch if order.reference_key is not None]
    row = await connection.fetchrow(
        f"""
        SELECT now() AS now,
               ARRAY(SELECT nextval('orders_id_seq')::int FROM generate_series(1, $1)) AS ids,
               ARRAY(SELECT nextval('movements_id_seq') FROM generate_series(1, $2)) AS movement_ids,
               ARRAY(SELECT id FROM api_keys WHERE id = ANY($3::int[])) AS live_keys,
               {_holders("$4", "$5", "$6")} AS holders
        """,  # noqa: S608 - constants
        0 if ids else len(batch),
        len(batch),
        list({order.principal.key_id for order in batch}),
        *_columns(references),
    )
    assert row is not None
    return Ground(
        now=row["now"],
        ids=iter(ids or row["ids"]),
        movement_ids=iter(row["movement_ids"]),
        live_keys=frozenset(row["live_keys"]),
        references=_taken(references, row["holders"]),
        accounts=accounts,
    )


async def lock_accounts(
    connection: Connection, batch: Sequence[Order], *, lock: bool = True
) -> dict[int, LockedAccount]:
    """Locks every account the batch may touch, in id order; ids of other customers' accounts find nothing."""
    wanted: set[tuple[int, int]] = set()
    for order in batch:
        customer_id = order.principal.customer_id
        wanted.add((order.own_accounts.sales, customer_id))
        wanted.add(
            (order.own_accounts.receivable if order.account_id is None else order.account_id, customer_id)
        )
    rows = await connection.fetch(
        f"""
        SELECT id, customer_id, environment, kind, currency, balance_minor, open_to_all,
               ARRAY(SELECT service_account_id FROM account_service_accounts WHERE account_id = accounts.id)
                   AS service_account_ids
        FROM accounts
        WHERE id = ANY($1::int[]) AND (id, customer_id) IN (SELECT * FROM unnest($1::int[], $2::int[]))
        ORDER BY id {"FOR NO KEY UPDATE" if lock else ""}
        """,  # noqa: S608 - constants
        [account_id for account_id, _ in wanted],
        [customer_id for _, customer_id in wanted],
    )
    return {row["id"]: LockedAccount(*row) for row in rows}


async def read_references(
    connection: Connection, references: Sequence[ReferenceKey]
) -> dict[ReferenceKey, str]:
    """Which of the callers' references are taken, and the reference of the order that holds each."""
    holders = await connection.fetchval(f"SELECT {_holders('$1', '$2', '$3')}", *_columns(references))
    return _taken(references, holders)


def _holders(customers: str, environments: str, references: str) -> str:
    """SQL for the orders that hold references, in their order, null for a free one.

    A subquery for each, not a join: the planner must walk the index whatever it thinks of the table's size.
    """
    return f"""
        ARRAY(
            SELECT (SELECT o.reference FROM orders o
                    WHERE o.customer_id = r.customer_id AND o.environment = r.environment
                      AND o.external_reference = r.external_reference)
            FROM unnest({customers}::int[], {environments}::text[], {references}::text[]) WITH ORDINALITY
                AS r (customer_id, environment, external_reference, at)
            ORDER BY at)
    """  # noqa: S608 - placeholders


def _columns(references: Sequence[ReferenceKey]) -> tuple[list[int], list[str], list[str]]:
    return [r[0] for r in references], [r[1] for r in references], [r[2] for r in references]


def _taken(references: Sequence[ReferenceKey], holders: Sequence[str | None]) -> dict[ReferenceKey, str]:
    return {reference: holder for reference, holder in zip(references, holders, strict=True) if holder}
