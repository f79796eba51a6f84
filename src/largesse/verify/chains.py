"""Checks every chain: each row has its mark, the chain ends at its head, and it matches the anchor."""

from collections.abc import AsyncIterator, Iterable, Sequence

from largesse.audit.service import INSTALLATION, event_content
from largesse.base.errors import OperatorError
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Row, read_in_parts
from largesse.encryption.chain import START, Chain, micros
from largesse.encryption.chain_keys import Chains, open_chains
from largesse.encryption.vault import Vault
from largesse.ledger.chains import ACCOUNT_COLUMNS, CONTENT_COLUMNS, Along, paid_orders
from largesse.lines.marks import event_content as move_content
from largesse.lines.marks import has_begun
from largesse.orders.marks import read_digests
from largesse.verify.anchor import ACCOUNT_NAME, Anchor, Anchored
from largesse.verify.check import Finding, Progress, Tally

ENTRIES_CHAINED = "entries-are-chained"
LEDGER_ENDS = "accounts-are-whole"
AUDIT_CHAINED = "audit-events-are-chained"
AUDIT_ENDS = "audit-log-is-whole"
MOVES_CHAINED = "line-events-are-chained"
MOVES_END = "line-events-are-whole"
RULES = {
    ENTRIES_CHAINED: "Each entry of the ledger bears the mark of its content, of the order that it pays, and of the entry before it on its account.",
    LEDGER_ENDS: "An account ends with the entry that its chain's head was made of, and is of the environment, kind and currency that it was.",
    AUDIT_CHAINED: "Each event of the audit log bears the mark of its content and of the event before it of its customer.",
    AUDIT_ENDS: "The audit log of a customer ends with the event that its head was made of.",
    MOVES_CHAINED: "Each mark of a line's change is computed from the change and the mark before it.",
    MOVES_END: "The marks of changes of lines end where their head says, and began once.",
}
ANCHORED = "anchor-holds"
ANCHOR_RULES = {
    ANCHORED: "What the anchor names is there, with the mark that it had then: an anchor from after a restored backup fails."
}

_ROWS_AT_ONCE = 2_000
_AUDIT_HEADS = "SELECT customer_id, head FROM audit_heads"
_LINE_EVENT_HEAD = "SELECT number, head FROM line_event_head"
_CUSTOMER_KEY = "SELECT key FROM customers WHERE id = $1"


async def check_chains(
    connection: Connection, vault: Vault, progress: Progress, timeout_s: float, anchor: Anchor | None = None
) -> list[Finding]:
    """Computes every mark again. Call it inside a transaction. Memory is bounded. Under another master key no mark matches."""
    try:
        chains = await open_chains(connection, vault, keep=False)
    except OperatorError:
        chains = Chains.of({})
    rules = RULES | ANCHOR_RULES if anchor else RULES
    walk = _Walk(connection, {check: Tally(check, rule) for check, rule in rules.items()}, progress, timeout_s)
    progress.begin(ENTRIES_CHAINED)
    await walk.ledger(chains.entries, _Seen(anchor.entries if anchor else ()))
    progress.begin(AUDIT_CHAINED)
    await walk.audit_log(chains.audit, _Seen(anchor.events if anchor else ()))
    progress.begin(MOVES_CHAINED)
    await walk.moves(chains.moves, _Seen(anchor.moves if anchor else ()))
    return [tally.finding() for tally in walk.broken.values() if tally.count]


class _Seen:
    """The rows of an anchor for one kind of chain that were not found yet with the same mark."""

    def __init__(self, anchored: Iterable[Anchored]) -> None:
        self._missing = {(one.of, one.id): one for one in anchored}

    def note(self, of: int, id_: int, mac: bytes) -> None:
        """Records that a row was found. It no longer counts as missing if its mark is the one in the anchor."""
        one = self._missing.get((of, id_))
        if one is not None and one.mac == mac.hex():
            del self._missing[of, id_]

    def missing(self, kind: str) -> Iterable[str]:
        """Returns the rows that were not found with their mark."""
        return (f"{one.name} {kind} {one.id}" for one in self._missing.values())


