"""What each role of the database can do to what became of lines, and to what was ordered: refused, or found, also after `migrate` and `rebuild-reports`."""

import io
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.chained import acting_on, chain_up, forge
from tests.closing import closing
from tests.verify.test_audit import MASTER_KEY, VAULT, fill
from tests.verify.test_forging_roles import attack

from largesse.db import migrate
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR, WORKER, for_customer
from largesse.lines.states import LineKey, record_claim
from largesse.reports.updates import apply_changes, rebuild
from largesse.verify.anchor import make_anchor
from largesse.verify.audit import audit
from largesse.webhooks.queues import fan_out

LINE = LineKey(1, 3, 1)  # of a collection: nothing more happens until its recipient chooses
OTHER = LineKey(1, 3, 2)
AT = "(at AT TIME ZONE 'UTC' - interval '1 day') AT TIME ZONE 'UTC'"
REWIND = "DELETE FROM line_states WHERE number = 1; DELETE FROM line_events WHERE number = 1"
BACKDATE = f"""
    UPDATE line_events SET at = {AT} WHERE number = 1;
    UPDATE line_states SET claimed_at = {AT.replace("at AT", "claimed_at AT")} WHERE number = 1
"""
RESET = "UPDATE line_event_head SET number = 0, head = decode(repeat('00', 16), 'hex')"
EMPTY = "DELETE FROM line_event_marks"
CHANGED = "INSERT INTO order_changes (customer_id, order_id, changed_at) VALUES (1, 3, now())"
# What the owner of the tables does, whether the gift is claimed again, and what finds it.
FORGERIES = {
    "rewound": (REWIND, True, {"line-events-are-marked"}),
    "rewound, its mark too": (
        f"{REWIND}; DELETE FROM line_event_marks WHERE line = 1",
        True,
        {"line-events-are-chained"},
    ),
    "rewound, the chain reset": (
        f"{REWIND}; {EMPTY}; {RESET}",
        True,
        {"line-events-are-marked", "line-events-are-whole"},
    ),
    "rewound for good": (REWIND, False, {"line-events-are-marked"}),
    "an event of another time": (BACKDATE, False, {"line-events-are-marked"}),
    "an event and its mark of another time": (
        f"{BACKDATE}; UPDATE line_event_marks SET at = {AT} WHERE line = 1",
        False,
        {"line-events-are-chained"},
    ),
    "a state of another time": (
        "UPDATE line_states SET claimed_at = now() WHERE number = 1",
        False,
        {"states-follow-events"},
    ),
    "an event made up": (
        """INSERT INTO line_events (customer_id, order_id, number, event, at) VALUES (1, 3, 3, 'claimed', now());
           INSERT INTO line_states (customer_id, order_id, number, state, claimed_at) VALUES (1, 3, 3, 'claimed', now())""",
        False,
        {"line-events-are-marked"},
    ),
    "the last marks gone": (
        "DELETE FROM line_event_marks WHERE number = 2",
        False,
        {"line-events-are-marked", "line-events-are-whole"},
    ),
    "the chain reset": (f"{EMPTY}; {RESET}; {CHANGED}", False, {"line-events-are-whole"}),
    "the head gone": (f"DELETE FROM line_event_head; {CHANGED}", False, {"line-events-are-whole"}),
    "a head made of a mark": (
        "UPDATE line_event_head SET head = substring((SELECT mac FROM line_event_marks WHERE number = 2) FROM 2)",
        False,
        {"line-events-are-whole"},
    ),
}
# What a role may not even try. The worker makes marks, and may put the head on.
REFUSED = (
    "UPDATE line_events SET at = at",
    "DELETE FROM line_events",
    "DELETE FROM line_states",
    "UPDATE line_event_marks SET at = at",
    EMPTY,
    RESET,
    "UPDATE line_event_head SET head = head",
    "DELETE FROM line_event_head",
    "TRUNCATE line_event_marks",
    "INSERT INTO line_event_head (number, head) VALUES (0, '')",
)
ORDERS = {
    "another product and value": """
        UPDATE orders SET product_id = (SELECT max(id) FROM products), value_minor = 5000, total_minor = 5000 * code_count
        WHERE id = 1
    """,
    "who placed it": "UPDATE orders SET service_account_id = NULL, user_id = 1 WHERE id = 1",
    "when": f"UPDATE orders SET created_at = {AT.replace('at AT', 'created_at AT')} WHERE id = 1",
    "a diverted recipient": "UPDATE lines SET recipient_email = 'eve@acme.example' WHERE order_id = 1 AND number = 1",
}
MARK = "INSERT INTO line_event_marks SELECT 9, 1, 3, 3, 'claimed', at, mac FROM line_event_marks WHERE number = 1"


