"""A corruption, and the orders that are corrupted."""

from dataclasses import dataclass, field

# Orders 1 to 7, in this order.
DIGITAL, BATCH, COLLECTION, INVOICED, PHYSICAL, ACCENTED, TEMPLATE = range(1, 8)


@dataclass(frozen=True)
class Corruption:
    """What is done to the database, the check that must see it with these ids, and others that see it as well."""

    sql: str
    check: str
    ids: tuple[str, ...] | None  # None: whatever they are
    too: frozenset[str] = field(default=frozenset())

    def __str__(self) -> str:
        return f"{self.check}: {' '.join(self.sql.split())[:60]}"


def corruption(check: str, ids: tuple[str, ...] | None, sql: str, *too: str) -> Corruption:
    return Corruption(sql, check, ids, frozenset(too))


FLOAT = "(SELECT id FROM accounts WHERE key = 'acme-gbp')"
BESIDE = """(SELECT s.id FROM accounts s JOIN accounts f USING (customer_id, environment, currency)
             WHERE f.key = 'acme-gbp' AND s.kind = '{}')"""
SALES, DEPOSITS = BESIDE.format("sales"), BESIDE.format("deposits")
