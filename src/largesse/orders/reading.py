"""Reading what a batch of orders is decided on, under the locks of its accounts."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.database import Connection
from largesse.identity import Standing, standings
from largesse.orders.order import Order, ReferenceKey
from largesse.orders.rules import Ground, LockedAccount

# What is looked up for a batch is planned once a connection: its plan does not depend on how much is looked up.
BEGIN = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan;"


async def read_ground(connection: Connection, batch: Sequence[Order], *, ids: Sequence[int] = ()) -> Ground:
    """Reads what the orders of a batch are decided on.

    `ids` are those of the orders where they have been drawn before.
    """
    references = [order.reference_key for order in batch if order.reference_key is not None]
    row = await connection.fetchrow(
        f"""
        SELECT now() AS now,
               ARRAY(SELECT nextval('orders_id_seq')::int FROM generate_series(1, $1)) AS ids,
               ARRAY(SELECT nextval('movements_id_seq') FROM generate_series(1, $2)) AS movement_ids,
               ARRAY(SELECT ROW(id, plan, active) FROM ({standings("$3::int[]")}) AS keys) AS standings,
               ARRAY(SELECT ROW(
                   id, customer_id, environment, kind, currency, balance_minor, open_to_all,
                   ARRAY(SELECT service_account_id FROM account_service_accounts WHERE account_id = accounts.id))
                   FROM accounts WHERE id = ANY($4::int[])) AS accounts,
               {_holders("$5", "$6", "$7")} AS holders
        """,  # noqa: S608 - constants
        0 if ids else len(batch),
        len(batch),
        list({order.principal.key_id for order in batch}),
        [account_id for account_id, _ in _accounts(batch)],
        *_columns(references),
    )
    assert row is not None
    return Ground(
        now=row["now"],
        ids=iter(ids or row["ids"]),
        movement_ids=iter(row["movement_ids"]),
        standings={key_id: Standing(*rest) for key_id, *rest in row["standings"]},
        references=_taken(references, row["holders"]),
        accounts={account[0]: LockedAccount(*account) for account in row["accounts"]},
    )


async def lock_accounts(connection: Connection, batch: Sequence[Order], *, begin: bool = False) -> None:
    """Locks every account the batch may touch, in id order, until its transaction ends.

    Ids of customers who have no order in the batch find nothing. What is decided on is read by a statement of its own: one
    that waited for a lock still sees the other tables as they were before.

    With `begin` the transaction begins with the same round trip: the simple protocol takes several statements at once, and
    no parameters, which numbers do not need.
    """
    accounts = _accounts(batch)
    ids, customers = (",".join(map(str, set(column))) for column in zip(*accounts, strict=True))
    await connection.execute(
        f"{BEGIN if begin else ''} SELECT FROM accounts WHERE id IN ({ids}) AND customer_id IN ({customers}) "
        "ORDER BY id FOR NO KEY UPDATE"
    )


def _accounts(batch: Sequence[Order]) -> set[tuple[int, int]]:
    """The ids of the accounts that orders may touch, each with the customer whose it has to be."""
    accounts: set[tuple[int, int]] = set()
    for order in batch:
        customer_id = order.principal.customer_id
        accounts.add((order.own_accounts.sales, customer_id))
        accounts.add(
            (order.own_accounts.receivable if order.account_id is None else order.account_id, customer_id)
        )
    return accounts


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