async def claim(database: Database, *lines: LineKey) -> None:
    for line in lines:
        async with database.transaction(for_customer(1, "production")) as connection:
            at = await connection.fetchval("SELECT clock_now()")
            await record_claim(connection, line, at, None, "en")
    await follow(database)


async def follow(database: Database) -> None:
    """What the worker does."""
    async with database.connection(WORKER) as connection:
        await fan_out(connection, 100)
    acting, taken = await acting_on(database, VAULT), 1
    while taken:
        async with database.transaction(WORKER) as connection:
            taken = await apply_changes(connection, acting)


async def migrate_and_rebuild(database: Database, url: str) -> None:
    await migrate.upgrade(url)
    assert await chain_up(database, bytes.fromhex(MASTER_KEY)) is None
    await rebuild(database, await acting_on(database, VAULT), lambda _done, _total: None)
    await follow(database)


async def findings(database: Database) -> set[str]:
    report = await audit(database, VAULT, progress_to=io.StringIO())
    return {finding.check for finding in report.findings}


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    await fill(database_url)
    async with closing(Database.connect(database_url)) as database:
        await claim(database, LINE, OTHER)
        assert await findings(database) == set()
        yield database


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", FORGERIES)
async def test_what_the_owner_forges_is_found_and_stays_so(database: Database, database_url: str, name: str) -> None:
    forgery, is_claimed_again, checks = FORGERIES[name]
    await forge(database, forgery)
    if is_claimed_again:
        await claim(database, LINE)
    await follow(database)
    assert checks <= await findings(database)
    await migrate_and_rebuild(database, database_url)
    assert checks <= await findings(database)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ORDERS)
async def test_an_order_that_the_owner_changes_is_found_and_stays_so(
    database: Database, database_url: str, name: str
) -> None:
    await forge(database, ORDERS[name])
    assert "entries-are-chained" in await findings(database)
    await migrate_and_rebuild(database, database_url)
    assert "entries-are-chained" in await findings(database)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("role", [Role.APP, Role.WORKER, Role.READ, Role.OPERATOR])
async def test_no_role_rewinds_a_line_or_changes_a_mark(database: Database, database_url: str, role: Role) -> None:
    for forgery in REFUSED:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await attack(database_url, role, forgery)
    if role is Role.WORKER:
        await attack(database_url, role, MARK)
        assert "line-events-are-chained" in await findings(database)
    else:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await attack(database_url, role, MARK)
        assert await findings(database) == set()


@pytest.mark.slow
async def test_what_became_of_lines_before_the_upgrade_is_marked_as_it_is_found(database: Database) -> None:
    unmarked = f"{EMPTY}; {RESET}; DELETE FROM audit_events WHERE customer_id = 0; DELETE FROM audit_heads WHERE customer_id = 0"
    await forge(database, f"{unmarked}; {CHANGED}")
    assert await findings(database) == set(), "it waits"
    await follow(database)
    assert await findings(database) == set()
    marks = "SELECT number, line, event FROM line_event_marks ORDER BY number"
    assert [tuple(row) for row in await database.fetch(OPERATOR, marks)] == [(1, 1, "claimed"), (2, 2, "claimed")]


@pytest.mark.slow
async def test_an_anchor_finds_marks_that_were_made_anew(database: Database) -> None:
    async with database.connection(OPERATOR) as connection:
        anchor = await make_anchor(connection)
    assert [(one.name, one.of, one.id) for one in anchor.moves] == [("line events", 0, 2)]
    report = await audit(database, VAULT, anchor=anchor, progress_to=io.StringIO())
    assert report.findings == []
    await forge(database, f"{EMPTY}; {RESET}")
    report = await audit(database, VAULT, anchor=anchor, progress_to=io.StringIO())
    assert ("anchor-holds", ("line events mark 2",)) in [(one.check, one.ids) for one in report.findings]


@pytest.mark.slow
async def test_nothing_is_marked_twice(database: Database) -> None:
    before = await database.fetch(OPERATOR, "SELECT * FROM line_event_marks, line_event_head")
    await forge(database, CHANGED)
    await follow(database)
    assert await database.fetch(OPERATOR, "SELECT * FROM line_event_marks, line_event_head") == before
