"""The sums that were spent today, so that all orders of a day together stay under a cap, for all assistants and after restarts.

An amount is counted before the order is sent, and taken back only if the service says that the order was not placed. It counts once for each
reference, and a repeated send has the same reference as the first.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from largesse_client.mcp.settings import Settings

_KEPT = timedelta(days=7)  # longer than a send may be repeated
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS spent (
        payer TEXT NOT NULL, reference TEXT NOT NULL, day TEXT NOT NULL, currency TEXT NOT NULL, amount TEXT NOT NULL,
        PRIMARY KEY (payer, reference)
    ) WITHOUT ROWID
"""


class CapReached(Exception):
    """The cost of an order is over a cap. The text says which."""


class Spending:
    """The daily sums by address and key, in a file that all servers of the same user share."""

    def __init__(self, settings: Settings, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._per_order, self._per_day = settings.most_per_order, settings.most_per_day
        self._file = settings.state_dir / "spent.sqlite3"
        self._payer = hashlib.sha256(f"{settings.url} {settings.api_key}".encode()).hexdigest()[:16]
        self._now = now

    def check(self, amount: Decimal, currency: str) -> None:
        """Raises CapReached if an order of this amount would exceed a cap, with the amounts spent today."""
        self._check_order(amount, currency)
        if self._per_day.of(currency) is not None:
            with self._transaction() as connection:
                self._check_day(connection, amount, currency)

    def take(self, reference: str, amount: Decimal, currency: str) -> bool:
        """Counts an order. Returns False if it was counted before, or there is no daily cap. Raises CapReached, and then counts nothing."""
        self._check_order(amount, currency)
        if self._per_day.of(currency) is None:
            return False
        with self._transaction() as connection:
            key = (self._payer, reference)
            if connection.execute("SELECT 1 FROM spent WHERE payer = ? AND reference = ?", key).fetchone():
                return False
            self._check_day(connection, amount, currency)
            today = self._now().date()
            long_ago = (today - _KEPT).isoformat()
            connection.execute("DELETE FROM spent WHERE payer = ? AND day < ?", (self._payer, long_ago))
            connection.execute(
                "INSERT INTO spent VALUES (?, ?, ?, ?, ?)", (*key, today.isoformat(), currency, str(amount))
            )
        return True

    def _check_order(self, amount: Decimal, currency: str) -> None:
        most = self._per_order.of(currency)
        if most is not None and amount > most:
            raise CapReached(_text(amount, currency, "one order", most, "LARGESSE_MCP_MOST_PER_ORDER"))

    def _check_day(self, connection: sqlite3.Connection, amount: Decimal, currency: str) -> None:
        most, today = self._per_day.of(currency), self._now().date().isoformat()
        rows = connection.execute(
            "SELECT amount FROM spent WHERE payer = ? AND day = ? AND currency = ?", (self._payer, today, currency)
        )
        spent = sum((Decimal(row[0]) for row in rows), Decimal(0))
        if most is not None and spent + amount > most:
            raise CapReached(_text(amount, currency, "the orders of a day", most, "LARGESSE_MCP_MOST_PER_DAY", spent))

    def give_back(self, reference: str) -> None:
        """Takes back what `take` has just counted: the order was not placed."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM spent WHERE payer = ? AND reference = ?", (self._payer, reference))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self._file, timeout=10, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA)
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()  # rolls back what was not committed


def _text(amount: Decimal, currency: str, what: str, most: Decimal, setting: str, spent: Decimal = Decimal(0)) -> str:
    before = f" after {spent} {currency} today" if spent else ""
    return f"{amount} {currency}{before} is over the cap for {what}, {most} {currency} ({setting})."
