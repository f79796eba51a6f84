"""Row-level security takes no index away: the statements of orders, claims, lists and pages are planned as they would be without it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest
from tests.background import on_database
from tests.distributed import IS_DISTRIBUTED
from tests.web.console.conftest import Browser, Service, link_for, signed_in
from tests.web.console.orders import TWO, WORLD, send, work

from largesse.db.policies import TABLES
from largesse.db.roles import Role
from largesse.db.session import Session

__all__ = ["WORLD"]

pytestmark = pytest.mark.skipif(IS_DISTRIBUTED, reason="on a cluster each node plans for itself")

# A table, the index it is read by, and how many conditions go by that.
Scan = tuple[str, str, int]
# Two customers with so many orders, each of one line, that reading them all is out of the question.
MANY = 4_000
LARGE = {
    "orders", "lines", "line_states", "entries", "events", "messages", "mail_jobs", "report_orders", "report_words"
}  # fmt: skip
FILL = f"""
    INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection, product_id, country,
        currency, value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at, external_reference)
    SELECT n, 'X' || n, 1 + n % 2, 'production', 1, 'api', 'gift', 1, 'GB', 'GBP', 1000, 1000, 1, 1, 'send', 'default',
        now() - n * interval '1 minute', 'ref-' || n FROM generate_series(100000, {100_000 + MANY}) AS n;
    INSERT INTO lines (customer_id, order_id, number, recipient_email, recipient_name, code_lookup, sealed)
    SELECT customer_id, id, 1, id || '@there.example', 'Somebody', id, 'x' FROM orders WHERE id >= 100000;
    INSERT INTO line_states (customer_id, order_id, number, state, claimed_at)
    SELECT customer_id, id, 1, 'claimed', now() FROM orders WHERE id >= 100000;
    INSERT INTO entries (customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
    SELECT o.customer_id, (SELECT min(a.id) FROM accounts a WHERE a.customer_id = o.customer_id), o.id, 'order', o.id, -1, 0, o.created_at
    FROM orders o WHERE id >= 100000;
    INSERT INTO events (order_id, customer_id, environment, event, body, created_at, fanned_out_at)
    SELECT id, customer_id, environment, 'order.created', 'x', created_at, now() FROM orders WHERE id >= 100000;
    INSERT INTO messages (customer_id, order_id, environment, edition, email, line_numbers, state, due_at, rank_at, created_at, finished_at, kind)
    SELECT customer_id, id, environment, 0, id || '@there.example', '{{1}}', 'sent', now(), now(), now(), now(), 'gift'
    FROM orders WHERE id >= 100000;
    INSERT INTO mail_jobs (customer_id, order_id, environment, due_at, fanned_out_at)
    SELECT customer_id, id, environment, now(), now() FROM orders WHERE id >= 100000;
    INSERT INTO report_orders (customer_id, order_id, environment, group_id, state, created_at, codes, spent_minor, claimed, fulfilled,
        expired, cancelled, bounced, claim_days, claim_counts, cancel_days, cancel_counts, ages)
    SELECT customer_id, id, environment, 0, 'waiting', created_at, 1, 1, 0, 0, 0, 0, 0, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}'
    FROM orders WHERE id >= 100000;
    INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
    SELECT customer_id, environment, 'ref-' || id % 1000, created_at, id FROM orders WHERE id >= 100000;
