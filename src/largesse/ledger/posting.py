"""The journal: balanced transfers of append-only entries. Each entry has the balance of its account after it.

A transfer is a set of entries that add up to zero. In the database they share a `movement_id`, the former name: a column cannot be renamed
while processes of an earlier release write it.

Posting needs the row locks of the accounts, taken in the order of ids, so that transfers cannot deadlock.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

import msgspec
from msgspec.structs import astuple

from largesse.base.errors import OperatorError
from largesse.base.money import label
from largesse.db.fragments import Fragment, compose, placeholder
from largesse.db.pool import Connection, is_distributed
from largesse.db.statements import insert, read_now
from largesse.encryption.chain import Chain
from largesse.ledger.chains import Account, entry_content, micros_of, pays_order
from largesse.ledger.own_accounts import own_accounts

_encode = msgspec.json.Encoder().encode
_SET_BALANCE = "UPDATE accounts SET balance_minor = $3, chain_head = $4 WHERE customer_id = $1 AND id = $2"
_LOCK = """
        SELECT id, balance_minor, chain_head, environment, kind, currency FROM accounts WHERE customer_id = $1 AND id = ANY($2::int[])
        ORDER BY id FOR NO KEY UPDATE
        """
_FUNDING_ACCOUNT = "SELECT customer_id, environment, currency FROM accounts WHERE id = $1 AND kind = 'funding'"
_IS_CLOSED = "SELECT closed_at IS NOT NULL FROM accounts WHERE customer_id = $1 AND id = $2"
# The amount with which a reference credited an account.
_EARLIER = "SELECT amount_minor FROM entries WHERE customer_id = $1 AND account_id = $2 AND reference = $3"
NEXT_TRANSFER_ID = "SELECT nextval('movements_id_seq')"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An entry to write: `amount_minor` was added to the account, whose balance was then `balance_minor`."""

    customer_id: int  # the customer of the account
    account_id: int
    transfer_id: int
    kind: str  # top_up, transfer, settlement, order or refund
    order_id: int | None
    amount_minor: int
    balance_minor: int
    reference: str | None = None
    order_reference: str | None = None  # the reference of its order, which may have no id yet


class Locked(NamedTuple):
    """An account that this transaction has locked: its balance, the head of its chain, and its marked properties."""

    balance_minor: int
    head: bytes
    environment: str
    kind: str
    currency: str


class _Row(msgspec.Struct, gc=False, omit_defaults=True):
    """A row of `entries`, with its mark."""

    customer_id: int
    account_id: int
    transfer_id: int
    kind: str
    order_id: int | None
    amount_minor: int
    balance_minor: int
    mac: bytes
    reference: str | None = None


class Posting(NamedTuple):
    """Entries with their marks, and their accounts in columns, with the balance and head after the last entry."""

    rows: list[_Row]
    customers: list[int]
    accounts: list[int]
    balances: list[int]
    heads: list[bytes]

    @property
    def arguments(self) -> tuple[str, list[int], list[int], list[int], list[bytes]]:
        """The arguments of a statement: the first is for the placeholder of `new_entries`, the others are for those of `new_balances`."""
        return _encode(self.rows).decode(), self.customers, self.accounts, self.balances, self.heads


async def post(
    connection: Connection, chain: Chain, locked: Mapping[int, Locked], entries: Sequence[Entry], at: datetime
) -> None:
    """Writes entries in the given order, and the balances of their accounts, which are `locked`."""
    if is_distributed(connection):
        for customer_id in {entry.customer_id: None for entry in entries}:
            own = [entry for entry in entries if entry.customer_id == customer_id]
            ids = await connection.fetchval(_DRAW_IDS, len(own))
            await post_by_shard_group(connection, mark_entries(chain, locked, own, at), at, ids)
        return
    await connection.execute(_POST, at, *mark_entries(chain, locked, entries, at).arguments)


