"""What pages and the worker read for automations of a customer with many contacts."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from tests.automations.conftest import add_contact, move_to, work
from tests.distributed import IS_DISTRIBUTED
from tests.plans import ROUNDED, rows_read
from tests.web.api.conftest import Service, on_database

from largesse.automations import run_store, store
from largesse.automations.service import MOST_LISTED, preview
from largesse.automations.tasks import _AT_ONCE, plan
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.encryption.vault import Vault
from largesse.jobs.registry import WorkerContext

MANY = 5_000
ZONES = (["GB"], ["Europe/London"])
# A quarter has begun to work, or has a birthday, on each of four days.
_CONTACTS = """
    INSERT INTO contacts (customer_id, environment, email, email_key, name, sought, birthday, start_date, created_at)
    SELECT 1, 'production', n || '@many.example', n || '@many.example', 'P', 'p', 300 + n % 4 + 1, make_date(2000 + n % 20, 3, n % 4 + 1),
           clock_now() - interval '1 year'
    FROM generate_series(1, $1) AS n
"""


@pytest.fixture
def contacts(service: Service) -> None:
    service.sql(_CONTACTS, MANY)


@pytest.mark.parametrize("occasion", ["birthday", "anniversary", "first_day"])
def test_the_preview_reads_the_contacts_of_its_days(
    service: Service, contacts: None, automation: Callable[..., int], occasion: str
) -> None:
    service.sql("ANALYZE contacts")
    day = date(2027, 3, 2)

    async def read(connection: Any) -> int:
        found = await store.find_automation(connection, (1, "production"), automation_id)
        return await rows_read(
            connection, Role.APP, "contacts", run_store._PREVIEW, *ZONES, 1, "production", found.id, found.occasion, None, [], None,
            found.zone, found.leap_day, found.weekend, day, day, 10_000,
        )  # fmt: skip

    automation_id = automation(occasion=occasion)
    # The first day. Of the two days before it a gift may wait for the Monday, but not with this rule for weekends.
    expected = 0 if occasion == "first_day" else MANY // 4
    assert on_database(service.database_url, read) == pytest.approx(expected, abs=ROUNDED * 3)


def test_the_preview_looks_up_the_gifts_that_it_lists(
    service: Service, contacts: None, automation: Callable[..., int]
) -> None:
    """With 100,000 contacts who have the same day, each was looked up for a page of 500."""
    automation_id, day = automation(), date(2027, 3, 2)
    service.sql(
        """
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at)
        SELECT 1, 'production', $1, id, $2, $2, clock_now(), clock_now() FROM contacts WHERE birthday = 302
        """,
        automation_id,
        day,
    )
    service.sql("ANALYZE contacts, automation_runs")

    async def read(connection: Any) -> int:
        return await rows_read(
            connection, Role.APP, "automation_runs", run_store._PREVIEW, *ZONES, 1, "production", automation_id, "birthday", None, [], None,
            "UTC", "before", "keep", day, day + timedelta(days=60), 20,
        )  # fmt: skip

    assert on_database(service.database_url, read) <= 20 + ROUNDED * 63


# Contacts who have a day on each day of the year. Half of them are in a large group; one of 100, and nobody who has a day soon, in a small one; and on
# each day some joined the former. The other half is in other groups: were there these two only, whoever reads any of them may as well read them all.
_SPREAD = """
    UPDATE contacts SET birthday = 100 * extract(month FROM day)::int + extract(day FROM day)::int, start_date = day::date
    FROM (SELECT id AS number, date '2001-01-01' + (id % 365)::int AS day FROM contacts) AS days WHERE number = id;
    INSERT INTO contact_groups (customer_id, environment, id, name) VALUES (1, 'production', 901, 'Large'), (1, 'production', 902, 'Small');
    INSERT INTO contact_groups (customer_id, environment, id, name) SELECT 1, 'production', n, n FROM generate_series(903, 952) AS n;
    INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
    SELECT 1, 'production', 903 + id / 2 % 50, id, '2026-01-01' FROM contacts WHERE id % 2 = 1;
    INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
    SELECT 1, 'production', 901, id, (SELECT clock_now())::date - (id % 500)::int FROM contacts WHERE id % 2 = 0;
    INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
    SELECT 1, 'production', 902, id, '2026-01-01' FROM contacts
    WHERE id % 100 = 1 AND (birthday - 100 * extract(month FROM (SELECT clock_now()))::int + 1200) % 1200 >= 300
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="on a cluster each node plans for itself")
@pytest.mark.parametrize(
    ("occasion", "group", "most"),
    [
        ("birthday", 902, 3 * 50),
        ("anniversary", 902, 3 * 50),
        ("birthday", 901, 50),
        ("anniversary", 901, 50),
        ("anniversary", None, 20),
        ("joined", 901, 20),
    ],
)
def test_the_list_reads_few_contacts_for_a_group(
    service: Service, contacts: None, automation: Callable[..., int], occasion: str, group: int | None, most: int
) -> None:
    """Each list read whoever has a day, and then looked each up in the group, or read the whole group for each day."""
    for statement in (*_SPREAD.split(";"), "VACUUM ANALYZE contacts, contact_members"):
        service.sql(statement)
    automation_id = automation(occasion=occasion, group_id=group, days=30 if occasion == "joined" else None)
    service.sql("UPDATE automations SET created_at = '2020-01-01Z'")

    async def read(connection: Any, table: str) -> int:
        return await rows_read(connection, Role.APP, table, run_store._NEXT, *ZONES, 1, [automation_id], -2, 60)

    for table in ("contacts", "contact_members"):
        # Members are counted, up to 500, by the index alone.
        counted = 501 if table == "contact_members" and occasion != "joined" else 0
        found = on_database(service.database_url, lambda connection, table=table: read(connection, table))
        assert found <= most + counted, table


