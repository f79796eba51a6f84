"""Payment sources: each says what follows from it, and nobody else asks which it is."""

import re
from pathlib import Path

import asyncpg
import pytest

import largesse
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.ledger import payment_sources

RECEIVABLE = 91
PACKAGE = Path(largesse.__file__).parent
# A column or a member that is compared with nothing.
ASKS = re.compile(r"""(?<!service_)account_id["'\]]*\s+(is\s+(not\s+)?null|is\s+(not\s+)?none)\b""", re.IGNORECASE)


def test_an_order_keeps_what_it_is_paid_from() -> None:
    for source, payer in ((payment_sources.FromAccount(7), 7), (payment_sources.OnInvoice(), RECEIVABLE)):
        assert payment_sources.payment_source(source.account_id) == source
        assert source.payer_id(RECEIVABLE) == payer


@pytest.mark.parametrize(
    ("funding", "account_id", "refusal"),
    [
        ("balance", 7, None),
        ("balance", None, "`account_id` is required: this customer pays from a topped-up balance."),
        ("invoiced", None, None),
        ("invoiced", 7, "`account_id` must be omitted: this customer is invoiced."),
    ],
)
def test_a_customer_pays_in_its_own_way(funding: str, account_id: int | None, refusal: str | None) -> None:
    assert payment_sources.is_fitting(payment_sources.payment_source(account_id), funding) == (refusal is None)
    assert payment_sources.names_account(funding) == (funding == "balance")
    if refusal is not None:
        assert payment_sources.unfitting(funding).detail == refusal


async def test_a_customer_may_have_each_of_the_sources_and_no_other(database: Database) -> None:
    insert = "INSERT INTO customers (key, name, plan, funding) VALUES ($1, $1, 'pro', $1)"
    for funding in payment_sources.SOURCES:
        await database.execute(OPERATOR, insert, funding)
    with pytest.raises(asyncpg.CheckViolationError):
        await database.execute(OPERATOR, insert, "barter")


@pytest.mark.parametrize(
    ("account_id", "kind", "number", "pays"),
    [
        (7, "funding", 7, True),
        (7, "funding", 8, False),
        (7, "receivable", 7, False),
        (None, "receivable", 8, True),
        (None, "funding", 7, False),
    ],
)
async def test_sql_says_the_same(
    database: Database, account_id: int | None, kind: str, number: int, *, pays: bool
) -> None:
    query = f"""
        SELECT {payment_sources.is_payer("a", "o")} FROM (SELECT $1::int AS account_id) AS o,
            (SELECT $2::text AS kind, $3::int AS id) AS a
    """
    assert await database.fetchval(OPERATOR, query, account_id, kind, number) == pays


def test_nobody_else_asks_whether_an_order_has_an_account() -> None:
    asking = {
        str(path.relative_to(PACKAGE)): found[0]
        for path in PACKAGE.rglob("*.py")
        if (found := ASKS.search(path.read_text()))
    }
    assert set(asking) == {"ledger/payment_sources.py"}, asking
