"""What an invoiced customer owes: month after month, page after page, and paid to the last penny."""

import pytest
from tests.chained import actor_on, forge
from tests.ledger.test_corrections import MAX, member, propose
from tests.ledger.worlds import ACME, GLOBEX, INITECH, VAULT, database

from largesse.base.errors import OperatorError
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.ledger.corrections import approve_correction
from largesse.ledger.receivables import AmountDue, list_amounts_due, list_owed, read_months, settle

__all__ = ["database"]


async def charge(database: Database, amount_minor: int, customer_id: int = ACME) -> int:
    """Charges a receivable as an order does: no correction is left that would make it a payment. Returns its id."""
    await database.execute(
        OPERATOR,
        f"""
        INSERT INTO accounts (customer_id, environment, kind, currency)
        VALUES ({customer_id}, 'production', 'receivable', 'GBP') ON CONFLICT DO NOTHING
        """,
    )
    account: int = await database.fetchval(
        OPERATOR,
        "SELECT id FROM accounts WHERE customer_id = $1 AND kind = 'receivable' AND currency = 'GBP' AND environment = 'production'",
        customer_id,
    )
    proposed = await propose(database, "debit", amount_minor, account=account)
    await approve_correction(await member(database, MAX), proposed.id)
    await forge(database, "DELETE FROM corrections")
    return account


async def test_a_month_begins_with_what_the_last_one_left(database: Database) -> None:
    account = await charge(database, 5_00)
    await forge(database, "UPDATE entries SET created_at = date_trunc('month', now(), 'UTC') - interval '1 second'")
    await charge(database, 4_00)
    paid = await propose(database, "credit", 2_00, account=account)
    await approve_correction(await member(database, MAX), paid.id)
    async with database.connection(OPERATOR) as connection:
        [owed] = await list_amounts_due(connection, (ACME, "production"))
        months = await read_months(connection, ACME, owed, 12)
        assert await read_months(connection, ACME, owed, 1) == months[:1]
        assert await read_months(connection, ACME, AmountDue(999, "GBP", 0), 12) == []
    assert owed.owed_minor == 7_00
    assert [(one.opening_minor, one.charged_minor, one.paid_minor, one.closing_minor) for one in months] == [
        (5_00, 4_00, 2_00, 7_00),
        (0, 5_00, 0, 5_00),
    ]


async def test_a_payment_counts_in_the_month_whose_balance_it_changed(database: Database) -> None:
    """A payment that began in the last second of a month may wait for the account behind an order of the next."""
    account = await charge(database, 5_00)
    await forge(database, "UPDATE entries SET created_at = date_trunc('month', now(), 'UTC') - interval '1 day'")
    await charge(database, 4_00)
    actor = (await actor_on(database, VAULT)).on_behalf_of(ACME, "production")
    await settle(actor, currency="GBP", amount_minor=2_00, reference="bank-1")
    late = "UPDATE entries SET created_at = date_trunc('month', now(), 'UTC') - interval '1 second' WHERE kind = 'settlement'"
    await forge(database, late)
    async with database.connection(OPERATOR) as connection:
        months = await read_months(connection, ACME, AmountDue(account, "GBP", 7_00), 12)
    assert [(one.opening_minor, one.charged_minor, one.paid_minor, one.closing_minor) for one in months] == [
        (5_00, 4_00, 2_00, 7_00),
        (0, 5_00, 0, 5_00),
    ]


async def test_a_correction_counts_in_the_month_whose_balance_it_changed(database: Database) -> None:
    """A correction that was approved in the last second of a month may wait for the account behind an order of the next."""
    account = await charge(database, 5_00)
    await forge(database, "UPDATE entries SET created_at = date_trunc('month', now(), 'UTC') - interval '1 day'")
    await charge(database, 4_00)
    await forge(
        database,
        "UPDATE entries SET created_at = date_trunc('month', now(), 'UTC') + interval '1 second' WHERE created_at >= date_trunc('month', now(), 'UTC')",
    )
    paid = await propose(database, "credit", 2_00, account=account)
    approved = await approve_correction(await member(database, MAX), paid.id)
    second = "date_trunc('month', now(), 'UTC') - interval '1 second'"
    await forge(database, f"UPDATE entries SET created_at = {second} WHERE movement_id = {approved.transfer_id}")
    await forge(database, f"UPDATE corrections SET decided_at = {second}")
    async with database.connection(OPERATOR) as connection:
        months = await read_months(connection, ACME, AmountDue(account, "GBP", 7_00), 12)
    assert [(one.opening_minor, one.charged_minor, one.paid_minor, one.closing_minor) for one in months] == [
        (5_00, 4_00, 2_00, 7_00),
        (0, 5_00, 0, 5_00),
    ]


async def test_what_is_owed_can_be_paid_and_no_more(database: Database) -> None:
    await charge(database, 5_00)
    actor = (await actor_on(database, VAULT)).on_behalf_of(ACME, "production")
    with pytest.raises(OperatorError, match="at most what is owed"):
        await settle(actor, currency="GBP", amount_minor=5_01, reference="bank-1")
    assert (await settle(actor, currency="GBP", amount_minor=5_00, reference="bank-1")).balance_minor == 0
    with pytest.raises(OperatorError, match="at most what is owed"):
        await settle(actor, currency="GBP", amount_minor=1, reference="bank-2")


async def test_what_customers_owe_is_listed_page_by_page(database: Database) -> None:
    accounts = [await charge(database, 1_00, customer_id) for customer_id in (ACME, GLOBEX, INITECH)]
    async with database.connection(OPERATOR) as connection:
        first = await list_owed(connection, None, 2)
        rest = await list_owed(connection, first[-1].account_id, 2)
    assert [one.account_id for one in (*first, *rest)] == accounts
    assert (len(first), {one.owed_minor for one in first}) == (2, {1_00})
