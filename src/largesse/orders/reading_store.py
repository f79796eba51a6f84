"""The statements that read the context of a batch of orders: its accounts, with their locks, and the orders that have its references.

Parts that several statements share, such as the columns of an account, are written once. All statements are composed when the module is
imported, never for an order. A statement for the node of a customer has the customer as an additional argument.
"""

from largesse.customers.access import key_statuses
from largesse.db.fragments import NOTHING, Fragment, compose, placeholder
from largesse.db.sharding import at_node
from largesse.orders.ids import LAST_ID

TRANSACTION_ID = "SELECT pg_current_xact_id()::text"
_LOCK = Fragment("FOR NO KEY UPDATE")
_SKIP_LOCKED = Fragment("FOR NO KEY UPDATE SKIP LOCKED")
_UNMOVED = Fragment("OFFSET 0")  # makes the planner run a subquery for each row; a lock does the same


def _wanted_accounts(customers: str, ids: str, lock: Fragment, pin: str) -> Fragment:
    """Returns SQL for accounts from two arrays, of customers and of account ids. Finds and locks them in the order of the arrays.

    Uses a subquery for each, not a join, as in `_holders`. An account of another customer is not found. With a `pin`, the placeholder of the
    only customer, the SQL is for that customer's node.
    """
    return compose(
        """
        unnest({customers}::int[], {ids}::int[]) AS wanted (customer_id, account_id)
        CROSS JOIN LATERAL (
            SELECT id, customer_id, environment, kind, closed_at, currency, balance_minor, open_to_all, chain_head,
                   has_budgets FROM accounts
            WHERE customer_id = wanted.customer_id AND id = wanted.account_id {node} {lock}) AS found
    """,
        customers=placeholder(customers),
        ids=placeholder(ids),
        node=at_node("customer_id", pin),
        lock=lock or _UNMOVED,
    )


WAITING = compose("SELECT id FROM {accounts}", accounts=_wanted_accounts("$1", "$2", _LOCK, ""))
WAITING_ON_NODE = compose("SELECT id FROM {accounts}", accounts=_wanted_accounts("$1", "$2", _LOCK, "$3"))
# The key says whether customers are distributed over nodes.
FREE = {
    False: compose("SELECT id FROM {accounts}", accounts=_wanted_accounts("$1", "$2", _SKIP_LOCKED, "")),
    True: compose("SELECT id FROM {accounts}", accounts=_wanted_accounts("$1", "$2", _SKIP_LOCKED, "$3")),
}


def _holders(customers: str, environments: str, references: str, pin: str) -> Fragment:
    """Returns SQL for the orders that have the given references, in the order of the references; null for a free one.

    Uses a subquery for each, not a join, so that the planner uses the index of references. Before the table has statistics, it would take any
    index that begins with the customer. So the reference is a sorted range, which only one index provides: a batch forbids sorting (BEGIN).
    """
    return compose(
        """
        ARRAY(
            SELECT (SELECT o.reference FROM orders o
                    WHERE o.customer_id = r.customer_id AND o.environment = r.environment
                      AND o.external_reference >= r.external_reference AND o.external_reference <= r.external_reference
                      {node}
                    ORDER BY o.external_reference LIMIT 1)
            FROM unnest({customers}::int[], {environments}::text[], {references}::text[]) WITH ORDINALITY
                AS r (customer_id, environment, external_reference, at)
            ORDER BY at)
    """,
        node=at_node("o.customer_id", pin),
        customers=placeholder(customers),
        environments=placeholder(environments),
        references=placeholder(references),
    )


# The key says whether customers are distributed over nodes.
HOLDERS = {
    False: compose("SELECT {holders}", holders=_holders("$1", "$2", "$3", "")),
    True: compose("SELECT {holders}", holders=_holders("$1", "$2", "$3", "$4")),
}


# A closed account gets the kind `closed`, so no order is paid from it.
def _account(pin: str) -> Fragment:
    """Returns SQL for the columns of a LedgerAccount, of an account `a`."""
    return compose(
        """
        id, customer_id, environment, CASE WHEN closed_at IS NULL THEN kind ELSE 'closed' END AS kind, currency, balance_minor,
        open_to_all,
        CASE WHEN kind = 'funding' AND NOT open_to_all THEN
            ARRAY(SELECT service_account_id FROM account_service_accounts AS x
                  WHERE x.customer_id = a.customer_id AND x.account_id = a.id {node})
        ELSE '{}' END AS service_accounts,
        chain_head, has_budgets
    """,
        node=at_node("x.customer_id", pin),
    )


