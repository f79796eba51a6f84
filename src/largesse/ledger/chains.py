"""The chain of each account's entries: the content of their marks, and the entries before the first mark.

Entries have had marks since chains were added (largesse.encryption). Older entries are covered by the opening of their account: the mark that
the last of them would have if all had been chained. `largesse migrate` makes all openings at once, and only once.

A mark also covers the environment, kind and currency of its account. Marks of the first format did not, so the account has its own mark for
them (`accounts.mac`).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from largesse.base.errors import OperatorError
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row
from largesse.encryption.chain import START, Chain, content, micros

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ENTRIES_AT_ONCE = 5_000

# SQL for the columns that `entry_content` takes, of an entry e and its order o.
CONTENT_COLUMNS = compose(
    """
    e.customer_id, e.account_id, e.movement_id, e.kind, o.reference, e.amount_minor, e.balance_minor, e.reference,
    {at_us}
""",
    at_us=micros("e.created_at"),
)
_SAVE_MAC = "UPDATE accounts SET mac = $3 WHERE customer_id = $1 AND id = $2"


def entry_content(  # noqa: PLR0913, PLR0917 - the columns of a row
    customer_id: int,
    account_id: int,
    transfer_id: int,
    kind: str,
    order_reference: str | None,
    amount_minor: int,
    balance_minor: int,
    reference: str | None,
    at_us: int,
    *more: str | None,
) -> bytes:
    """Returns the content of an entry's mark. It has the reference of its order, as the order's id is not known yet.

    `more` is the environment, kind and currency of its account, and for an entry that pays an order the order's digest. Marks of the first
    format are without it.
    """
    return content(
        customer_id,
        account_id,
        transfer_id,
        kind,
        order_reference,
        amount_minor,
        balance_minor,
        reference,
        at_us,
        *more,
    )


def pays_order(kind: str, amount_minor: int) -> bool:
    """Returns whether an entry is the one of an order's two entries that covers the order."""
    return kind == "order" and amount_minor < 0


class Account(Protocol):
    """The parts of an account that marks cover, with the head of its chain."""

    @property
    def environment(self) -> str:
        """`production` or `staging`."""

    @property
    def kind(self) -> str:
        """`funding`, or one of `ledger.OWN_KINDS`."""

    @property
    def currency(self) -> str:
        """The ISO 4217 code."""

    @property
    def head(self) -> bytes:
        """The head, from which the next mark is made together with its entry."""


def account_content(customer_id: int, account_id: int, environment: str, kind: str, currency: str) -> bytes:
    """Returns the content of an account's own mark. It begins with a word, which no entry's content does."""
    return content("account", customer_id, account_id, environment, kind, currency)


def micros_of(at: datetime) -> int:
    """Returns a time in whole microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


class Along:
    """Checks the entries of one account, oldest first, by computing each mark again. `on_broken` gets what does not match: `entry 17`.

    `account` is a row of ACCOUNT_COLUMNS. `behind` is the mark of the entry before the first one to check; None for the first entry.
    """

    def __init__(
        self, chain: Chain, on_broken: Callable[[str], None], account: Row, behind: bytes | None = None
    ) -> None:
        self._chain, self._on_broken, self._account = chain, on_broken, account
        self._facts = account["environment"], account["kind"], account["currency"]
        self._at = START if behind is None else chain.head_after(behind)
        self._is_covered = behind is not None and not chain.marks_early(behind)
        self._opening: tuple[int, bytes] | None = None
        if behind is None and account["entry_id"] is not None:
            self._opening = account["entry_id"], account["opening_mac"]

    def entry(self, entry_id: int, columns: Sequence[Any], mac: bytes | None, digest: str | None = None) -> bytes:
        """Checks the next entry, with the digest of the order that it pays. Returns its mark, for a comparison with an anchor."""
        if self._opening is not None:
            last, opening_mac = self._opening
            if entry_id <= last:
                mac = self._earlier(self._content(columns, opening_mac), opening_mac[0])
                if entry_id < last or mac != opening_mac:
                    return mac
                self._opening, self._at = None, self._chain.head_after(mac)
                self._cover(mac)
                return mac
            self._miss_opening()
        paid = (digest,) if pays_order(columns[3], columns[5]) else ()
        if not mac or not self._chain.fits(self._at, self._content(columns, mac, *paid), mac):
            self._on_broken(f"entry {entry_id}")
        else:
            self._cover(mac)
        if mac is not None:
            self._at = self._chain.head_after(mac)
        return mac or b""

    def end(self) -> bool:
        """Ends the check. Returns whether the chain ends at the head of the account, and whether the account matches its mark."""
        if self._opening is not None:
            self._miss_opening()
        return self._at == self._account["chain_head"] and self._is_as_marked()

    def _is_as_marked(self) -> bool:
        """Returns whether a mark of an entry, or else the account's own, covers its environment, kind and currency."""
        account = self._account
        if account["mac"] is None:
            return self._is_covered or self._chain.is_early or not self._chain.has_early
        made_of = account_content(account["customer_id"], account["id"], *self._facts)
        return self._chain.fits(START, made_of, account["mac"])

    def _content(self, columns: Sequence[Any], mac: bytes, *paid: str | None) -> bytes:
        more = () if self._chain.marks_early(mac) else (*self._facts, *paid)
        return entry_content(*columns, *more)

    def _cover(self, mac: bytes) -> None:
        self._is_covered = self._is_covered or not self._chain.marks_early(mac)

    def _earlier(self, content: bytes, number: int) -> bytes:
        try:
            mac, self._at = self._chain.add(self._at, content, number)
        except KeyError:
            return b""
        return mac

    def _miss_opening(self) -> None:
        """Reports that the opening was changed, and continues with the entries after it."""
        assert self._opening is not None
        last, mac = self._opening
        self._on_broken(f"entries up to {last}")
        self._opening, self._at = None, self._chain.head_after(mac)


