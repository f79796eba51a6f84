"""Metrics of a worker, for Prometheus. No label contains data about a person or a customer."""

from prometheus_client import Counter, Gauge, Histogram

FANNED_OUT = Counter("largesse_fanned_out", "Deliveries and messages made from orders.", ["kind"])
WEBHOOK_ATTEMPTS = Counter("largesse_webhook_attempts", "Webhook attempts by outcome.", ["outcome"])
WEBHOOK_SECONDS = Histogram(
    "largesse_webhook_attempt_seconds",
    "Duration of webhook attempts, DNS, TLS and body included.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20),
)
WEBHOOK_DELAY_SECONDS = Histogram(
    "largesse_webhook_delay_seconds",
    "From a delivery made to the answer, where the first attempt succeeded.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600),
)
MAILS = Counter("largesse_mails", "Messages handed to the mail server, held or captured, by outcome.", ["outcome"])
MAIL_HELD = Gauge("largesse_mail_held", "Messages held until a mail server is set; about, from 10,000 on.")
MAIL_PUT_OFF = Gauge(
    "largesse_mail_put_off",
    "Messages that were not taken and wait for their next try; about, from 10,000 on.",
    ["fault"],
)
MAIL_SECONDS = Histogram("largesse_mail_seconds", "Duration of handing over one message.")
MAIL_LATENESS_SECONDS = Histogram(
    "largesse_mail_lateness_seconds",
    "From the instant a message was due to the mail server's answer.",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3600, 21600),
)
QUEUE_DEPTH = Gauge("largesse_queue_depth", "Rows that wait, due or not; about, from 10,000 on.", ["queue"])
QUEUE_AGE = Gauge("largesse_queue_oldest_due_seconds", "How long the oldest due row has been due.", ["queue"])
FAILING_SUBSCRIPTIONS = Gauge("largesse_webhook_failing_subscriptions", "Subscriptions whose last attempt failed.")
OUTCOMES_WAITING = Gauge(
    "largesse_outcomes_waiting", "Outcomes of webhooks and mail that are not in the database yet.", ["kind"]
)
OUTCOMES_GIVEN_UP = Counter("largesse_outcomes_given_up", "Outcomes that never got into the database.", ["kind"])
CLOCK_AHEAD = Gauge(
    "largesse_clock_ahead_seconds", "How far the clock of this machine is ahead of the database's; negative behind it."
)
LOOPS = Gauge("largesse_worker_loops", "Loops of this worker that run or rest before they are started again.")
LOOP_RESTARTS = Counter(
    "largesse_worker_loop_restarts", "Loops of the worker that failed and were started again.", ["loop"]
)
PRUNED = Counter("largesse_pruned", "Old rows removed by maintenance.", ["table"])
