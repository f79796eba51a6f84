"""Every table that an order fills names its customer first in its keys, and takes its ids from a sequence of its own."""

import asyncpg
import pytest

from largesse.verify.references import NAMING_CUSTOMERS

# What an operator edits, and what every customer's rows may point to: they stay as they are wherever the others lie.
REFERENCE = {"api_keys", "collections", "service_accounts", "templates", "users"}
# Found before the customer is known, or nobody's: as long as it is free, or since it was all customers'.
OTHERWISE = {
    "campaigns_token_key",  # of a link
    "customer_views_pkey",  # found by the session of a member of staff
    "erasure_jobs_of_request",
    "erasure_jobs_pkey",
    "erasures_pkey",
    "privacy_requests_pkey",
    "line_event_marks_pkey",  # one chain for all
    "lines_code_lookup",
    "orders_reference",  # found by members of staff
    "top_ups_reference",
    "vouchers_pkey",
    "vouchers_lookup_key",
}


@pytest.fixture
async def connection(module_database_url: str):
    connection = await asyncpg.connect(module_database_url)
    yield connection
    await connection.close()


async def test_keys_begin_with_the_customer(connection: asyncpg.Connection) -> None:
    rows = await connection.fetch(
        """
        SELECT i.indrelid::regclass::text AS "table", i.indexrelid::regclass::text AS key,
               (SELECT attname FROM pg_attribute WHERE attrelid = i.indrelid AND attnum = i.indkey[0]) AS first
        FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'customer_id'
        WHERE i.indisunique AND i.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
        """
    )
    keys = {row["key"]: row["first"] for row in rows if row["table"] not in REFERENCE}
    assert len(keys) > 30
    others = {key for key, first in keys.items() if first != "customer_id"}
    assert others == OTHERWISE, "a unique key begins with customer_id, or is in OTHERWISE with the reason"


@pytest.mark.parametrize(
    "table",
    [
        "line_states", "line_events", "lines", "code_readings", "order_acts", "events", "entries", "mail_jobs", "messages",
        "captured_mail", "deliveries", "delivery_attempts", "subscription_queues", "shipments", "voucher_waits",
        "vouchers", "account_service_accounts",
    ],
)  # fmt: skip
async def test_what_an_order_fills_names_its_customer(connection: asyncpg.Connection, table: str) -> None:
    (column,) = await connection.fetch(
        "SELECT attnotnull, attgenerated, atttypid::regtype::text FROM pg_attribute "
        "WHERE attrelid = $1::text::regclass AND attname = 'customer_id'",
        table,
    )
    assert tuple(column) == (table != "vouchers", b"\0", "integer")


async def test_every_row_that_names_a_customer_is_held_to_one(connection: asyncpg.Connection) -> None:
    """By a foreign key, or by a check of `largesse verify`: of the customer alone, or of what else the row belongs to."""
    rows = await connection.fetch(
        """
        SELECT c.relname FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'customer_id' AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT EXISTS (
            SELECT FROM pg_constraint f
            WHERE f.conrelid = c.oid AND f.contype = 'f' AND a.attnum = ANY(f.conkey)
              AND f.confrelid NOT IN ('drafts'::regclass))
        """
    )
    belonging = {
        "api_requests", "audit_events", "audit_heads", "code_readings", "entries", "events", "follow_ups", "line_event_marks", "line_events",
        "line_messages", "line_states", "lines", "mail_jobs", "order_acts", "orders", "reminder_stops", "report_orders", "report_words", "shipments", "supplier_orders", "thank_you_notes", "voucher_waits", "vouchers",
    }  # fmt: skip
    held = belonging | set(NAMING_CUSTOMERS)
    assert {row["relname"] for row in rows} == held, (
        "a new table has a foreign key, or its name in NAMING_CUSTOMERS of verify/references.py; "
        "if a check of its own finds rows of another customer, its name in `belonging` above"
    )


async def test_ids_come_from_sequences_that_belong_to_nobody(connection: asyncpg.Connection) -> None:
    owned = await connection.fetch(
        """
        SELECT d.refobjid::regclass::text AS "table" FROM pg_depend d
        JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attname = 'customer_id'
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
        """
    )
    wrong = {row["table"] for row in owned} - REFERENCE
    assert not wrong, (
        "their migration makes the sequence itself: CREATE SEQUENCE x_id_seq, and DEFAULT nextval('x_id_seq')"
    )
    drawn = await connection.fetchval(
        "INSERT INTO code_readings (customer_id, order_id, service_account_id) VALUES (1, 1, 1) RETURNING id"
    )
    assert drawn == await connection.fetchval("SELECT last_value FROM code_readings_id_seq")