async def post_by_shard_group(
    connection: Connection, posting: Posting, at: datetime, ids: Sequence[int], order_ids: Sequence[int] | None = None
) -> None:
    """Writes entries of one customer with these ids, and the balances after them, on its node.

    With `order_ids`, entries have the position of their order in it, from 1, instead of the order's id.
    """
    rows = []
    for entry_id, row in zip(ids, posting.rows, strict=True):
        _, account_id, transfer_id, kind, order_id, amount_minor, balance_minor, mac, reference = astuple(row)
        if order_ids is not None:
            order_id = order_ids[order_id - 1]
        written = transfer_id, kind, order_id, amount_minor, balance_minor, reference, at, mac
        rows.append((entry_id, row.customer_id, account_id, *written))
    await insert(connection, _INTO, rows)
    await connection.executemany(_SET_BALANCE, list(zip(*posting[1:], strict=True)))


NEXT_ENTRY_ID = Fragment("nextval('entries_id_seq')")
_INTO = Fragment("""
    INSERT INTO entries
        (id, customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, reference, created_at, mac)
""")
_ORDER_ID = Fragment("order_id")


def new_entries(at: str, entries: str, *, order_id: Fragment = _ORDER_ID) -> Fragment:
    """Returns SQL that writes entries: a statement, or part of one. Use it with `new_balances`.

    `at` and `entries` are placeholders for the time and for the first of a posting's arguments. `order_id` is SQL for the order id of an
    entry that has a position instead.
    """
    return compose(
        """
        {into}
        SELECT {entry_id}, customer_id, account_id, transfer_id, kind, {order_id}, amount_minor, balance_minor, reference, {at},
               decode(mac, 'base64')
        FROM json_to_recordset({entries}::json) AS new (
            customer_id integer, account_id integer, transfer_id bigint, kind text, order_id integer, amount_minor bigint,
            balance_minor bigint, reference text, mac text)
    """,
        into=_INTO,
        entry_id=NEXT_ENTRY_ID,
        order_id=order_id,
        at=placeholder(at),
        entries=placeholder(entries),
    )


def new_balances(customers: str, accounts: str, balances: str, heads: str) -> Fragment:
    """Returns SQL that sets the balance of each account from its last entry: a statement, or part of one.

    The parameters are placeholders for the other arguments of a posting.
    """
    return compose(
        """
        UPDATE accounts SET balance_minor = last.balance_minor, chain_head = last.chain_head
        FROM unnest({customers}::int[], {accounts}::int[], {balances}::bigint[], {heads}::bytea[])
            AS last (customer_id, account_id, balance_minor, chain_head)
        WHERE accounts.customer_id = last.customer_id AND accounts.id = last.account_id
    """,
        customers=placeholder(customers),
        accounts=placeholder(accounts),
        balances=placeholder(balances),
        heads=placeholder(heads),
    )


_DRAW_IDS = compose("SELECT ARRAY(SELECT {entry_id} FROM generate_series(1, $1::int))", entry_id=NEXT_ENTRY_ID)
_POST = compose(
    "WITH new_entries AS ({entries}) {balances}",
    entries=new_entries("$1", "$2"),
    balances=new_balances("$3", "$4", "$5", "$6"),
)


def mark_entries(
    chain: Chain,
    accounts: Mapping[int, Account],
    entries: Sequence[Entry],
    at: datetime,
    digests: Mapping[str | None, str] = MappingProxyType({}),
) -> Posting:
    """Marks entries of a time, on locked accounts. Every entry gets its mark here, and nowhere else.

    `digests` are the digests of the orders that are paid, by reference.
    """
    at_us, ends = micros_of(at), {account_id: one.head for account_id, one in accounts.items()}
    facts = {key: (one.environment, one.kind, one.currency) for key, one in accounts.items()}
    rows, last = [], {}
    for entry in entries:
        customer, account, transfer, kind, order_id, amount, balance, reference, of_order = astuple(entry)
        covered: tuple[str | None, ...] = facts[account]
        if pays_order(kind, amount):
            covered = *covered, digests.get(of_order)
        row = entry_content(customer, account, transfer, kind, of_order, amount, balance, reference, at_us, *covered)
        mac, ends[account] = chain.add(ends[account], row)
        rows.append(_Row(customer, account, transfer, kind, order_id, amount, balance, mac, reference))
        last[account] = entry
    return Posting(
        rows,
        [entry.customer_id for entry in last.values()],
        list(last),
        [entry.balance_minor for entry in last.values()],
        [ends[account] for account in last],
    )


