"""Statements about a large order read each of its lines and states once, whatever the planner expects of an order."""

from typing import Any

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.plans import ROUNDED, rows_read

from largesse.campaigns import store as campaigns
from largesse.db.roles import Role
from largesse.jobs import outbox
from largesse.lines import states
from largesse.lines import store as lines
from largesse.mail import recipients
from largesse.orders import acts, claim_by_store, lookup

pytestmark = pytest.mark.skipif(IS_DISTRIBUTED, reason="what a node reads its coordinator does not count")

CODES = 600  # of the large order, whose first code is not cancelled
SMALL = 300  # orders of one code beside it
ORDER = (1, 9_999)
NUMBERS = list(range(1, CODES + 1))
STATEMENTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "mail is held back": (outbox._HOLD_JOB, ORDER),
    "recipients are listed": (recipients._LINES, ORDER),
    "deliveries are listed": (lines._LINE_RECORDS, (*ORDER, "issued")),
    "unclaimed codes are cancelled": (states._ISSUED, (*ORDER, None)),
    "unclaimed codes are counted": (lookup._REFUNDABLE, (*ORDER, 1)),
    "unclaimed codes are shown": (acts._OPEN_LINES, (*ORDER, NUMBERS)),
    "recipients are reminded": (claim_by_store.TO_REMIND, ORDER),
    "unclaimed codes lapse": (claim_by_store.UNCLAIMED, (*ORDER, 500)),
    "gifts of a campaign are counted": (campaigns._COUNT_LINES, ORDER),
    "gifts of a campaign are listed": (campaigns._LINES, (*ORDER, NUMBERS)),
}
_CUSTOMER = """
    INSERT INTO customers (key, name, plan, funding) VALUES ('acme', 'Acme', 'pro', 'invoiced');
    INSERT INTO service_accounts (customer_id, key, name) VALUES (1, 'bot', 'Bot')
"""
_ORDERS = """
    INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection, country,
        currency, value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at)
    OVERRIDING SYSTEM VALUE
    SELECT n, n, 1, 'production', 1, 'api', 'gift', 'GB', 'GBP', 100, 100 * $2::int, $2, 1, 'send', 'default', now()
    FROM unnest($1::int[]) AS n
"""
_LINES = """
    INSERT INTO lines (customer_id, order_id, number, recipient_email, code_lookup, sealed)
    SELECT 1, o, n, n || '@example.com', o::bigint * 10000 + n, ''
    FROM unnest($1::int[]) AS o, generate_series(1, $2::int) AS n
"""
_STATES = """
    INSERT INTO line_states (customer_id, order_id, number, state)
    SELECT 1, o, n, 'cancelled' FROM unnest($1::int[]) AS o, generate_series($2::int, $3::int) AS n
"""
_EVENTS = """
    INSERT INTO line_events (customer_id, order_id, number, event, at)
    SELECT 1, o, n, 'opened', now() FROM unnest($1::int[]) AS o, generate_series(1, $2::int) AS n
"""
_JOB = "INSERT INTO mail_jobs (customer_id, order_id, environment, due_at) VALUES (1, $1, 'production', now())"


async def fill(connection: asyncpg.Connection, *, analysed: bool) -> None:
    """Adds small orders, statistics of them if `analysed`, and then the large order."""
    tables = ("orders", "lines", "line_states", "line_events", "mail_jobs")
    await connection.execute(_CUSTOMER)
    for table in tables:
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    small = list(range(1, SMALL + 1))
    for statement in (_ORDERS, _LINES, _EVENTS):
        await connection.execute(statement, small, 1)
    await connection.execute(_STATES, small, 1, 1)
    if analysed:
        await connection.execute(f"ANALYZE {', '.join(tables)}")
    for statement in (_ORDERS, _LINES, _EVENTS):
        await connection.execute(statement, [ORDER[1]], CODES)
    await connection.execute(_STATES, [ORDER[1]], 2, CODES)
    await connection.execute(_JOB, ORDER[1])


@pytest.mark.parametrize("analysed", [False, True])
async def test_a_large_order_is_read_once(connection: asyncpg.Connection, analysed: bool) -> None:
    await fill(connection, analysed=analysed)
    too_much = {}
    for what, (statement, arguments) in STATEMENTS.items():
        for table in ("lines", "line_states", "line_events"):
            read = await rows_read(connection, Role.APP, table, statement, *arguments)
            if read > (1 + ROUNDED) * CODES:
                too_much[what, table] = read
    assert too_much == {}
