"""The SQL of budgets: which ones limit an order, what was spent of them, and what refunds add to them again.

Orders and refunds lock the customer's sales account before they read or write budgets. Each statement names one customer, so that a cluster runs
it on the customer's node.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from largesse.budgets.model import ALL, Budget, Charge, PeriodKey, Spender, period_start
from largesse.db.fragments import Fragment, compose, day, placeholder
from largesse.db.pipeline import Statement
from largesse.db.pool import Connection, Row, is_distributed
from largesse.db.scope import Place
from largesse.db.sharding import at_node
from largesse.db.statements import insert, run_together

_COLUMNS = Fragment("""
    b.customer_id, b.id, b.environment, b.currency, b.name, b.kind, b.subject_id, b.role, b.period, b.limit_minor, b.per_gift_minor,
    b.starts_at
""")
_OF_BUDGET = Fragment("b.customer_id")


def _people(customer: Fragment = _OF_BUDGET) -> Fragment:
    """Returns SQL for the people of a budget `b`. On a cluster, each subquery must name the customer by a placeholder."""
    return compose(
        "ARRAY(SELECT p.user_id FROM budget_people p WHERE p.customer_id = {customer} AND p.budget_id = b.id) AS user_ids",
        customer=customer,
    )


def _spent(month: Fragment, quarter: Fragment, customer: Fragment = _OF_BUDGET) -> Fragment:
    """Returns SQL for what was spent of a budget `b` in its current period. `month` and `quarter` are the first days of periods."""
    return compose(
        """
        coalesce((SELECT s.spent_minor FROM budget_periods s
                  WHERE s.customer_id = {customer} AND s.budget_id = b.id AND s.starts_on = CASE b.period
                      WHEN 'month' THEN {month}::date WHEN 'quarter' THEN {quarter}::date ELSE {all} END),
                 0) AS spent_minor
    """,
        month=month,
        quarter=quarter,
        all=day(ALL),
        customer=customer,
    )


def _limiting(pin: str) -> Fragment:
    """Returns SQL for the budgets that may limit spenders, found by customer, environment and currency, and by person or account.

    Uses a subquery for each spender, not a join, as in `orders/reading.py`.
    """
    customer = placeholder(pin) if pin else _OF_BUDGET
    return compose(
        """
        SELECT coalesce(json_agg(found), '[]')::text
        FROM unnest($1::int[], $2::text[], $3::text[]) AS wanted (customer_id, environment, currency)
        CROSS JOIN LATERAL (
            SELECT {columns}, {people}, {spent} FROM budgets b
            WHERE b.customer_id = wanted.customer_id AND b.environment = wanted.environment AND b.currency = wanted.currency
              AND b.ended_at IS NULL {node} AND CASE b.kind
                WHEN 'person' THEN b.subject_id = ANY($4::int[])
                WHEN 'role' THEN cardinality($4::int[]) > 0
                WHEN 'group' THEN EXISTS (
                    SELECT FROM budget_people p
                    WHERE p.customer_id = {customer} AND p.budget_id = b.id AND p.user_id = ANY($4::int[]))
                WHEN 'service_account' THEN b.subject_id = ANY($5::int[])
                ELSE b.subject_id = ANY($6::int[]) END
            OFFSET 0) AS found
    """,
        columns=_COLUMNS,
        people=_people(customer),
        spent=_spent(Fragment("$7::text"), Fragment("$8::text"), customer),
        customer=customer,
        node=at_node("b.customer_id", pin),
    )


_LIMITING = {is_on_node: _limiting("$9" if is_on_node else "") for is_on_node in (False, True)}
_decode = msgspec.json.Decoder(list[Budget]).decode
_ADD_ORDERS = Fragment("INSERT INTO budget_orders (customer_id, reference, budget_id, starts_on, spent_minor)")
_ADD_PERIODS = Fragment("INSERT INTO budget_periods AS known (customer_id, budget_id, starts_on, spent_minor)")
_ADD_UP = Fragment(
    "ON CONFLICT (customer_id, budget_id, starts_on) DO UPDATE SET spent_minor = known.spent_minor + excluded.spent_minor"
)
_CHARGE_COLUMNS = Fragment("customer_id integer, budget_id integer, starts_on date, reference text, spent_minor bigint")
_REFUND_ORDER = """
    UPDATE budget_orders SET refunded_minor = refunded_minor + $3 WHERE customer_id = $1 AND reference = $2
    RETURNING budget_id, starts_on