"""


@pytest.fixture
def statements() -> Iterator[set[str]]:
    """What serving sessions ask the database, as long as the test runs."""
    seen: set[str] = set()
    ask = Session._execute

    async def listening(session: Session, query: str, *arguments: Any, **more: Any) -> Any:
        if session.acts_as is Role.APP:
            seen.add(query)
        return await ask(session, query, *arguments, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Session, "_execute", listening)
        yield seen


@pytest.mark.slow
def test_what_is_asked_for_customers_is_planned_as_it_would_be_without(service: Service, statements: set[str]) -> None:
    for table in LARGE:
        on_database(
            service.database_url,
            lambda connection, table=table: connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)"),
        )
    on_database(service.database_url, fill)
    use(service)
    wanted = [one for one in statements if any(table in one for table in TABLES)]
    for is_known in (False, True):  # before anything is known of the tables, and after the first ANALYZE
        if is_known:
            on_database(service.database_url, lambda connection: connection.execute("ANALYZE"))
        with_it, without = (
            on_database(service.database_url, lambda connection, role=role: plans(connection, role, wanted))
            for role in (Role.APP, Role.OPERATOR)
        )
        worse = {one: (with_it[one], without[one]) for one in wanted if is_worse(with_it[one], without[one])}
        assert worse == {}
        assert len([one for one in wanted if with_it[one]]) >= 20


async def fill(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    await connection.execute(FILL)
    await connection.execute(
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {Role.OPERATOR}; GRANT ALL ON ALL TABLES IN SCHEMA public TO {Role.OPERATOR}"
    )


def use(service: Service) -> None:
    """What callers, people and recipients do."""
    reference = send(service, externalReference="one")
    codes = service.send("gift", "coffee", value=5, codeQuantity=300).json()["codes"]
    work(service)
    caller = service.client("hr")
    for path in (
        "/orders", "/orders?after=100100", f"/orders/{reference}", f"/orders/{reference}/request", "/templates", "/users",
        "/funding-accounts", "/webhooks/subscriptions", "/orders?externalReference=one", "/me",
    ):  # fmt: skip
        caller.get(path)
    caller.post("/quote/gift", json=service.body("gift", "coffee", value=10, recipients=TWO))
    service.send("template", "welcome", recipients=TWO)
    recipient = Browser(service)
    path = codes[0]["redemptionUrl"].removeprefix("https://gifts.example")
    recipient.get(path)
    recipient._send("POST", path, data={"pin": codes[0]["pin"]})
    ada = signed_in(service, "ada@acme.example")
    for page in (
        "", "/orders", "/orders?q=somebody", "/orders?q=ref-100200", f"/orders/{reference}", "/funding", "/reports", "/audit", "/audit.csv",
        "/people", "/keys", "/webhooks", "/funding/top-ups", "/send",
    ):  # fmt: skip
        assert ada.get(f"/app{page}").status_code == 200, page
    assert link_for(service, "ada@acme.example")


# By so many conditions of an index few rows are found, whatever the tables hold: a further one may as well be asked of the rows.
FEW_ROWS = 4


def is_worse(plan: list[Scan], than: list[Scan]) -> bool:
    """Whether a plan reads by other indexes, or by fewer conditions of one."""
    if [scan[:2] for scan in plan] != [scan[:2] for scan in than]:
        return True
    return any(one[2] < min(other[2], FEW_ROWS) for one, other in zip(plan, than, strict=True))


async def plans(
    connection: asyncpg.Connection[asyncpg.Record], role: Role, statements: list[str]
) -> dict[str, list[Scan]]:
    """By which index each statement reads each large table, as the role."""
    await connection.execute(
        f"SET ROLE {role}; SET largesse.customers = '{{1}}'; SET largesse.environments = '{{production}}';"
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off"
    )
    found = {}
    for statement in statements:
        await connection.execute(f"PREPARE it AS {statement}")
        taken = await connection.fetchval(
            "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'it'"
        )
        nulls = f"({', '.join(['NULL'] * taken)})" if taken else ""
        (plan,) = json.loads(await connection.fetchval(f"EXPLAIN (COSTS OFF, FORMAT JSON) EXECUTE it{nulls}"))
        await connection.execute("DEALLOCATE it")
        found[statement] = sorted(scans(plan["Plan"]))
    return found


def scans(plan: dict[str, Any]) -> Iterator[Scan]:
    if plan.get("Relation Name") in LARGE and "Scan" in plan["Node Type"]:
        conditions = plan.get("Index Cond", "").count(" AND ") + ("Index Cond" in plan)
        yield plan["Relation Name"], plan.get("Index Name", "all of it"), conditions
    for part in plan.get("Plans", ()):
        yield from scans(part)