async def lock_accounts(connection: Connection, customer_id: int, account_ids: Sequence[int]) -> dict[int, Locked]:
    """Locks a customer's accounts until the transaction ends, in the order of their ids. Returns them by id."""
    rows = await connection.fetch(_LOCK, customer_id, account_ids)
    return {account_id: Locked(*rest) for account_id, *rest in rows}


class Credit(NamedTuple):
    """The result of a credit: the account's balance in minor units, and whether it `is_new` or was made before."""

    balance_minor: int
    is_new: bool


async def top_up(
    connection: Connection, chain: Chain, account_id: int, amount_minor: int, reference: str | None
) -> Credit:
    """Credits a funding account. Call it inside a transaction.

    A reference credits an account once. Repeating it with the same amount changes nothing. Raises OperatorError for another amount, an amount
    that is not positive, and an unknown or closed account.
    """
    account = await connection.fetchrow(_FUNDING_ACCOUNT, account_id)
    if account is None:
        raise OperatorError(f"there is no funding account {account_id}")

    customer_id: int = account["customer_id"]
    own = await own_accounts(connection, customer_id, account["environment"], account["currency"])
    # Read under the locks, so that nobody closes the account meanwhile.
    await lock_accounts(connection, customer_id, [account_id, own["deposits"]])
    is_closed = await connection.fetchval(_IS_CLOSED, customer_id, account_id)

    def refuse_closed(_: int) -> None:
        if is_closed:
            raise OperatorError(
                f"the account is closed: open it again first, with `largesse accounts open {account_id}`"
            )

    return await pay_in(
        connection,
        chain,
        "top_up",
        to=(customer_id, account_id),
        deposits=own["deposits"],
        amount_minor=amount_minor,
        currency=account["currency"],
        reference=reference,
        check=refuse_closed,
    )


async def pay_in(  # noqa: PLR0913 - what a payment is, each by its name
    connection: Connection,
    chain: Chain,
    kind: str,
    *,
    to: tuple[int, int],
    deposits: int,
    amount_minor: int,
    currency: str,
    reference: str | None,
    check: Callable[[int], None],
) -> Credit:
    """Moves incoming money from a customer's deposits to another of its accounts.

    `to` is the customer and the account. `check` gets the account's balance, and raises OperatorError if the payment is not allowed. A reference
    counts once for the account, as for `top_up`, which raises the same errors. Call it inside a transaction.
    """
    if amount_minor <= 0:
        raise OperatorError("the amount must be greater than zero")
    customer_id, account_id = to
    locked = await lock_accounts(connection, customer_id, [account_id, deposits])
    before_minor = locked[account_id].balance_minor
    if reference is not None:
        earlier = await connection.fetchval(_EARLIER, *to, reference)
        if earlier == amount_minor:
            return Credit(before_minor, is_new=False)
        if earlier is not None:
            raise OperatorError(f"reference {reference!r} already credited {label(earlier, currency)}")
    check(before_minor)
    transfer_id: int = await connection.fetchval(NEXT_TRANSFER_ID)
    at = await read_now(connection)
    balance = before_minor + amount_minor
    await post(
        connection,
        chain,
        locked,
        [
            Entry(customer_id, account_id, transfer_id, kind, None, amount_minor, balance, reference),
            Entry(
                customer_id,
                deposits,
                transfer_id,
                kind,
                None,
                -amount_minor,
                locked[deposits].balance_minor - amount_minor,
            ),
        ],
        at,
    )
    return Credit(balance, is_new=True)
