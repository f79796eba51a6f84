"""Recipients of orders that have come to their end are erased by themselves, at the instant they are due and no sooner."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
import structlog
from msgspec.structs import replace
from tests.background import run_in_thread
from tests.distributed import IS_DISTRIBUTED
from tests.plans import rows_read
from tests.privacy.conftest import NAME, TELL_OF_GIFTS, Run, counted, dump, order_id, take_in_all, traces
from tests.waiting import until
from tests.web.api.conftest import MASTER_KEY, Service

from largesse import housekeeping
from largesse.audit.service import Acting, by_worker
from largesse.base.settings import SHORTEST_RETENTION_DAYS
from largesse.db.pool import Connection, Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, WORKER
from largesse.encryption.chain_keys import open_chains
from largesse.encryption.vault import Vault
from largesse.main import open_worker
from largesse.orders import erasing
from largesse.privacy import retention
from largesse.privacy.retention import Retention
from largesse.privacy.service import ErasedOrder
from largesse.privacy.store import DUE, DUE_OF

DAYS = 40
LATE = "Late.Featherstone@example.com"  # may still claim


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: whoever keeps house in the time to come removes what others have."""
    return own_service


@pytest.fixture
def ended(service: Service, filled: dict[str, str], run: Run, tmp_path: Path) -> dict[str, str]:
    """Sam's orders, each at its end: cancelled, shipped, or with its voucher; beside two that somebody may still claim."""
    for name, key in (("mailed", "hr"), ("scheduled", "hr"), ("other", "globex"), ("batch", "hr")):
        assert service.client(key).post(f"/orders/{filled[name]}/cancel").status_code == 200
    (tmp_path / "numbers.csv").write_text("NUMBER-1\n")
    imported = run("stock", "import", "coffee", str(tmp_path / "numbers.csv"), "--value", "5")
    assert "waiting gifts served 1" in imported.output, imported.output
    (parcel,) = service.sql("SELECT id FROM shipments")[0]
    (tmp_path / "shipped.csv").write_text(f"shipment,carrier\n{parcel},Post\n")
    assert run("shipments", "import", str(tmp_path / "shipped.csv")).exit_code == 0
    recipients = [{"email": LATE, "name": "Late Featherstone"}, {"email": "x@example.com"}]
    open_orders = [
        service.send("gift", "coffee", value=5, recipients=recipients, message="For Featherstone") for _ in range(2)
    ]
    references = [order.json()["reference"] for order in open_orders]
    # Of one of them a code is at its end, and the other is not.
    service.sql(
        """
        WITH line AS (SELECT customer_id, id FROM orders WHERE reference = $1), moved AS (
            INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, expires_at)
            SELECT customer_id, id, 2, 'expired', now() - interval '1 hour', now() - interval '1 hour' FROM line)
        INSERT INTO line_events (customer_id, order_id, number, event, at)
        SELECT customer_id, id, 2, event, now() - interval '1 hour' FROM line, unnest('{opened,claimed,expired}'::text[]) AS event
        """,
        references[0],
    )
    service.sql(TELL_OF_GIFTS)
    take_in_all(service)
    return {**filled, "half": references[0], "open": references[1]}


@asynccontextmanager
async def retaining(service: Service) -> AsyncIterator[tuple[Database, Retention]]:
    database = await Database.connect(service.database_url, role=Role.WORKER)
    async with database.connection(OPERATOR) as connection:
        chains = await open_chains(connection, Vault((MASTER_KEY,)), keep=True)
    yield database, Retention(database, Acting(by_worker("retention"), chains), DAYS)
    await database.close()


def keep_house(service: Service) -> int:
    """What the worker does now and then: old rows go, and recipients are erased; returns how often there were some."""

    async def work() -> int:
        async with retaining(service) as (database, keeper):
            async with database.connection(WORKER) as connection:
                while await housekeeping.prune(connection):
                    pass
            steps = 0
            while await keeper.step():
                steps += 1
            return steps

    return run_in_thread(work())