class _Walk:
    """Reads all chains in the snapshot of the connection's transaction."""

    def __init__(self, connection: Connection, broken: dict[str, Tally], progress: Progress, timeout_s: float) -> None:
        self._connection, self._progress, self._timeout_s = connection, progress, timeout_s
        self.broken = broken
        self._names: dict[int, str] = {}

    async def ledger(self, chain: Chain, seen: _Seen) -> None:
        """Checks every account that has entries or, by its head, should have some."""
        owner: tuple[int, int] = (0, 0)
        account: Along | None = None
        name = ""
        async for rows in self._chunks(_ENTRIES):
            owners = list({(row["customer_id"], row["account_id"]) for row in rows})
            of_rows = await self._connection.fetch(_ACCOUNTS, *map(list, zip(*owners, strict=True)))
            found = {(row["customer_id"], row["id"]): row for row in of_rows}
            digests = await read_digests(self._connection, chain, paid_orders(rows))
            for entry_id, mac, order_id, _, *columns in rows:
                if (columns[0], columns[1]) != owner:
                    self._end(account, name)
                    owner = (columns[0], columns[1])
                    # Another check reports a missing account.
                    account = self._along(chain, found[owner]) if owner in found else None
                    name = found[owner]["name"] if owner in found else ""
                if account is not None:
                    digest = digests.get((owner[0], order_id))
                    seen.note(owner[1], entry_id, account.entry(entry_id, columns, mac, digest))
        self._end(account, name)
        for row in await self._connection.fetch(_EMPTIED, START):
            self.broken[LEDGER_ENDS].add(row["name"])
        self._miss(seen.missing("entry"))

    def _along(self, chain: Chain, account: Row) -> Along:
        name, broken = account["name"], self.broken[ENTRIES_CHAINED]
        return Along(chain, lambda what: broken.add(f"{name} {what}"), account)

    def _end(self, account: Along | None, name: str) -> None:
        if account is not None and not account.end():
            self.broken[LEDGER_ENDS].add(name)

    async def audit_log(self, chain: Chain, seen: _Seen) -> None:
        """Checks every customer's log, and the installation's."""
        ended = await self._connection.fetch(_AUDIT_HEADS)
        heads: dict[int, bytes] = {row["customer_id"]: row["head"] for row in ended}
        ends = dict.fromkeys(heads, START)
        async for rows in self._chunks(_EVENTS):
            for customer_id, event_id, at_us, *columns, mac in rows:
                content = event_content(customer_id, at_us, *columns)
                if not chain.fits(ends.get(customer_id, START), content, mac):
                    self.broken[AUDIT_CHAINED].add(f"{await self._customer(customer_id)} event {event_id}")
                ends[customer_id] = chain.head_after(mac)
                seen.note(customer_id, event_id, mac)
        for customer_id, end in ends.items():
            if heads.get(customer_id) != end:
                self.broken[AUDIT_ENDS].add(await self._customer(customer_id))
        self._miss(seen.missing("event"))

    async def moves(self, chain: Chain, seen: _Seen) -> None:
        """Checks the marks of line events."""
        last, head = 0, START
        async for rows in self._chunks(_MOVES):
            for number, *columns, mac in rows:
                content = move_content(number, *columns)
                if number != last + 1 or not chain.fits(head, content, mac):
                    self.broken[MOVES_CHAINED].add(f"{await self._customer(columns[0])} mark {number}")
                last, head = number, chain.head_after(mac)
                seen.note(INSTALLATION, number, mac)
        ended = await self._connection.fetchrow(_LINE_EVENT_HEAD)
        is_reset = not last and await has_begun(self._connection)
        if is_reset or ended is None or tuple(ended) != (last, head):
            self.broken[MOVES_END].add("line events")
        self._miss(seen.missing("mark"))

    async def _customer(self, customer_id: int) -> str:
        """Returns a customer's name in results."""
        if customer_id not in self._names:
            query = _CUSTOMER_KEY
            key = await self._connection.fetchval(query, customer_id)
            nobody = "installation" if customer_id == INSTALLATION else f"customer {customer_id}"
            self._names[customer_id] = key or nobody
        return self._names[customer_id]

    def _miss(self, missing: Iterable[str]) -> None:
        for one in missing:
            self.broken[ANCHORED].add(one)

    async def _chunks(self, query: str) -> AsyncIterator[Sequence[Row]]:
        """Yields the rows of a query in parts."""
        async for rows in read_in_parts(self._connection, query, _ROWS_AT_ONCE, timeout_s=self._timeout_s):
            yield rows
            self._progress.add(len(rows))


_ENTRIES = compose(
    """
    SELECT e.id, e.mac, e.order_id, o.code_count, {content_columns} FROM entries e LEFT JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
    ORDER BY e.customer_id, e.account_id, e.id
""",
    content_columns=Fragment(CONTENT_COLUMNS),
)
_NAMED_ACCOUNTS = compose(
    """
    SELECT {account_columns}, {account_name} AS name
    FROM accounts a JOIN customers c ON c.id = a.customer_id
    LEFT JOIN chain_openings o ON o.customer_id = a.customer_id AND o.account_id = a.id
""",
    account_columns=Fragment(ACCOUNT_COLUMNS),
    account_name=ACCOUNT_NAME,
)
_ACCOUNTS = compose(
    """
    {named_accounts} WHERE (a.customer_id, a.id) IN (SELECT * FROM unnest($1::int[], $2::int[]))
""",
    named_accounts=_NAMED_ACCOUNTS,
)
_EMPTIED = compose(
    """
    {named_accounts}
    WHERE a.chain_head <> $1 AND NOT EXISTS (SELECT FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id) ORDER BY a.id
    """,
    named_accounts=_NAMED_ACCOUNTS,
)
_MOVES = compose(
    """
    SELECT number, customer_id, order_id, line, event, {micros}, mac FROM line_event_marks ORDER BY number
""",
    micros=micros("at"),
)
_EVENTS = compose(
    """
    SELECT customer_id, id, {micros}, environment, actor, actor_id, actor_name, address, request_id, act, subject,
           before::text, after::text, mac
    FROM audit_events ORDER BY customer_id, id
""",
    micros=micros("at"),
)