@pytest.mark.skipif(IS_DISTRIBUTED, reason="on a cluster each node plans for itself")
def test_the_preview_reads_the_members_of_a_small_group(
    service: Service, contacts: None, automation: Callable[..., int]
) -> None:
    for statement in (*_SPREAD.split(";"), "VACUUM ANALYZE contacts, contact_members"):
        service.sql(statement)
    automation_id, day = automation(occasion="anniversary", group_id=902), date(2027, 3, 2)

    async def read(connection: Any) -> int:
        return await rows_read(
            connection, Role.APP, "contacts", run_store._PREVIEW, *ZONES, 1, "production", automation_id, "anniversary", 902, [], None,
            "UTC", "before", "keep", day, day + timedelta(days=60), 500,
        )  # fmt: skip

    [(members,)] = service.sql("SELECT count(*) FROM contact_members WHERE group_id = 902")
    assert 20 < members <= 50
    assert on_database(service.database_url, read) == members


def set_birthdays(service: Service) -> date:
    """Gives half of the contacts a birthday in 2 days, and half in 22. Returns today."""
    today: date = service.sql("SELECT (clock_now() AT TIME ZONE 'UTC')::date")[0][0]
    for number in range(2):
        soon = today + timedelta(days=2 + 20 * number)
        service.sql("UPDATE contacts SET birthday = $1 WHERE id % 2 = $2", soon.month * 100 + soon.day, number)
    return today


def test_the_preview_looks_no_further_than_the_gifts_that_it_lists(
    service: Service, contacts: None, automation: Callable[..., int]
) -> None:
    today = set_birthdays(service)
    automation_id = automation()

    async def read(connection: Any) -> tuple[int, date]:
        found = await store.find_automation(connection, (1, "production"), automation_id)
        asked: list[tuple[Any, ...]] = []
        connection.add_query_logger(lambda query: asked.append(query.args))
        listed = await preview(connection, found)
        await connection.fetchval("SELECT 1")  # the logger learns of a statement once the next one begins
        return len(listed), max(arguments[-2] for arguments in asked if len(arguments) > 3)

    listed, looked_ahead = on_database(service.database_url, read)
    assert (listed, looked_ahead < today + timedelta(days=20)) == (MOST_LISTED, True)


def test_the_list_looks_no_further_than_the_next_gift(
    service: Service, contacts: None, automation: Callable[..., int]
) -> None:
    today = set_birthdays(service)
    automation_id = automation()

    async def find(connection: Any) -> tuple[dict[int, date], int]:
        asked: list[tuple[Any, ...]] = []
        connection.add_query_logger(lambda query: asked.append(query.args))
        next_on = await run_store.find_next_days(connection, [("GB", "Europe/London")], 1, [automation_id], 60)
        return next_on, max(arguments[-1] for arguments in asked if arguments)

    next_on, looked_ahead = on_database(service.database_url, find)
    assert next_on == {automation_id: today + timedelta(days=2)}
    assert looked_ahead < 20


