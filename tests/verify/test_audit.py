"""Each check holds on a database filled by real orders, and fails on one corrupted in just its way."""

import asyncio
import io
import re
import threading
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.verify.corruption import Corruption
from tests.verify.corruptions import CORRUPTIONS
from tests.verify.forgeries import FORGERIES
from tests.verify.room_corruptions import REPORT_CORRUPTIONS, RIGHTS_CORRUPTIONS, TOLD

from largesse.audit.service import Acting, by_command
from largesse.base.settings import load_settings
from largesse.db.pool import Database, connect_once
from largesse.db.scope import OPERATOR, for_customer
from largesse.encryption.vault import Vault, load_vault
from largesse.housekeeping import RETENTION
from largesse.main import open_services
from largesse.orders.request import SendCollection, SendGift, SendTemplate
from largesse.seed.load import load_seed
from largesse.seed.reading import demo_seed
from largesse.verify.audit import CHECKS, RULES, SEALED_OPEN, audit, audit_snapshot
from largesse.verify.chains import RULES as CHAIN_RULES
from largesse.verify.check import Progress
from largesse.verify.orders import EVENTS_KEPT_DAYS
from largesse.verify.programmes import AUTOMATIONS
from largesse.verify.references import IDS_GO_ON
from largesse.verify.reports import REPORTS
from largesse.verify.rights import SCHEMA_IS_RELEASED

MASTER_KEY = "ab" * 32
OTHER_KEY = "cd" * 32
SETTINGS = {"LARGESSE_MASTER_KEY": MASTER_KEY, "LARGESSE_PUBLIC_URL": "https://gifts.example"}
VAULT = load_vault(load_settings(SETTINGS))

ALL = (*CORRUPTIONS, *FORGERIES, *REPORT_CORRUPTIONS, *RIGHTS_CORRUPTIONS)

# A value that a statement looks up, with its parentheses.
_LOOKED_UP = re.compile(r"\(SELECT (?:[^()]|\([^()]*\))*\)")

TWO = [{"email": "ada@acme.example"}, {"email": "Ben@acme.example", "name": "Ben", "quantity": 2}]


async def fill(url: str) -> None:
    """Places orders of each kind, through what the API's routes call."""
    settings = load_settings({**SETTINGS, "LARGESSE_DATABASE_URL": url})
    async with open_services(settings) as services:
        async with connect_once(url, OPERATOR) as connection:
            loaded = await load_seed(connection, services.chains.entries, demo_seed())
        products, collections = loaded.ids["products"], loaded.ids["collections"]
        accounts, templates = loaded.ids["funding_accounts"], loaded.ids["templates"]
        gbp = {"accountId": accounts["acme-gbp"]}
        coffee = {"productId": products["coffee-house"], "value": 10}
        batch = {**coffee, **gbp, "codeQuantity": 3, "externalReference": "batch"}
        accented = {**coffee, **gbp, "recipients": [{"email": "É@acme.example"}, {"email": "é@acme.example"}]}
        acme, globex = loaded.api_keys["acme-production"], loaded.api_keys["globex-production"]
        for secret, kind, body in (
            (acme, SendGift, {**coffee, **gbp, "recipients": TWO, "externalReference": "sent"}),
            (acme, SendGift, batch),
            (acme, SendCollection, {"collectionId": collections["acme-thanks"], "recipients": TWO, **gbp}),
            (globex, SendCollection, {"collectionId": collections["globex-jubilee"], "recipients": TWO}),
            (acme, SendGift, {"productId": products["newborn-box"], "recipients": TWO, **gbp}),
            (acme, SendGift, accented),
            (acme, SendTemplate, {"templateId": templates["welcome"], "recipients": TWO, **gbp}),
        ):
            caller = await services.authenticator.authenticate(secret)
            asked = msgspec.json.decode(msgspec.json.encode(body), type=kind)
            await services.orders.send(caller, asked)
        acting = Acting(by_command("filled"), services.chains)
        for number in range(1, 6):
            async with services.database.transaction(for_customer(1, "production")) as connection:
                await acting.record(connection, "key.created", f"API key {number}", customer_id=1, after={"name": "hr"})


@pytest.fixture(scope="module")
def filled_url(module_database_url: str) -> str:
    failures: list[BaseException] = []

    def fill_it() -> None:
        try:
            asyncio.run(fill(module_database_url))
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    thread = threading.Thread(target=fill_it)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return module_database_url


