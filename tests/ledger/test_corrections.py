"""Corrections by two people: who may decide, what is posted, and that it is posted once."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace
from msgspec.structs import replace as replace_struct
from tests.chained import actor_on
from tests.distributed import IS_DISTRIBUTED
from tests.ledger.worlds import ACME, FLOAT, TEAM, VAULT, YEN, database
from tests.plans import rows_read
from tests.web.api.test_keys_meanwhile import waits_for

from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffMember
from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.ledger import corrections, corrections_store
from largesse.ledger.corrections_store import Correction, find_correction, list_corrections, list_waiting
from largesse.ledger.receivables import list_amounts_due, list_payments, list_receivables, read_months
from largesse.ledger.statements import read_statement, statement_page
from largesse.verify.ledger import CORRECTIONS, LEDGER

__all__ = ["database"]

FAY, MAX, ZOE = 11, 12, 13
LARGEST = 1_000_000_000_00


async def member(database: Database, id_: int) -> Actor:
    return await staff_on(database, VAULT, id_)


async def propose(
    database: Database,
    kind: str = "credit",
    amount_minor: int = 10_00,
    *,
    by: int = FAY,
    account: int = FLOAT,
    **more: Any,
) -> Correction:
    new = corrections.NewCorrection(
        account, kind, amount_minor, **{"reason": "The bank named another reference.", **more}
    )
    return await corrections.propose_correction(await member(database, by), new)


async def balances(database: Database) -> dict[str, int]:
    rows = await database.fetch(
        OPERATOR,
        "SELECT coalesce(key, kind) AS name, balance_minor FROM accounts WHERE balance_minor <> 0 AND currency = 'GBP'",
    )
    return {row["name"]: row["balance_minor"] for row in rows}


async def broken(database: Database) -> list[str]:
    async with database.connection(OPERATOR) as connection:
        return [check.name for check in (*LEDGER, *CORRECTIONS) if await connection.fetch(check.sql)]


async def test_one_proposes_another_approves_and_it_is_posted_once(database: Database) -> None:
    proposed = await propose(database)
    assert (proposed.state, proposed.proposed_by, proposed.account, proposed.currency) == (
        "waiting",
        FAY,
        "Float",
        "GBP",
    )
    assert (await balances(database))["gbp"] == 100_00, "nothing is posted before somebody else approves"
    done = await corrections.approve_correction(await member(database, MAX), proposed.id)
    assert (done.state, done.decided_by) == ("approved", MAX)
    assert await balances(database) == {"gbp": 110_00, "deposits": -110_00}
    for again in (corrections.approve_correction, corrections.decline_correction):
        with pytest.raises(corrections.CorrectionEnded, match="approved"):
            await again(await member(database, ZOE), proposed.id)
    async with database.connection(OPERATOR) as connection:
        statement = await read_statement(connection, ACME, FLOAT)
        last = (await statement_page(connection, statement, None, 10))[-1]
        assert (last.kind, last.amount_minor, last.balance_minor) == ("correction", 10_00, 110_00)
        assert await list_waiting(connection, 10) == []
        assert await list_corrections(connection, None, 10) == [done]
    acts = await database.fetch(
        OPERATOR,
        "SELECT customer_id, act, actor, actor_id FROM audit_events WHERE subject = 'correction 1' ORDER BY id",
    )
    assert [tuple(row) for row in acts] == [
        (ACME, "correction.proposed", "staff", FAY),
        (ACME, "correction.approved", "staff", MAX),
    ]
    assert await broken(database) == []


async def test_a_debit_takes_back_what_did_not_come_and_never_more_than_there_is(database: Database) -> None:
    await corrections.approve_correction(await member(database, MAX), (await propose(database, "debit", 100_00)).id)
    assert await balances(database) == {}
    too_much = await propose(database, "debit", 1)
    with pytest.raises(InsufficientBalance):
        await corrections.approve_correction(await member(database, MAX), too_much.id)
    async with database.connection(OPERATOR) as connection:
        assert (await find_correction(connection, too_much.id)).state == "waiting", (
            "it can be approved once there is money"
        )
    assert await broken(database) == []


async def test_nobody_decides_about_their_own(database: Database) -> None:
    own = await propose(database)
    for decide in (corrections.approve_correction, corrections.decline_correction):
        with pytest.raises(corrections.OwnCorrection):
            await decide(await member(database, FAY), own.id)
    with pytest.raises(NotFound):
        await corrections.withdraw_correction(await member(database, MAX), own.id)
    assert (await corrections.withdraw_correction(await member(database, FAY), own.id)).state == "withdrawn"
    with pytest.raises(corrections.CorrectionEnded, match="withdrawn"):
        await corrections.approve_correction(await member(database, MAX), own.id)
    assert (await balances(database))["gbp"] == 100_00


@pytest.mark.parametrize("change", ["is_active = false", "role = 'auditor'"])
async def test_it_is_approved_only_while_its_proposer_may_correct(database: Database, change: str) -> None:
    proposed, max_ = await propose(database), await member(database, MAX)
    async with database.transaction(OPERATOR) as leaving:
        await leaving.execute(f"UPDATE staff SET {change} WHERE id = {FAY}")
        approving = asyncio.ensure_future(corrections.approve_correction(max_, proposed.id))
        while not await waits_for(leaving, approving):
            pass
    with pytest.raises(corrections.ProposerLeft):
        await approving
    assert (await balances(database))["gbp"] == 100_00
    assert (await corrections.decline_correction(max_, proposed.id)).state == "declined"
    assert await broken(database) == []


async def test_a_command_corrects_nothing_as_nobody_knows_who_it_is(database: Database) -> None:
    operator = await actor_on(database, VAULT)
    with pytest.raises(InvalidRequest):
        await corrections.propose_correction(operator, corrections.NewCorrection(FLOAT, "credit", 1, "x"))
    with pytest.raises(InvalidRequest):
        await corrections.approve_correction(operator, (await propose(database)).id)


async def test_of_many_decisions_at_once_one_counts(database: Database) -> None:
    proposed = await propose(database)
    deciding = [
        (corrections.approve_correction if at % 3 else corrections.decline_correction)(
            await member(database, MAX if at % 2 else ZOE), proposed.id
        )
        for at in range(1, 9)
    ]
    outcomes = await asyncio.gather(*deciding, return_exceptions=True)
    done = [one for one in outcomes if isinstance(one, Correction)]
    assert len(done) == 1
    assert all(isinstance(one, corrections.CorrectionEnded) for one in outcomes if one is not done[0])
    expected = 110_00 if done[0].state == "approved" else 100_00
    assert (await balances(database))["gbp"] == expected
    assert await broken(database) == []


async def test_many_corrections_at_once_leave_one_chain(database: Database) -> None:
    proposed = [await propose(database, "credit" if at % 2 else "debit", 1_00) for at in range(8)]
    await asyncio.gather(*[corrections.approve_correction(await member(database, MAX), one.id) for one in proposed])
    assert (await balances(database))["gbp"] == 100_00
    assert await broken(database) == []


@pytest.mark.parametrize(("days", "state"), [(13, "approved"), (14, None)])
async def test_it_can_be_approved_for_14_days(database: Database, days: int, state: str | None) -> None:
    proposed = await propose(database)
    await database.execute(
        OPERATOR,
        "UPDATE corrections SET expires_at = expires_at - $1 * interval '1 day' - interval '1 second'",
        float(days),
    )
    if state is not None:
        assert (await corrections.approve_correction(await member(database, MAX), proposed.id)).state == state
        return
    async with database.connection(OPERATOR) as connection:
        assert (await find_correction(connection, proposed.id)).state == "expired"
        assert await list_waiting(connection, 10) == []
    with pytest.raises(corrections.CorrectionEnded, match="expired"):
        await corrections.approve_correction(await member(database, MAX), proposed.id)
    with pytest.raises(corrections.CorrectionEnded, match="expired"):
        await corrections.withdraw_correction(await member(database, FAY), proposed.id)


@pytest.mark.parametrize("reason", ["x", "x" * corrections.LONGEST_REASON])
@pytest.mark.parametrize("amount_minor", [1, LARGEST])
async def test_limits_that_hold(database: Database, reason: str, amount_minor: int) -> None:
    assert (await propose(database, amount_minor=amount_minor, reason=reason)).state == "waiting"


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""},
        {"reason": "x" * (corrections.LONGEST_REASON + 1)},
        {"amount_minor": 0},
        {"amount_minor": -1},
        {"amount_minor": LARGEST + 1},
        {"kind": "gift"},
        {"kind": "refund"},
        {"kind": "credit", "order_reference": "o-1"},
    ],
)
async def test_limits_that_do_not(database: Database, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        await propose(database, **wrong)
    assert await database.fetchval(OPERATOR, "SELECT count(*) FROM corrections") == 0


async def test_at_most_500_wait_and_the_ended_ones_leave_room(database: Database) -> None:
    insert = """
        INSERT INTO corrections (customer_id, environment, account_id, kind, amount_minor, reason, proposed_by, proposed_at, expires_at,
                                 state, decided_by, decided_at)
        SELECT 1, 'production', 1, 'credit', 1, 'x', 11, now(), now() + $1::interval, $2, $3, CASE WHEN $3::int IS NOT NULL THEN now() END
        FROM generate_series(1, $4)
    """
    day = timedelta(days=1)
    await database.execute(OPERATOR, insert, day, "waiting", None, corrections.MAX_WAITING - 1)
    await database.execute(OPERATOR, insert, -day, "waiting", None, corrections.MAX_WAITING)
    await database.execute(OPERATOR, insert, day, "declined", MAX, corrections.MAX_WAITING)
    assert (await propose(database)).state == "waiting"
    with pytest.raises(corrections.TooManyWaiting):
        await propose(database)


async def test_accounts_and_orders_that_are_not_there(database: Database) -> None:
    with pytest.raises(NotFound):
        await propose(database, account=999)
    deposits = await database.fetchval(OPERATOR, "SELECT id FROM accounts WHERE kind = 'deposits' LIMIT 1")
    with pytest.raises(NotFound):
        await propose(database, account=deposits)
    with pytest.raises(corrections.NoSuchOrder):
        await propose(database, "refund", order_reference="none")
    with pytest.raises(NotFound):
        await corrections.approve_correction(await member(database, MAX), 999)


async def test_a_closed_account_gets_nothing(database: Database) -> None:
    proposed = await propose(database, account=YEN)
    await database.execute(OPERATOR, "UPDATE accounts SET closed_at = now() WHERE id = $1", YEN)
    with pytest.raises(corrections.AccountClosed):
        await propose(database, account=YEN)
    with pytest.raises(corrections.AccountClosed):
        await corrections.approve_correction(await member(database, MAX), proposed.id)


@pytest.mark.parametrize(
    "forged",
    [
        "UPDATE corrections SET amount_minor = 1",
        "UPDATE corrections SET proposed_by = 99",
        f"UPDATE corrections SET account_id = {TEAM}",
        "UPDATE corrections SET state = 'approved', decided_by = proposed_by, decided_at = now(), transfer_id = 1",
    ],
)
async def test_the_database_refuses_to_change_what_was_proposed(database: Database, forged: str) -> None:
    await propose(database)
    with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.CheckViolationError)):
        await database.execute(OPERATOR, forged)


async def test_what_was_decided_stays_and_verify_finds_what_nobody_proposed(database: Database) -> None:
    proposed = await propose(database)
    await corrections.approve_correction(await member(database, MAX), proposed.id)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await database.execute(OPERATOR, "UPDATE corrections SET state = 'declined', transfer_id = NULL")
    await database.execute(
        OPERATOR,
        """
        INSERT INTO corrections (customer_id, environment, account_id, kind, amount_minor, reason, state, proposed_by, proposed_at, expires_at,
                                 decided_by, decided_at, transfer_id)
        SELECT customer_id, environment, account_id, kind, amount_minor, reason, state, proposed_by, proposed_at, expires_at,
               decided_by, decided_at, transfer_id FROM corrections
        """,
    )
    assert await broken(database) == ["corrections-are-by-two"]


async def test_on_a_receivable_a_correction_counts_with_the_payments(database: Database) -> None:
    await database.execute(
        OPERATOR,
        "INSERT INTO accounts (customer_id, environment, kind, currency) VALUES (1, 'production', 'receivable', 'GBP') ON CONFLICT DO NOTHING",
    )
    receivable = await database.fetchval(
        OPERATOR, "SELECT id FROM accounts WHERE kind = 'receivable' AND currency = 'GBP'"
    )
    proposed = await propose(database, "debit", 5_00, account=receivable)
    await corrections.approve_correction(await member(database, MAX), proposed.id)
    proposed = await propose(database, "credit", 7_00, account=receivable)
    await corrections.approve_correction(await member(database, MAX), proposed.id)
    async with database.connection(OPERATOR) as connection:
        [owed] = await list_amounts_due(connection, (ACME, "production"))
        payments = await list_payments(connection, ACME, owed)
        [month] = await read_months(connection, ACME, owed, 12)
        [listed] = await list_receivables(connection)
    assert owed.owed_minor == -2_00
    assert [(one.amount_minor, one.reference) for one in payments] == [(7_00, None), (-5_00, None)]
    assert (month.charged_minor, month.paid_minor, month.closing_minor) == (0, 2_00, -2_00)
    assert (listed.ordered_minor, listed.settled_minor, listed.owed_minor) == (0, 2_00, -2_00)
    assert await broken(database) == []


async def staff_on(database: Database, vault: Vault, id_: int) -> Actor:
    actor = await actor_on(database, vault)
    insert = """
        INSERT INTO staff (id, email, email_key, name, role) OVERRIDING SYSTEM VALUE
        VALUES ($1, $2, $2, 'Fay', 'finance') ON CONFLICT DO NOTHING RETURNING email
    """
    async with actor.transaction() as transaction:
        if email := await transaction.connection.fetchval(insert, id_, f"{id_}@largesse.example"):
            await transaction.of_installation().record("staff.invited", email, after={"role": "finance"})
    acting = replace_struct(actor.acting, who=replace_struct(actor.acting.who, kind="staff", id=id_))
    return replace(
        actor, acting=acting, staff=StaffMember(1, id_, f"{id_}@largesse.example", "Fay", "finance", is_proved=True)
    )


@pytest.mark.skipif(IS_DISTRIBUTED, reason="the corrections are read on the coordinator, their accounts on nodes")
async def test_a_page_reads_its_own_corrections_among_those_of_many_accounts(connection: asyncpg.Connection) -> None:
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(
        """
        INSERT INTO customers (id, key, name, plan, funding) OVERRIDING SYSTEM VALUE
        SELECT n, 'c' || n, 'C', 'pro', 'balance' FROM generate_series(1, 3000) AS n;
        INSERT INTO accounts (id, customer_id, environment, kind, key, name, currency)
        SELECT n, n, 'production', 'funding', 'main', 'Main', 'GBP' FROM generate_series(1, 3000) AS n;
        INSERT INTO corrections (customer_id, environment, account_id, kind, amount_minor, reason, state, proposed_by, proposed_at, expires_at, decided_by, decided_at)
        SELECT 1 + n % 3000, 'production', 1 + n % 3000, 'credit', 1, 'Because.', 'declined', 1, clock_now(), clock_now(), 2, clock_now()
        FROM generate_series(1, 9000) AS n;
        ANALYZE
        """
    )
    for before in (None, 5000):
        read = await rows_read(connection, Role.OFFICE, "corrections", corrections_store._NEWEST, before, 51)
        assert read == 51