# SQL for the columns of an account a that its chain is checked by, with its opening o.
ACCOUNT_COLUMNS = Fragment("""
    a.customer_id, a.id, a.environment, a.kind, a.currency, a.chain_head, a.mac, o.entry_id, o.mac AS opening_mac
""")


# Reads the digests of orders, by customer and order. The argument is customer and order, each with its number of codes.
ReadDigests = Callable[
    [Connection, Chain, Iterable[tuple[tuple[int, int], int]]], Awaitable[Mapping[tuple[int, int], str]]
]


def paid_orders(rows: Iterable[Row]) -> list[tuple[tuple[int, int], int]]:
    """Returns the orders that entries pay and whose marks may cover them, each with its number of codes."""
    return [
        ((columns[0], order_id), codes)
        for _, mac, order_id, codes, *columns in rows
        if mac and codes and pays_order(columns[3], columns[5])
    ]


async def read_entries(
    connection: Connection, customer_id: int, account_id: int, after: int, most: int
) -> Sequence[Row]:
    """Returns the next entries of an account, at most `most`: id, mark, order and its number of codes, and the columns that `entry_content` takes."""
    return await connection.fetch(_ENTRIES, customer_id, account_id, after, most)


async def unchained(connection: Connection) -> list[str]:
    """Returns the accounts that have entries but no chain: `acme/gbp`."""
    return [row["name"] for row in await connection.fetch(_UNCHAINED, START)]


async def mark_ledger(connection: Connection, chain: Chain) -> int:
    """Marks the ledger's rows in the current format, once. Returns how many entries had no mark.

    Call it in the transaction that makes the first key of that format (`chain_keys.bring_up_to_date`). If the ledger was chained before,
    each account gets its own mark. Raises OperatorError if an account and its chain do not end with the same entry.
    """
    accounts = await connection.fetch(_ACCOUNTS_WITH_ENTRIES)
    if not chain.has_early:
        return sum([await _open_account(connection, chain, account) for account in accounts])
    broken = [one["name"] for one in accounts if chain.head_after(one["last_mac"] or b"") != one["chain_head"]]
    if broken:
        raise OperatorError(
            f"the ledger was changed from outside: the last entries of {', '.join(broken[:_MOST_NAMED])} are not the ones "
            "that were written last. `largesse verify` of the previous release names what was changed: restore a backup "
            "from before that, and migrate again"
        )
    for account in accounts:
        customer_id, account_id, *facts = tuple(account)[:5]
        mac, _ = chain.add(START, account_content(customer_id, account_id, *facts))
        await connection.execute(_SAVE_MAC, customer_id, account_id, mac)
    return 0


async def _open_account(connection: Connection, chain: Chain, account: Row) -> int:
    """Makes the opening of one account. Returns how many entries it covers."""
    customer_id, account_id, *facts = tuple(account)[:5]
    mac, head, last, count = b"", START, 0, 0
    while rows := await read_entries(connection, customer_id, account_id, last, _ENTRIES_AT_ONCE):
        for entry_id, _, _, _, *columns in rows:
            mac, head = chain.add(head, entry_content(*columns, *facts))
            last = entry_id
        count += len(rows)
    await connection.execute(_OPEN, customer_id, account_id, last, mac, head)
    return count


_MOST_NAMED = 20
_NAME = Fragment("c.key || '/' || coalesce(a.key, concat_ws(' ', a.kind, a.currency, a.environment))")
_UNCHAINED = compose(
    """
    SELECT {name} AS name FROM accounts a JOIN customers c ON c.id = a.customer_id
    WHERE a.chain_head = $1 AND EXISTS (
        SELECT 1 FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id)
    ORDER BY 1
""",
    name=_NAME,
)
# Each account is locked until the transaction ends, so nobody writes entries meanwhile.
_ACCOUNTS_WITH_ENTRIES = compose(
    """
    SELECT a.customer_id, a.id, a.environment, a.kind, a.currency, a.chain_head, {name} AS name, (
        SELECT coalesce(e.mac, o.mac) FROM entries e
        LEFT JOIN chain_openings o ON o.customer_id = e.customer_id AND o.account_id = e.account_id AND o.entry_id = e.id
        WHERE e.customer_id = a.customer_id AND e.account_id = a.id ORDER BY e.id DESC LIMIT 1) AS last_mac
    FROM accounts a JOIN customers c ON c.id = a.customer_id
    WHERE EXISTS (SELECT 1 FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id)
    ORDER BY a.customer_id, a.id
""",
    name=_NAME,
)
_ENTRIES = compose(
    """
    SELECT e.id, e.mac, e.order_id, o.code_count, {content_columns} FROM entries e LEFT JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
    WHERE e.customer_id = $1 AND e.account_id = $2 AND e.id > $3 ORDER BY e.id LIMIT $4
""",
    content_columns=CONTENT_COLUMNS,
)
_OPEN = """
    WITH opened AS (
        INSERT INTO chain_openings (customer_id, account_id, entry_id, mac, chained_at)
        VALUES ($1, $2, $3, $4, clock_now()))
    UPDATE accounts SET chain_head = $5 WHERE customer_id = $1 AND id = $2
"""
