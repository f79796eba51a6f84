"""A day's planning with many contacts and automations."""

import os
from datetime import timedelta

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.web.api.conftest import Service

from largesse.automations.tasks import plan
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import WORKER
from largesse.encryption.vault import Vault
from largesse.jobs.registry import WorkerContext

CUSTOMERS = int(os.environ.get("PLANNED_CUSTOMERS", "20"))
CONTACTS, GROUPS, AUTOMATIONS = 1_000, 4, 10  # of each customer
TABLES = ("contacts", "contact_members", "automations", "automation_runs")
_CUSTOMERS = """
    INSERT INTO customers (key, name, plan, funding) SELECT 'many-' || n, 'Many ' || n, 'pro', 'invoiced' FROM generate_series(1, $1) AS n
"""
_CONTACTS = """
    INSERT INTO contacts (customer_id, environment, email, email_key, name, sought, country, birthday, start_date, created_at)
    SELECT c.id, 'production', 'p' || n || '@many.example', 'p' || n || '@many.example', 'P' || n, 'p' || n, 'GB',
           100 * (1 + n % 12) + 1 + (n / 12) % 28, date '2015-01-01' + (n * 37) % 3600, clock_now() - interval '400 days'
    FROM customers c, generate_series(1, $1) AS n WHERE c.key LIKE 'many-%'
"""
_GROUPS = """
    INSERT INTO contact_groups (customer_id, environment, name) SELECT c.id, 'production', 'Group ' || n
    FROM customers c, generate_series(1, $1) AS n WHERE c.key LIKE 'many-%'
"""
_MEMBERS = """
    INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
    SELECT p.customer_id, 'production', g.id, p.id, (clock_now() AT TIME ZONE 'UTC')::date - (p.id % 365)
    FROM contacts p JOIN contact_groups g ON g.customer_id = p.customer_id AND g.id % 4 = p.id % 4
"""
# Of each customer: birthdays of all and of each group, anniversaries of all and of some years, first days, and days after joining groups.
_AUTOMATIONS = """
    INSERT INTO automations (customer_id, environment, name, user_id, occasion, group_id, years, days, template_id, zone, leap_day, weekend,
        asks_approval, planned_through, plan_at, created_at)
    SELECT c.id, 'production', 'A' || n, 1,
           (ARRAY['birthday', 'birthday', 'birthday', 'birthday', 'anniversary', 'anniversary', 'first_day', 'joined', 'joined', 'joined'])[n],
           CASE WHEN n IN (2, 3, 4, 8, 9, 10) THEN (
               SELECT id FROM contact_groups g WHERE g.customer_id = c.id ORDER BY id OFFSET n % 4 LIMIT 1) END,
           CASE WHEN n = 6 THEN '{1,5,10}' ELSE '{}' END::smallint[], CASE WHEN n > 7 THEN 30 END, 1, 'Europe/London', 'before', 'before',
           false, (clock_now() AT TIME ZONE 'UTC')::date - 1, clock_now(), clock_now() - interval '400 days'
    FROM customers c, generate_series(1, $1) AS n WHERE c.key LIKE 'many-%'
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="writes its rows by joins that a cluster refuses")
@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_many_automations_are_planned_once_a_day(service: Service) -> None:
    """Long: PLANNED_CUSTOMERS=1000, a million contacts."""
    for statement, number in ((_CUSTOMERS, CUSTOMERS), (_CONTACTS, CONTACTS), (_GROUPS, GROUPS)):
        service.sql(statement, number)
    service.sql(_MEMBERS)
    service.sql(_AUTOMATIONS, AUTOMATIONS)
    for table in TABLES:
        service.sql(f"VACUUM ANALYZE {table}")
    first, runs = _plan(service)
    service.sql("UPDATE clock SET ahead_by = ahead_by + $1", timedelta(days=1))
    day, more = _plan(service)
    service.sql("UPDATE automations SET plan_at = clock_now()")
    again, same = _plan(service)
    print(f"read: first {first:,}, a day {day:,}, again {again:,}; gifts: {runs:,}, {more:,}")  # noqa: T201 - for the report
    assert runs > 50 * CUSTOMERS
    assert more - runs > 5 * CUSTOMERS
    assert same == more
    # A fifth of what 10 automations would read that each looked at every contact.
    most = 2 * CUSTOMERS * CONTACTS
    assert 0 < day < most
    assert 0 < again < most


def _plan(service: Service) -> tuple[int, int]:
    """Plans all automations as a worker does; returns how many rows it read, and how many gifts are planned."""

    async def run(database: Database, vault: Vault) -> None:
        context = WorkerContext(database, vault, lambda *_: None)
        while await plan(context):
            pass
        await database.execute(WORKER, "SELECT pg_stat_force_next_flush()")

    before = _rows_read(service)
    service.on_pool(run, role=Role.WORKER, max_connections=1)
    assert service.sql("SELECT count(*) FROM automations WHERE plan_at <= clock_now()")[0][0] == 0
    return _rows_read(service) - before, service.sql("SELECT count(*) FROM automation_runs")[0][0]


def _rows_read(service: Service) -> int:
    """Of the tables, by sessions that have said so."""
    read = "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables WHERE relname = ANY($1)"
    return int(service.sql(read, TABLES)[0][0])