@pytest.fixture
async def connection(filled_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Inside a transaction that is rolled back: whatever a test corrupts, the next finds whole."""
    connection = await asyncpg.connect(filled_url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("SET LOCAL session_replication_role = replica")  # no trigger minds
    yield connection
    await transaction.rollback()
    await connection.close()


async def findings_of(connection: asyncpg.Connection, vault: Vault = VAULT) -> dict[str, tuple[str, ...]]:
    report = await audit_snapshot(connection, vault, Progress(io.StringIO()))
    return {finding.check: finding.ids for finding in report.findings}


async def _harm_on_cluster(connection: asyncpg.Connection, sql: str) -> None:
    """Statement by statement, as a coordinator passes on no more at a time; where it refuses one, with what is looked up in it as values."""
    await connection.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
    for statement in filter(str.strip, sql.split(";")):
        try:
            async with connection.transaction():
                await connection.execute(statement)
        except (asyncpg.FeatureNotSupportedError, asyncpg.InternalServerError) as refused:
            if "not supported" not in str(refused) and isinstance(refused, asyncpg.InternalServerError):
                raise
            told = await _with_values(connection, statement)
            if told == statement:
                pytest.skip(f"a coordinator does not do this harm: {refused}")
            await connection.execute(told)


async def _with_values(connection: asyncpg.Connection, statement: str) -> str:
    while looked_up := _LOOKED_UP.search(statement):
        value = f"SELECT format('%L::%s', value::text, pg_typeof(value)) FROM {looked_up[0]} AS looked_up (value)"
        statement = statement.replace(looked_up[0], await connection.fetchval(value))
    return statement


@pytest.mark.sampled(7)
@pytest.mark.parametrize("corruption", ALL, ids=str)
async def test_a_corruption_is_found_by_its_check(connection: asyncpg.Connection, corruption: Corruption) -> None:
    if IS_DISTRIBUTED:
        await _harm_on_cluster(connection, corruption.sql)
    else:
        await connection.execute(corruption.sql)
    found = await findings_of(connection)
    # What changes an entry breaks its mark too, which is what the forgeries are about.
    if corruption not in FORGERIES:
        found = {check: ids for check, ids in found.items() if check not in CHAIN_RULES}
    # Some first take an index or a constraint away, or add rows with ids of their own choice or with something that is not encrypted at all.
    for other in {SCHEMA_IS_RELEASED, SEALED_OPEN, IDS_GO_ON} - {corruption.check}:
        found.pop(other, None)
    assert found.keys() == {corruption.check, *corruption.too}
    if corruption.ids is not None:
        assert found[corruption.check] == corruption.ids


def test_every_check_has_its_corruption() -> None:
    assert {corruption.check for corruption in ALL} == {check.name for check in CHECKS} | RULES.keys(), (
        "a check needs a corruption that it finds: corruptions.py (orders), claim_corruptions.py or room_corruptions.py in tests/verify"
    )


async def test_a_healthy_database_passes_every_check(filled_url: str) -> None:
    database = await Database.connect(filled_url)
    report = await audit(database, VAULT, progress_to=io.StringIO())
    await database.close()
    assert report.findings == []
    assert report.counted["orders"] == 7
    assert report.counted["lines"] == 5 * 3 + 3 + 2
    assert report.to_json()["ok"] is True
    assert str(report).startswith(f"All {len(CHECKS) + len(RULES)} checks hold")


async def test_an_empty_database_passes(database_url: str) -> None:
    database = await Database.connect(database_url)
    report = await audit(database, VAULT, progress_to=io.StringIO())
    await database.close()
    assert report.findings == []


async def test_events_that_were_pruned_are_not_missed(connection: asyncpg.Connection) -> None:
    age = "UPDATE orders SET created_at = now() - interval '{} days'"
    # That the read models have not heard of these orders is another matter.
    await connection.execute(
        "INSERT INTO order_changes (customer_id, order_id, changed_at) SELECT customer_id, id, now() FROM orders"
    )
    await connection.execute("DELETE FROM events")
    await connection.execute(age.format(EVENTS_KEPT_DAYS - 1))
    assert len((await findings_of(connection))["orders-have-events"]) == 7
    await connection.execute(age.format(EVENTS_KEPT_DAYS + 1))
    assert (await findings_of(connection)).keys() == {"entries-are-chained"}  # as an order's time was changed


def test_events_are_missed_as_soon_as_maintenance_would_keep_them() -> None:
    (events,) = (old for old in RETENTION if old.table == "events")
    assert events.days == EVENTS_KEPT_DAYS


async def test_codes_sealed_under_a_lost_master_key_are_found(connection: asyncpg.Connection) -> None:
    other = load_vault(load_settings({"LARGESSE_MASTER_KEY": OTHER_KEY}))
    both = load_vault(load_settings({"LARGESSE_MASTER_KEY": f"{OTHER_KEY},{MASTER_KEY}"}))
    lines = await connection.fetchval("SELECT count(*) FROM lines")
    assert len((await findings_of(connection, other))["codes-open"]) == lines
    assert await findings_of(connection, both) == {}


async def test_what_is_reported_as_it_is_passes(connection: asyncpg.Connection) -> None:
    await connection.execute(TOLD)
    assert await findings_of(connection) == {}


async def test_orders_that_wait_are_left_out_at_once_however_many_they_are(connection: asyncpg.Connection) -> None:
    """What does not fit into memory is not gone through again for each order: after an upgrade, all orders wait."""
    await connection.execute(
        "INSERT INTO order_changes (customer_id, order_id, changed_at) SELECT 1, n, now() FROM generate_series(1, 50000) AS n"
    )
    await connection.execute("ANALYZE order_changes")
    await connection.execute("SET LOCAL work_mem = '64kB'")
    for check in REPORTS:
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {check.sql}"))
        looked_at_each_time = re.findall(
            r"^ *SubPlan \d+\n *-> +(?:Materialize|CTE Scan|Seq Scan).*", plan, re.MULTILINE
        )
        assert looked_at_each_time == [], check.name
        assert "waiting" not in check.sql or "Anti Join" in plan, check.name


async def test_gifts_of_automations_are_compared_at_once_however_many_they_are(connection: asyncpg.Connection) -> None:
    await connection.execute(
        """
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, state, order_reference)
        SELECT 1, 'production', 1, n, '2026-01-01', '2026-01-01', now(), now(), 'placed', n::text FROM generate_series(1, 50000) AS n
        """
    )
    await connection.execute("ANALYZE automation_runs")
    await connection.execute("SET LOCAL work_mem = '64kB'")
    for check in AUTOMATIONS:
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {check.sql}"))
        assert not re.search(r"SubPlan \d+\n *-> +(Materialize|CTE Scan|Seq Scan)", plan), plan


async def test_a_finding_names_twenty_ids_and_counts_the_rest(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "INSERT INTO mail_jobs (customer_id, order_id, environment, due_at) "
        "SELECT 1, 9000 + n, 'production', now() FROM generate_series(1, 50) AS n"
    )
    report = await audit_snapshot(connection, VAULT, Progress(io.StringIO()))
    (finding,) = report.findings
    assert (finding.count, len(finding.ids)) == (50, 20)
    assert report.to_json()["findings"][0]["count"] == 50
    assert "Not so 50 times: order 9001, order 9002" in str(report)
    assert str(report).endswith("9020, …")


async def test_the_audit_sees_one_snapshot_and_holds_nobody_up(filled_url: str) -> None:
    """Orders go on while it runs: what is written after its start it does not see, and it locks no rows."""
    database = await Database.connect(filled_url)
    reached, go_on = asyncio.Event(), asyncio.Event()

    class Pausing(Progress):
        def begin(self, step: str, total: int = 0) -> None:  # noqa: ARG002
            if step == "codes-open":
                reached.set()

    async def run() -> int:
        async with (
            database.connection(OPERATOR) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            before = await audit_snapshot(connection, VAULT, Pausing(io.StringIO()))
            await go_on.wait()
            after = await audit_snapshot(connection, VAULT, Pausing(io.StringIO()))
            assert before.findings == after.findings == []
            return after.counted["lines"] - before.counted["lines"]

    auditing = asyncio.create_task(run())
    await reached.wait()
    added = "INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed) VALUES (1, 9999, 1, 1, '')"
    await database.execute(OPERATOR, added)
    try:
        go_on.set()
        assert await auditing == 0
    finally:
        await database.execute(OPERATOR, "DELETE FROM lines WHERE order_id = 9999")
        await database.close()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_on_a_terminal_alone() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(stream)
        progress.begin("codes-open", 12_000)
        progress.add(2_000)
        progress.begin("next", 5)
        progress.end()
    assert "codes-open 0 of 12,000" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert file.getvalue() == ""
