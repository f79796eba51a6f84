"""One module each: a docstring that docs/performance.md repeats, and `run(suite)`, which gives the rows of the table."""

NAMES = (
    "orders-hot",
    "orders-spread",
    "order-alone",
    "batch-5000",
    "products",
    "orders-list",
    "me",
    "growth",
    "console",
    "processes",
    "neighbour",
    "webhook-neighbour",
    "deliveries",
    "mails",
    "start",
)
# Run with the others, and not yet among bench/results: their first measurement on a calm machine moves them up.
UNMEASURED = ("customers",)
