"""Receivables: what an invoiced customer owes, by month and in all, and its payments.

Everything is read from the ledger. The amount due at the end of a month is the balance of the receivable at that time. The amount charged in a
month is the change of the balance without the payments. So the months add up, also after cancellations.
"""

from datetime import datetime

import msgspec
from msgspec.structs import replace

from largesse.base import clock
from largesse.base.errors import OperatorError
from largesse.base.money import label
from largesse.customers.actor import Actor
from largesse.customers.staff_roles import StaffRight
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection
from largesse.db.scope import Place
from largesse.ledger.own_accounts import find_own_accounts, own_accounts
from largesse.ledger.posting import Credit, pay_in
from largesse.ledger.statements import SKEW, find_entry, month_of, read_places

MOST_MONTHS = 120
_MOST_PAYMENTS = 10_000
_AMOUNTS_DUE = """
    SELECT a.id AS account_id, a.currency, -a.balance_minor AS owed_minor FROM accounts a
    WHERE a.customer_id = $1 AND a.environment = $2 AND a.kind = 'receivable'
      AND EXISTS (SELECT FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id)
    ORDER BY a.currency
"""
_CORRECTED = Fragment("CASE kind WHEN 'credit' THEN amount_minor ELSE -amount_minor END")
_IS_CORRECTED = Fragment("state = 'approved' AND kind <> 'refund'")  # refunds reduce the orders, not the payments
_PAYMENTS = compose(
    """
    SELECT id, at, reference, amount_minor, transfer_id FROM (
        SELECT id, created_at AS at, reference, amount_minor, movement_id AS transfer_id FROM entries
        WHERE customer_id = $1 AND account_id = $2 AND reference IS NOT NULL
        UNION ALL
        SELECT NULL, decided_at, NULL, {corrected}, transfer_id FROM corrections
        WHERE customer_id = $1 AND account_id = $2 AND {is_corrected}
    ) AS payment ORDER BY at DESC LIMIT $3
    """,
    corrected=_CORRECTED,
    is_corrected=_IS_CORRECTED,
)
_FIRST_ENTRY = "SELECT created_at FROM entries WHERE customer_id = $1 AND account_id = $2 ORDER BY id LIMIT 1"
# A cluster joins a local table, such as corrections, only as a CTE.
_RECEIVABLES = compose(
    """
    WITH corrected AS MATERIALIZED (
        SELECT customer_id, account_id, sum({corrected}) AS minor
        FROM corrections WHERE {is_corrected} GROUP BY customer_id, account_id)
    SELECT c.key AS customer, c.name, r.environment, r.currency,
           -r.balance_minor AS owed_minor,
           (coalesce(settled.minor, 0) + coalesce(corrected.minor, 0))::bigint AS settled_minor
    FROM accounts r
    JOIN customers c ON c.id = r.customer_id
    LEFT JOIN LATERAL (
        SELECT sum(amount_minor) AS minor FROM entries
        WHERE customer_id = r.customer_id AND account_id = r.id AND reference IS NOT NULL
    ) AS settled ON true
    LEFT JOIN corrected ON corrected.customer_id = r.customer_id AND corrected.account_id = r.id
    WHERE r.kind = 'receivable' AND ($1::text IS NULL OR c.key = $1)
      AND (c.funding = 'invoiced' OR r.balance_minor <> 0)
    ORDER BY c.key, r.environment, r.currency
    """,
    corrected=_CORRECTED,
    is_corrected=_IS_CORRECTED,
)
_OWED = """
    SELECT r.id, r.customer_id, c.key AS customer, c.name, r.environment, r.currency, -r.balance_minor AS owed_minor
    FROM accounts r JOIN customers c ON c.id = r.customer_id
    WHERE r.kind = 'receivable' AND r.balance_minor <> 0
      AND ($1::int IS NULL OR (r.customer_id, r.id) > (SELECT customer_id, id FROM accounts WHERE id = $1))
    ORDER BY r.customer_id, r.id LIMIT $2
"""
_CUSTOMER_KEY = "SELECT key FROM customers WHERE id = $1"


class AmountDue(msgspec.Struct, frozen=True):
    """What a customer owes in one currency, in minor units above zero."""

    account_id: int
    currency: str
    owed_minor: int


class AmountDueMonth(msgspec.Struct, frozen=True):
    """A month in UTC, from `since`: the amount due before it, charged for orders less refunds, paid, and due after it."""

    since: datetime
    opening_minor: int
    charged_minor: int
    paid_minor: int
    closing_minor: int


class Payment(msgspec.Struct, frozen=True):
    """A payment that the operator has recorded, or the correction of one."""

    id: int | None  # the id of its entry; None for a correction
    at: datetime
    reference: str | None  # None for a correction
    amount_minor: int
    transfer_id: int


async def list_amounts_due(connection: Connection, place: Place) -> list[AmountDue]:
    """Returns what a customer owes in an environment, for each currency it was ever invoiced in."""
    rows = await connection.fetch(_AMOUNTS_DUE, *place)
    return [AmountDue(**row) for row in rows]