READ_ACCOUNT = compose("SELECT {account} FROM accounts AS a WHERE customer_id = $1 AND id = $2", account=_account("$1"))
_LEDGER_ACCOUNT = Fragment("""
    json_build_array(id, customer_id, environment, kind, currency, balance_minor, open_to_all, service_accounts,
                     encode(chain_head, 'base64'), has_budgets)
""")
# Reads the keys, sequences and clock, which nodes do not have.
_BESIDE = compose(
    """
    keys AS MATERIALIZED ({keys}),
    instant AS MATERIALIZED (SELECT now() + ahead_by AS now FROM clock)
""",
    keys=key_statuses(Fragment("$2::int[]")),
)
_COLUMNS_BESIDE = compose(
    """
    now, {last_id} - (SELECT last_value FROM orders_id_seq),
    (SELECT version FROM catalogue_version),
    ARRAY(SELECT nextval('movements_id_seq') FROM generate_series(1, $1)),
    ARRAY(SELECT json_build_array(id, json_build_array(plan, active, limits::text, scopes, networks, funding)) FROM keys)
""",
    last_id=LAST_ID,
)
READ_BESIDE = compose(
    "WITH {beside} SELECT json_build_array({columns}) FROM instant", beside=_BESIDE, columns=_COLUMNS_BESIDE
)


def _accounts(customers: str, ids: str, lock: Fragment, pin: str) -> Fragment:
    """Returns SQL for the accounts that could be locked, and for the others, as tables `locked` and `held`.

    A locked account is read as of its lock, the others as of the statement's beginning.
    """
    return compose(
        """
        locked AS MATERIALIZED (
            SELECT {account} FROM (SELECT found.* FROM {lockable}) AS a
        ), held AS MATERIALIZED (
            SELECT {account} FROM (
                SELECT found.* FROM {others}
                WHERE wanted.account_id NOT IN (SELECT id FROM locked)) AS a
        )
    """,
        account=_account(pin),
        lockable=_wanted_accounts(customers, ids, lock, pin),
        others=_wanted_accounts(customers, ids, NOTHING, pin),
    )


def _context(lock: Fragment) -> Fragment:
    """Returns SQL for a `_Read`. Its arguments are the number of orders, the keys, two arrays of accounts, and three of references."""
    return compose(
        """
        WITH {accounts}, {beside}, holding AS MATERIALIZED (SELECT {holders} AS holders)
        SELECT json_build_array({columns}, pg_current_xact_id()::text,
            ARRAY(SELECT {account} FROM locked), ARRAY(SELECT {account} FROM held), (SELECT holders FROM holding))
        FROM instant
    """,
        accounts=_accounts("$3", "$4", lock, ""),
        beside=_BESIDE,
        holders=_holders("$5", "$6", "$7", ""),
        columns=_COLUMNS_BESIDE,
        account=_LEDGER_ACCOUNT,
    )


# The key says whether accounts are locked.
_LOCKS = {True: _SKIP_LOCKED, False: NOTHING}
CONTEXTS = {is_locking: _context(lock) for is_locking, lock in _LOCKS.items()}
ACCOUNTS_ON_NODE = {
    is_locking: compose(
        "WITH {accounts} SELECT true, * FROM locked UNION ALL SELECT false, * FROM held",
        accounts=_accounts("$1", "$2", lock, "$3"),
    )
    for is_locking, lock in _LOCKS.items()
}


def _spent(pin: str) -> Fragment:
    """Returns SQL for the sums of a day, by their keys; or of the next one, for an order that began before midnight and is decided after it."""
    return compose(
        """
        SELECT customer_id, service_account_id, environment, currency, spent_minor
        FROM daily_spending JOIN unnest($1::int[], $2::int[], $3::text[], $4::text[])
            AS wanted (customer_id, service_account_id, environment, currency)
            USING (customer_id, service_account_id, environment, currency)
        WHERE day >= $5 AND customer_id = ANY($1::int[]) {node}
        """,
        node=at_node("daily_spending.customer_id", pin),
    )


# The key says whether customers are distributed over nodes.
SPENT = {False: _spent(""), True: _spent("$6")}
SPENT_TODAY = """
    SELECT currency, spent_minor FROM daily_spending
    WHERE customer_id = $1 AND service_account_id = $2 AND environment = $3 AND day = (clock_now() AT TIME ZONE 'UTC')::date
"""