def move_to(service: Service, at: datetime) -> None:
    service.sql("UPDATE clock SET ahead_by = $1 - now()", at)


def last_end(service: Service, reference: str) -> datetime:
    """When the last code of the order came to its end."""
    rows = service.sql("SELECT max(at) FROM line_events WHERE order_id = $1", order_id(service, reference))
    at: datetime = rows[0][0]
    return at


def is_erased(service: Service, reference: str) -> bool:
    return bool(service.sql("SELECT erased_at IS NOT NULL FROM orders WHERE reference = $1", reference)[0][0])


def test_recipients_go_when_their_time_is_over_and_no_sooner(service: Service, ended: dict[str, str], run: Run) -> None:
    assert run("verify").exit_code == 0, run("verify").output
    ends = {name: last_end(service, ended[name]) for name in ("mailed", "scheduled", "other", "batch", "parcel")}
    # Nobody's data is due a second before the first of them, and then the first alone is.
    first, *others = sorted(ends, key=lambda name: ends[name])
    move_to(service, ends[first] + timedelta(days=DAYS, seconds=-2))
    assert keep_house(service) == 0
    assert not is_erased(service, ended[first])
    service.sql(
        "UPDATE report_orders SET erasable_since = erasable_since + interval '1 hour' WHERE order_id <> $1",
        order_id(service, ended[first]),
    )
    move_to(service, ends[first] + timedelta(days=DAYS))
    assert keep_house(service) == 1
    assert is_erased(service, ended[first])
    assert not any(is_erased(service, ended[name]) for name in others)

    before = counted(service)
    assert traces(dump(service)) != []
    move_to(service, max(ends.values()) + timedelta(days=DAYS, hours=1))
    service.sql("UPDATE shipments SET returned_at = now(), return_reason = 'absent', again_at = now()")
    assert keep_house(service) == 1
    assert not is_erased(service, ended["parcel"]), "its parcel came back, and waits to be sent again"
    service.sql("UPDATE shipments SET again_at = NULL")
    assert keep_house(service) == 1
    dumped = dump(service)
    assert traces(dumped) == []
    assert LATE.lower() in dumped
    assert not is_erased(service, ended["half"])
    assert not is_erased(service, ended["open"])
    assert counted(service) == before
    take_in_all(service)
    assert run("verify").exit_code == 0, run("verify").output
    assert traces(dump(service)) == []
    assert keep_house(service) == 0
    look_at_what_is_left(service, ended)


def look_at_what_is_left(service: Service, ended: dict[str, str]) -> None:
    """Receipts and the audit log of each customer, and what callers see of the orders."""
    receipts = service.sql(
        "SELECT c.key, e.orders, e.lines, e.texts, e.retention_days, e.id FROM erasures e JOIN customers c ON c.id = e.customer_id"
    )
    assert sum(row["orders"] for row in receipts) == 5
    assert {row["key"]: row["lines"] for row in receipts if row["key"] == "globex"} == {"globex": 1}
    assert {row["retention_days"] for row in receipts} == {DAYS}
    kept = service.sql(
        "SELECT actor, actor_name, subject, after ->> 'days' FROM audit_events WHERE act = 'privacy.erased'"
    )
    assert {tuple(row) for row in kept} == {
        ("worker", "retention", f"erasure {row['id']}", str(DAYS)) for row in receipts
    }
    request = service.client("hr").get(f"/orders/{ended['mailed']}/request").json()
    assert (request["message"], request["externalReference"]) == (None, f"erased-{ended['mailed']}")
    assert [one["email"] for one in request["recipients"]] == ["erased-1@erased.invalid", "erased-3@erased.invalid"]
    assert (
        service.client("hr").get(f"/orders/{ended['mailed']}").json()["externalReference"]
        == f"erased-{ended['mailed']}"
    )
    late = service.client("hr").get(f"/orders/{ended['open']}/request").json()
    assert (late["message"], late["recipients"][0]["email"]) == ("For Featherstone", LATE)


