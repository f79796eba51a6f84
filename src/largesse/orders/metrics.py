"""Metrics of placing orders. They are updated per batch, not per order."""

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from largesse.base.errors import Problem

PLACED = Counter("largesse_orders_placed", "Orders placed.")
REFUSED = Counter(
    "largesse_orders_refused", "Orders that the transaction placing them refused, by the problem answered.", ["problem"]
)
LOCKED = Gauge("largesse_orders_aside", "Orders that wait for accounts that another transaction has locked.")
LAPSED = Counter(
    "largesse_codes_lapsed", "Codes cancelled and refunded as nobody had claimed them by the claim-by date."
)
REMINDED = Counter("largesse_reminders_made", "Reminders made for recipients who have not claimed.")
BATCHES = Histogram(
    "largesse_batch_orders", "Orders decided together in one transaction.", buckets=(1, 2, 5, 10, 25, 50, 100, 250)
)


def count_batch(orders: int, refusals: Iterable[Exception]) -> None:
    """Counts the orders of one transaction and those it refused."""
    BATCHES.observe(orders)
    for refusal in refusals:
        if isinstance(refusal, Problem):
            REFUSED.labels(refusal.slug).inc()
