"""Anchors: the end of each chain at some time. An anchor that is stored elsewhere shows if a chain was rewritten or rolled back since.

An anchor names the last entry of every account, the last event of every audit log and the last mark of line events, each with its mark.
Nobody can forge a mark with it: the heads from which chains continue are only in the database.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from largesse.base.errors import OperatorError
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Database
from largesse.db.scope import OPERATOR
from largesse.db.statements import read_now
from largesse.ledger.verification import note_anchored

_MOST_BYTES = 1_000_000_000


class Anchored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last row of a chain. `of` is the id of the account or customer, and `name` its name for people."""

    name: str
    of: int
    id: int
    mac: str  # hexadecimal


class Anchor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ends of all chains at a time."""

    made_at: datetime
    entries: list[Anchored]
    events: list[Anchored]
    moves: list[Anchored] = []  # the ends of the chain of line events; anchors of earlier releases have none

    def to_json(self) -> str:
        """Returns the anchor as JSON, as `read_anchor` reads it."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def rows(self) -> Sequence[tuple[str, str]]:
        """Returns each chain's last row and its mark, for people."""
        ends = [("entry", self.entries), ("event", self.events), ("mark", self.moves)]
        return [(f"{one.name} {kind} {one.id}", one.mac) for kind, chained in ends for one in chained]


async def take_anchor(database: Database, *, note: bool) -> Anchor:
    """Returns the ends of all chains. With `note`, also records for the customers' people that the anchor was made."""
    async with database.connection(OPERATOR) as connection:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            anchor = await make_anchor(connection)
        if note:  # not in that snapshot, in which a note made at the same time would be a conflict
            async with connection.transaction():
                await note_anchor(connection, anchor)
    return anchor


async def make_anchor(connection: Connection) -> Anchor:
    """Returns the ends of all chains. Call it in a transaction with one snapshot."""
    return Anchor(
        await read_now(connection),
        [Anchored(*row) for row in await connection.fetch(_ENTRIES)],
        [Anchored(*row) for row in await connection.fetch(_EVENTS)],
        [Anchored(*row) for row in await connection.fetch(_MOVES)],
    )


async def note_anchor(connection: Connection, anchor: Anchor) -> None:
    """Records for the customers' people that this anchor was made. Call it inside a transaction."""
    await note_anchored(connection, anchor.made_at, [(one.of, one.id, one.mac) for one in anchor.entries])


def read_anchor(path: Path) -> Anchor:
    """Reads an anchor from a file that `largesse anchor --json` printed. Raises OperatorError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise OperatorError(f"{path} is too large for an anchor")
        return msgspec.json.decode(content, type=Anchor)
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise OperatorError(f"{path} is not an anchor as `largesse anchor --json` prints it: {error}") from None


# SQL for the name of an account a of the customer c.
ACCOUNT_NAME = Fragment("c.key || '/' || coalesce(a.key, concat_ws(' ', a.kind, a.currency, a.environment))")
_ENTRIES = compose(
    """
    SELECT {account_name}, a.id, last.id, encode(coalesce(last.mac, o.mac), 'hex')
    FROM accounts a JOIN customers c ON c.id = a.customer_id
    CROSS JOIN LATERAL (
        SELECT e.id, e.mac FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id
        ORDER BY e.id DESC LIMIT 1) AS last
    LEFT JOIN chain_openings o ON o.customer_id = a.customer_id AND o.account_id = a.id AND o.entry_id = last.id
    WHERE coalesce(last.mac, o.mac) IS NOT NULL
    ORDER BY a.id
""",
    account_name=ACCOUNT_NAME,
)
_MOVES = """
    SELECT 'line events', 0, number, encode(mac, 'hex') FROM line_event_marks ORDER BY number DESC LIMIT 1
"""
_EVENTS = """
    SELECT coalesce(c.key, 'installation'), h.customer_id, last.id, encode(last.mac, 'hex')
    FROM audit_heads h LEFT JOIN customers c ON c.id = h.customer_id
    CROSS JOIN LATERAL (
        SELECT e.id, e.mac FROM audit_events e WHERE e.customer_id = h.customer_id ORDER BY e.id DESC LIMIT 1) AS last
    ORDER BY h.customer_id
"""