def test_a_step_plans_some_automations(service: Service, automation: Callable[..., int]) -> None:
    """Each may have a gift for every contact, and a statement that takes too long would be tried for ever."""
    for number in range(_AT_ONCE + 1):
        automation(name=f"A{number}")
    service.sql("UPDATE automations SET plan_at = '2000-01-01Z'")
    work(service, places=False)
    assert service.sql("SELECT count(*) FROM automations WHERE plan_at < clock_now()")[0][0] == 1


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster allows no triggers of this kind on its tables")
def test_large_automations_that_take_too_long_together_are_planned_one_by_one(
    service: Service, automation: Callable[..., int]
) -> None:
    """Twenty with 100,000 contacts each took more than the ten seconds of a statement, were tried for ever, and kept those of all customers waiting."""
    move_to(service, "2050-03-01 06:00Z")
    add_contact(service, "Ada", birthday=302)
    for number in range(5):
        automation(name=f"A{number}", occasion="birthday")
    service.sql(
        """
        CREATE FUNCTION takes_too_long() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF (SELECT count(DISTINCT automation_id) FROM added) > 1 THEN
                RAISE query_canceled USING MESSAGE = 'canceling statement due to statement timeout';
            END IF;
            RETURN NULL;
        END $$
        """
    )
    service.sql(
        """
        CREATE TRIGGER takes_too_long AFTER INSERT ON automation_runs REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION takes_too_long()
        """
    )

    async def run(database: Database, vault: Vault) -> dict[str, int]:
        context, other = (WorkerContext(database, vault, lambda *_: None) for _ in range(2))
        while await plan(context):
            pass
        return other.at_once

    assert service.on_pool(run, role=Role.WORKER) == {}, "what one worker has learned is its own"
    assert service.sql("SELECT count(DISTINCT automation_id) FROM automation_runs")[0][0] == 5


def test_the_gifts_of_a_year_are_those_that_were_sent_in_it(service: Service, automation: Callable[..., int]) -> None:
    automation_id, today = automation(), date(2027, 3, 2)
    runs = [
        ("placed", 0),
        ("placed", 364),
        ("placed", 365),
        ("failed", 1),
        ("skipped", 2),
        ("missed", 3),
        ("waiting", 0),
    ]
    for at, (state, days) in enumerate(runs):
        service.sql(
            """
            INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, state, order_reference)
            VALUES (1, 'production', $1, $2, $3, $3, now(), now(), $4, CASE WHEN $4 = 'placed' THEN 'REF' END)
            """,
            automation_id, 1_000_000 + at, today - timedelta(days), state,
        )  # fmt: skip

    async def count(connection: Any) -> tuple[int, int]:
        counts = await store.count_runs(connection, 1, [automation_id], today - timedelta(365))
        return counts[automation_id]["placed"], counts[automation_id]["failed"]

    assert on_database(service.database_url, count) == (2, 1)


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster has settings of its own for the coordinator's tables")
def test_pages_read_the_runs_that_they_show(service: Service, contacts: None, automation: Callable[..., int]) -> None:
    """An automation's page read all its runs, each with its contact, and home all runs of the last days."""
    automation_id, today = automation(), date(2027, 3, 2)
    service.sql(
        """
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, state, order_reference)
        SELECT 1, 'production', $1, id, day, day, $2, $2, state, CASE WHEN state = 'placed' THEN 'REF' END
        FROM (SELECT id, row_number() OVER () AS n FROM contacts LIMIT 3000) AS contact CROSS JOIN LATERAL (
            SELECT $2::date - n::int % 100 AS day, CASE n WHEN 3000 THEN 'failed' ELSE 'placed' END AS state) AS each
        """,
        automation_id, today,
    )  # fmt: skip
    service.sql("ANALYZE contacts, automation_runs")

    async def read(connection: Any, table: str, look_up: Callable[..., Any], *arguments: Any) -> tuple[int, int]:
        async with connection.transaction():
            await connection.execute(
                f"SET LOCAL ROLE {Role.APP}; SET LOCAL largesse.customers = '{{1}}'; SET LOCAL largesse.environments = '{{production}}'"
            )
            # The last ones by the plan for any arguments.
            found = [len(await look_up(connection, *arguments)) for _ in range(7)]
            so_far = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = $1"
            return found[-1], await connection.fetchval(so_far, table)

    for table, look_up, *arguments, count in (
        ("automation_runs", store.list_past, 1, automation_id, 50, 50),
        ("contacts", store.list_past, 1, automation_id, 50, 50),
        ("automation_runs", store.count_lost, (1, "production"), today - timedelta(days=10), 1),
    ):
        found, rows = on_database(
            service.database_url, lambda connection, asked=(table, look_up, *arguments): read(connection, *asked)
        )
        assert found == count
        assert rows == 7 * count, (table, look_up)