"""
_REFUND_PERIOD = """
    UPDATE budget_periods SET spent_minor = spent_minor - $4 WHERE customer_id = $1 AND budget_id = $2 AND starts_on = $3
"""
_LIST = compose(
    """
    SELECT {columns}, {people}, {spent}
    FROM budgets b WHERE b.customer_id = $1 AND b.environment = $2 AND b.ended_at IS NULL ORDER BY lower(b.name), b.id
""",
    columns=_COLUMNS,
    people=_people(),
    spent=_spent(Fragment("$3"), Fragment("$4")),
)
_ADD = """
    INSERT INTO budgets (customer_id, environment, currency, name, kind, subject_id, role, period, limit_minor, per_gift_minor, starts_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id
"""
_CHANGE = "UPDATE budgets SET name = $3, limit_minor = $4, per_gift_minor = $5 WHERE customer_id = $1 AND id = $2"
_END = "UPDATE budgets SET ended_at = clock_now() WHERE customer_id = $1 AND id = $2"
_DROP_PEOPLE = "DELETE FROM budget_people WHERE customer_id = $1 AND budget_id = $2"
_ADD_PEOPLE = Fragment("INSERT INTO budget_people (customer_id, budget_id, user_id)")
_IS_ANY = "SELECT EXISTS (SELECT FROM budgets WHERE customer_id = $1 AND environment = $2 AND currency = $3 AND ended_at IS NULL)"
# The last order that is certainly before the period: at least an hour before it, as an order gets its id a moment before it is placed.
_LAST_BEFORE = """
    SELECT order_id FROM report_orders
    WHERE customer_id = $1 AND environment = $2 AND created_at < $3::timestamptz - interval '1 hour'
    ORDER BY created_at DESC, order_id DESC LIMIT 1
"""


def _counting_earlier(pin: str) -> Fragment:
    """Returns SQL that counts orders towards a budget, found by `orders_newest` (see `orders/listing.py`)."""
    return compose(
        """
    INSERT INTO budget_orders (customer_id, reference, budget_id, starts_on, spent_minor, refunded_minor)
    SELECT o.customer_id, o.reference, $5::int, $6::date, o.total_minor, o.total_minor / o.code_count * (
        SELECT count(*) FROM line_states s
        WHERE s.customer_id = o.customer_id AND s.order_id = o.id AND s.state = 'cancelled')
    FROM orders o
    WHERE o.customer_id::bigint = $1 AND o.environment = $2 AND o.id::bigint > $3 AND o.created_at >= $4 AND o.currency = $7
      AND (o.user_id = ANY($8::int[]) OR o.service_account_id = $9::int OR o.account_id = $10::int)
      {node}
    """,
        node=at_node("o.customer_id", pin),
    )


_COUNT_EARLIER = {is_on_node: _counting_earlier("$11" if is_on_node else "") for is_on_node in (False, True)}
_SUM_EARLIER = """
    INSERT INTO budget_periods (customer_id, budget_id, starts_on, spent_minor)
    SELECT $1::int, $2::int, $3::date, coalesce(sum(spent_minor - refunded_minor), 0)
    FROM budget_orders WHERE customer_id = $1 AND budget_id = $2 AND starts_on = $3
    RETURNING spent_minor
"""
SPENT_IN_PERIOD = "SELECT spent_minor FROM budget_periods WHERE customer_id = $1 AND budget_id = $2 AND starts_on = $3"
_SENDERS = "SELECT id FROM users WHERE customer_id = $1 AND is_active AND role = $2"
# Names of the subjects of budgets: people, service accounts and accounts.
_USER_NAMES = "SELECT id, name FROM users WHERE customer_id = $1 AND id = ANY($2::int[])"
_SERVICE_ACCOUNT_NAMES = "SELECT id, name FROM service_accounts WHERE customer_id = $1 AND id = ANY($2::int[])"
_ACCOUNT_NAMES = "SELECT id, name FROM accounts WHERE customer_id = $1 AND environment = $3 AND id = ANY($2::int[])"
_FIND_SUBJECT: Mapping[str, str] = {
    "person": "SELECT name FROM users WHERE customer_id = $1 AND id = $2 AND is_active",
    "service_account": "SELECT name FROM service_accounts WHERE customer_id = $1 AND id = $2",
    "account": """
        SELECT name FROM accounts
        WHERE customer_id = $1 AND id = $2 AND environment = $3 AND currency = $4 AND kind = 'funding' AND closed_at IS NULL
    """,
}
_OF_MEMBER = """
    SELECT b.name FROM budgets b
    WHERE b.customer_id = $1 AND b.ended_at IS NULL AND (
        (b.kind = 'person' AND b.subject_id = $2) OR EXISTS (
            SELECT FROM budget_people p WHERE p.customer_id = b.customer_id AND p.budget_id = b.id AND p.user_id = $2))
    ORDER BY b.name, b.id
"""


def limiting(spenders: Collection[Spender], at: datetime, *, on_node: bool = False) -> Statement:
    """Returns the statement that reads the budgets that may limit these spenders. Equal spenders give equal statements."""
    return Statement(
        _LIMITING[on_node],
        (
            *map(list, zip(*sorted({one.scope for one in spenders}), strict=True)),
            _ids(one.user_id for one in spenders),
            _ids(one.service_account_id for one in spenders),
            _ids(one.account_id for one in spenders),
            period_start("month", at).isoformat(),
            period_start("quarter", at).isoformat(),
            *([next(iter(spenders)).customer_id] if on_node else []),  # on a cluster, a batch has one customer
        ),
    )


async def read_limiting(
    connection: Connection,
    spenders: Collection[Spender],
    at: datetime,
    read: tuple[Statement, str | None] | None = None,
) -> list[Budget]:
    """Returns the budgets that may limit these spenders. Call it after the accounts are locked.

    A statement that began before the lock would not see what the last holder committed. `read` is a statement that already ran after
    the lock, with its answer: it is used if it is the right one.
    """
    if not spenders:
        return []
    reading = limiting(spenders, at, on_node=is_distributed(connection))
    if read is not None and read[0] == reading:
        found = read[1]
    else:
        (found,) = await run_together(connection, reading)
    return sorted(_decode(found or "[]"), key=lambda budget: (budget.customer_id, budget.id))


def new_charges(charges: str) -> Fragment:
    """Returns SQL that adds orders to what was spent of their budgets: CTEs of a statement, each after a comma.

    `charges` is the placeholder of the `Charge`s as a JSON array.
    """
    return compose(
        """
        , new_budget_orders AS ({add_orders}
            SELECT customer_id, reference, budget_id, starts_on, spent_minor FROM json_to_recordset({charges}::json) AS new ({columns})
        ), new_budget_periods AS ({add_periods}
            SELECT customer_id, budget_id, starts_on, sum(spent_minor) FROM json_to_recordset({charges}::json) AS new ({columns})
            GROUP BY customer_id, budget_id, starts_on {add_up})
    """,
        add_orders=_ADD_ORDERS,
        charges=placeholder(charges),
        columns=_CHARGE_COLUMNS,
        add_periods=_ADD_PERIODS,
        add_up=_ADD_UP,
    )


async def charge_on_node(connection: Connection, charges: Sequence[Charge]) -> None:
    """Adds orders of one customer to what was spent of their budgets, on the customer's node."""
    sums: dict[PeriodKey, int] = {}
    for one in charges:
        key = one.customer_id, one.budget_id, one.starts_on
        sums[key] = sums.get(key, 0) + one.spent_minor
    orders = [(one.customer_id, one.reference, one.budget_id, one.starts_on, one.spent_minor) for one in charges]
    await insert(connection, _ADD_ORDERS, orders)
    for key, spent_minor in sums.items():
        await insert(connection, _ADD_PERIODS, [(*key, spent_minor)], conflict=_ADD_UP)


async def give_back(connection: Connection, customer_id: int, reference: str, amount_minor: int) -> None:
    """Takes a refund of an order off what was spent of its budgets, in the periods in which it was spent. The sales account must be locked."""
    for budget_id, starts_on in await connection.fetch(_REFUND_ORDER, customer_id, reference, amount_minor):
        await connection.execute(_REFUND_PERIOD, customer_id, budget_id, starts_on, amount_minor)


async def list_budgets(connection: Connection, place: Place, at: datetime) -> list[Budget]:
    """Returns the budgets of a customer in an environment, by name."""
    days = period_start("month", at), period_start("quarter", at)
    return [_budget(row) for row in await connection.fetch(_LIST, *place, *days)]


async def add_budget(connection: Connection, budget: Budget) -> int:
    """Adds a budget and returns its id."""
    budget_id: int = await connection.fetchval(
        _ADD,
        budget.customer_id,
        budget.environment,
        budget.currency,
        budget.name,
        budget.kind,
        budget.subject_id,
        budget.role,
        budget.period,
        budget.limit_minor,
        budget.per_gift_minor,
        budget.starts_at,
    )
    rows = [(budget.customer_id, budget_id, user_id) for user_id in sorted(budget.user_ids)]
    await insert(connection, _ADD_PEOPLE, rows)
    return budget_id


async def change_budget(connection: Connection, budget: Budget) -> None:
    """Saves the name, the sum and the largest price of a gift of a budget, and the people of a group."""
    key = budget.customer_id, budget.id
    await connection.execute(_CHANGE, *key, budget.name, budget.limit_minor, budget.per_gift_minor)
    if budget.kind == "group":
        await connection.execute(_DROP_PEOPLE, *key)
        rows = [(*key, user_id) for user_id in sorted(budget.user_ids)]
        await insert(connection, _ADD_PEOPLE, rows)


async def end_budget(connection: Connection, customer_id: int, budget_id: int) -> None:
    """Ends a budget, so that it no longer limits orders."""
    await connection.execute(_END, customer_id, budget_id)


async def has_budgets(connection: Connection, customer_id: int, environment: str, currency: str) -> bool:
    """Returns whether any budget limits orders in a currency."""
    return bool(await connection.fetchval(_IS_ANY, customer_id, environment, currency))


async def count_earlier(connection: Connection, budget: Budget, since: datetime, user_ids: Collection[int]) -> int:
    """Counts the orders since that time towards a new budget, and returns what they cost. The sales account must be locked.

    `user_ids` are the people whose orders count, if the budget is for people.
    """
    key = budget.key(budget.starts_at)
    place = budget.customer_id, budget.environment
    last = await connection.fetchval(_LAST_BEFORE, *place, since)
    on_node = is_distributed(connection)
    await connection.execute(
        _COUNT_EARLIER[on_node],
        *place,
        last or 0,
        since,
        *key[1:],
        budget.currency,
        list(user_ids),
        budget.subject_id if budget.kind == "service_account" else None,
        budget.subject_id if budget.kind == "account" else None,
        *([budget.customer_id] if on_node else []),
    )
    return int(await connection.fetchval(_SUM_EARLIER, *key))


async def list_senders(connection: Connection, customer_id: int, role: str) -> list[int]:
    """Returns the ids of the active people with a role."""
    return [row["id"] for row in await connection.fetch(_SENDERS, customer_id, role)]


async def find_subject(connection: Connection, kind: str, subject_id: int, place: tuple[int, str, str]) -> str | None:
    """Returns the name of the person, service account or open account that a budget is about; None if there is none with that id."""
    customer_id, *rest = place
    arguments = rest if kind == "account" else []
    name: str | None = await connection.fetchval(_FIND_SUBJECT[kind], customer_id, subject_id, *arguments)
    return name


async def subject_names(connection: Connection, budgets: Iterable[Budget]) -> dict[tuple[str, int], str]:
    """Returns the names of the subjects of a customer's budgets, by kind and id. People of groups have the kind `person`."""
    ids: dict[str, set[int]] = {"person": set(), "service_account": set(), "account": set()}
    place = (0, "")
    for budget in budgets:
        place = (budget.customer_id, budget.environment)
        if budget.subject_id is not None:
            ids.setdefault(budget.kind, set()).add(budget.subject_id)
        ids["person"] |= budget.user_ids
    names: dict[tuple[str, int], str] = {}
    for kind, query, more in (
        ("person", _USER_NAMES, ()),
        ("service_account", _SERVICE_ACCOUNT_NAMES, ()),
        ("account", _ACCOUNT_NAMES, place[1:]),
    ):
        if ids[kind]:
            rows = await connection.fetch(query, place[0], sorted(ids[kind]), *more)
            names |= {(kind, row["id"]): row["name"] for row in rows}
    return names


async def list_names_of_member(connection: Connection, customer_id: int, user_id: int) -> list[str]:
    """Returns the names of the budgets for a person, or for a group with the person, for an export."""
    return [row["name"] for row in await connection.fetch(_OF_MEMBER, customer_id, user_id)]


def _ids(given: Iterable[int | None]) -> list[int]:
    return sorted({one for one in given if one is not None})


def _budget(row: Row) -> Budget:
    return Budget(**{**row, "user_ids": frozenset(row["user_ids"])})