def place_ended(service: Service, count: int) -> list[str]:
    """Places orders whose codes are cancelled, each at once, and tells the read models; their references."""
    references = []
    for at in range(count):
        sent = service.send("gift", "coffee", value=5, recipients=[{"email": f"r{at}@example.com", "name": NAME}])
        references.append(sent.json()["reference"])
        assert service.client("hr").post(f"/orders/{references[-1]}/cancel").status_code == 200
    take_in_all(service)
    return references


@pytest.mark.slow
def test_workers_at_once_erase_each_order_once(service: Service, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_ORDERS_AT_ONCE", 4)
    references = place_ended(service, 21)
    receipts = service.sql("SELECT coalesce(max(id), 0) FROM erasures")[0][0]
    service.sql("UPDATE clock SET ahead_by = $1", timedelta(days=DAYS, minutes=1))

    async def work(keeper: Retention) -> None:
        for _ in range(12):
            await keeper.step()

    async def both() -> None:
        async with retaining(service) as (_, one), retaining(service) as (_, other):
            await asyncio.gather(work(one), work(other))

    # Whoever comes second to an order goes away with nothing, and that may be each step of theirs. On a cluster what was
    # erased stays in front until the read models have followed.
    for _ in references:
        run_in_thread(both())
        take_in_all(service)
        if all(is_erased(service, reference) for reference in references):
            break
    assert all(is_erased(service, reference) for reference in references)
    rows = service.sql("SELECT sum(orders), sum(lines), max(orders) FROM erasures WHERE id > $1", receipts)
    assert tuple(rows[0]) == (21, 21, 4)
    assert run("verify").exit_code == 0, run("verify").output


@pytest.mark.slow
def test_a_worker_that_is_set_to_erases_beside_its_other_work(service: Service) -> None:
    (reference,) = place_ended(service, 1)
    service.sql("UPDATE clock SET ahead_by = $1", timedelta(days=DAYS, minutes=1))
    set_to = replace(service.settings, database_url=service.database_url, retention_days=DAYS)
    before = retention.ERASED._value.get()

    async def work() -> None:
        async with open_worker(set_to, captures=True):
            await until(lambda: retention.ERASED._value.get() != before)

    run_in_thread(work())
    assert is_erased(service, reference)


async def test_what_is_due_is_found_by_an_index(database_url: str) -> None:
    """However many orders there are, and whatever the last ANALYZE knew of them."""
    database = await Database.connect(database_url)
    async with database.transaction(OPERATOR) as connection:
        await connection.execute(
            """
            INSERT INTO report_orders (customer_id, order_id, environment, group_id, state, created_at, codes, spent_minor, claimed,
                fulfilled, expired, cancelled, bounced, claim_days, claim_counts, cancel_days, cancel_counts, ages, erasable_since)
            SELECT 1, n, 'production', 1, 'claimed', now(), 1, 1, 1, 1, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', now() + n * interval '1 s'
            FROM generate_series(1, 20000) AS n
            """
        )
        await retention.plan_by_index(connection)
        due = DUE_OF if IS_DISTRIBUTED else DUE
        plan = await connection.fetch(f"EXPLAIN {due}", DAYS, 100, [], *([[1]] if IS_DISTRIBUTED else []))
    await database.close()
    told = "\n".join(row[0] for row in plan)
    assert "report_orders_erasable" in told
    assert not re.search(r"Sort|Seq Scan on (report_orders|orders)", told)


def test_the_shortest_retention_outlasts_whatever_else_tells_of_an_order() -> None:
    """Who is erased so late is in no event, delivery or captured mail any more, but for drafts' headings, which name nobody."""
    named = {"events", "deliveries", "delivery_attempts", "captured_mail", "drafts"}
    kept = {old.table: old.days for old in housekeeping.RETENTION if old.table in named}
    assert kept.keys() == named
    assert max(kept.values()) <= SHORTEST_RETENTION_DAYS


def end_all(service: Service) -> None:
    take_in_all(service)
    service.sql("UPDATE clock SET ahead_by = $1", timedelta(days=DAYS, minutes=1))


def place_cancelled(service: Service, external_reference: str) -> str:
    sent = service.send(
        "gift", "coffee", value=5, recipients=[{"email": LATE, "name": NAME}], externalReference=external_reference
    )
    reference: str = sent.json()["reference"]
    assert service.client("hr").post(f"/orders/{reference}/cancel").status_code == 200
    return reference


def test_a_reference_that_another_order_has_keeps_nobodys_data(service: Service, run: Run) -> None:
    """A caller may give an order the reference that an erased one would get. All orders of all customers would stay."""
    first = place_cancelled(service, LATE)
    second = place_cancelled(service, f"erased-{first}")
    end_all(service)
    assert keep_house(service) == 1
    assert is_erased(service, first)
    assert is_erased(service, second)
    references = service.sql(
        "SELECT external_reference FROM orders WHERE reference = ANY($1) ORDER BY id", [first, second]
    )
    assert [row[0] for row in references] == [None, f"erased-{first}"]
    assert run("verify").exit_code == 0, run("verify").output


def test_a_reference_that_another_order_has_prevents_no_erasure(service: Service, run: Run) -> None:
    first = place_cancelled(service, f"for {LATE}")
    place_cancelled(service, f"erased-{first}")
    erased = run("privacy", "erase", LATE)
    assert erased.exit_code == 0, erased.output
    assert service.sql("SELECT external_reference FROM orders WHERE reference = $1", first)[0][0] is None


def test_an_order_that_cannot_be_erased_stops_no_other(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    odd, *others = place_ended(service, 3)
    end_all(service)
    erase, odd_id = retention.erase_lines, order_id(service, odd)

    async def fail(connection: Connection, order: tuple[int, int], numbers: Sequence[int]) -> ErasedOrder:
        if order[1] == odd_id:
            raise LookupError
        return await erase(connection, order, numbers)

    monkeypatch.setattr(retention, "erase_lines", fail)
    # The one that fails is due first. On a cluster, an erased order is due until the reports know of it.
    monkeypatch.setattr(retention, "_ORDERS_AT_ONCE", 2 if IS_DISTRIBUTED else 1)
    with structlog.testing.capture_logs() as logs:
        keep_house(service)
    assert all(is_erased(service, other) for other in others)
    assert not is_erased(service, odd)
    assert {one["order"] for one in logs if one["event"] == "recipients.not_erased"} == {odd_id}
    monkeypatch.setattr(retention, "erase_lines", erase)
    keep_house(service)
    assert is_erased(service, odd)


@pytest.mark.skipif(IS_DISTRIBUTED, reason="on a cluster each node plans for itself")
async def test_texts_are_erased_without_reading_the_other_orders(database_url: str) -> None:
    """References that contain an address are replaced, unless another order has the new one."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        """
        INSERT INTO orders (id, reference, customer_id, environment, service_account_id, source, gift_selection, product_id, country,
            currency, value_minor, total_minor, code_count, recipient_count, delivery_mode, wrapping_key, created_at, external_reference)
        SELECT n, 'X' || n, 1, 'production', 1, 'api', 'gift', 1, 'GB', 'GBP', 1000, 1000, 1, 1, 'send', 'default', now(), n || '@example.com'
        FROM generate_series(100001, 105000) AS n
        """
    )
    await connection.execute("ANALYZE orders")
    erased = [1, list(range(100001, 100011)), erasing._HOLDS_ADDRESS]
    assert await rows_read(connection, Role.WORKER, "orders", erasing._ERASE_TEXTS, *erased) < 100
    assert await connection.fetchval("SELECT external_reference FROM orders WHERE id = 100001") == "erased-X100001"
    await connection.close()