async def list_payments(connection: Connection, customer_id: int, owed: AmountDue) -> list[Payment]:
    """Returns the payments of a customer in a currency and their corrections, latest first, at most 10,000."""
    rows = await connection.fetch(_PAYMENTS, customer_id, owed.account_id, _MOST_PAYMENTS)
    return [Payment(**row) for row in rows]


async def read_months(connection: Connection, customer_id: int, owed: AmountDue, months: int) -> list[AmountDueMonth]:
    """Returns the last months of an amount due, latest first, none from before the first order."""
    first: datetime | None = await connection.fetchval(_FIRST_ENTRY, customer_id, owed.account_id)
    if first is None:
        return []
    begin, end = month_of(clock.now())
    since = [month_of(begin, -back)[0] for back in range(min(months, MOST_MONTHS))]
    since = [one for one in since if month_of(one)[1] > first]
    places = await read_places(connection, customer_id, owed.account_id, [end, *since])
    payments = [
        await _place_correction(connection, customer_id, owed, payment)
        for payment in await list_payments(connection, customer_id, owed)
    ]
    found = []
    for at, one in enumerate(since):
        after, before = places[at], places[at + 1]
        paid = sum(payment.amount_minor for payment in payments if _is_of(payment, one, before.first, after.first))
        opening, closing = -before.balance_minor, -after.balance_minor
        found.append(AmountDueMonth(one, opening, closing - opening + paid, paid, closing))
    return found


async def _place_correction(connection: Connection, customer_id: int, owed: AmountDue, payment: Payment) -> Payment:
    """Returns a correction at the end of a month with the id of its entry: it may have waited behind an entry of the next month."""
    if payment.id is not None or month_of(payment.at) == month_of(payment.at + SKEW):
        return payment
    found = await find_entry(connection, customer_id, owed.account_id, payment.transfer_id, payment.at)
    return replace(payment, id=found)


def _is_of(payment: Payment, month: datetime, first: int, end: int) -> bool:
    """Returns whether a payment changed the balance in a month, of the entries from `first` to before `end`."""
    return month_of(payment.at)[0] == month if payment.id is None else first <= payment.id < end


class Receivable(msgspec.Struct, frozen=True):
    """What a customer owes in one environment and currency, in minor units."""

    customer: str
    name: str
    environment: str
    currency: str
    ordered_minor: int  # all orders ever, less refunds
    settled_minor: int  # all payments and their corrections
    owed_minor: int


async def list_receivables(connection: Connection, customer: str | None = None) -> list[Receivable]:
    """Returns what each customer owes who was ever invoiced, sorted by customer. Includes customers who owe nothing now."""
    rows = await connection.fetch(_RECEIVABLES, customer)
    return [Receivable(**row, ordered_minor=row["owed_minor"] + row["settled_minor"]) for row in rows]


class OwedAmount(msgspec.Struct, frozen=True):
    """What a customer owes in one environment and currency, in minor units. Below zero it has paid too much."""

    account_id: int
    customer_id: int
    customer: str
    name: str
    environment: str
    currency: str
    owed_minor: int


async def list_owed(connection: Connection, after: int | None, most: int) -> list[OwedAmount]:
    """Returns what customers owe, by customer, after the account with that id."""
    return [OwedAmount(*row) for row in await connection.fetch(_OWED, after, most)]


async def settle(actor: Actor, *, currency: str, amount_minor: int, reference: str) -> Credit:
    """Records a payment by the actor's customer.

    A reference names one payment. Repeating it with the same amount changes nothing. Raises OperatorError for a customer that was never invoiced in
    this currency, an amount that is not positive or above the amount due, and a reference with another amount.
    """
    customer_id, environment = actor.place

    def refuse_too_much(balance_minor: int) -> None:
        if amount_minor > (owed := max(0, -balance_minor)):
            raise OperatorError(f"the amount must be at most what is owed, {label(owed, currency)}")

    async with actor.transaction(StaffRight.MONEY) as transaction:
        connection = transaction.connection
        customer = await connection.fetchval(_CUSTOMER_KEY, customer_id)
        if "receivable" not in await find_own_accounts(connection, customer_id, environment, currency):
            raise OperatorError(f"customer {customer!r} was never invoiced in {currency} in {environment}")
        own = await own_accounts(connection, customer_id, environment, currency)
        credit = await pay_in(
            connection,
            transaction.entries,
            "settlement",
            to=(customer_id, own["receivable"]),
            deposits=own["deposits"],
            amount_minor=amount_minor,
            currency=currency,
            reference=reference,
            check=refuse_too_much,
        )
        if credit.is_new:
            after = {
                "amount_minor": amount_minor,
                "currency": currency,
                "reference": reference,
                "owed_minor": -credit.balance_minor,
            }
            await transaction.record("receivable.settled", f"receivable of {customer} in {currency}", after=after)
    return credit
