"""What is broken on purpose in the read models, and which check must find it."""

from __future__ import annotations

from tests.verify.corruption import BATCH, DIGITAL, corruption

# What the orders of this database are told as: nothing yet, as no worker has heard of them.
TOLD = f"""
    UPDATE events SET fanned_out_at = now() WHERE order_id = {BATCH};
    INSERT INTO report_groups (customer_id, id, environment, currency, source, product_id, collection_id, account_id,
        service_account_id, user_id)
    SELECT customer_id, 1, environment, currency, source, product_id, 0, account_id, service_account_id, 0
    FROM orders WHERE id = {BATCH};
    INSERT INTO report_orders (customer_id, order_id, environment, group_id, state, created_at, codes, spent_minor, claimed,
        fulfilled, expired, cancelled, bounced, claim_days, claim_counts, cancel_days, cancel_counts, ages)
    SELECT customer_id, id, environment, 1, 'waiting', created_at, code_count, total_minor, 0, 0, 0, 0, 0,
           '{{}}', '{{}}', '{{}}', '{{}}', '{{0,0,0,0,0}}'
    FROM orders WHERE id = {BATCH};
    INSERT INTO report_sums
    SELECT customer_id, grain, date_trunc(grain, created_at AT TIME ZONE 'UTC')::date, 1, 'waiting', 1, code_count, total_minor,
           0, 0, 0, 0, 0, 0, 0, 0, 0
    FROM orders, unnest(ARRAY['day', 'month']) AS grain WHERE id = {BATCH};
"""
REPORT_CORRUPTIONS = (
    corruption(
        "orders-are-reported", (str(BATCH),), f"UPDATE events SET fanned_out_at = now() WHERE order_id = {BATCH}"
    ),
    corruption("orders-are-reported", (str(BATCH),), f"{TOLD} UPDATE report_groups SET source = 'other'"),
    corruption("orders-are-reported", (str(BATCH),), f"{TOLD} UPDATE report_orders SET environment = 'staging'"),
    corruption("orders-are-reported", (str(BATCH),), f"{TOLD} UPDATE report_orders SET expired = 1"),
    corruption("orders-are-reported", (str(BATCH),), f"{TOLD} UPDATE report_orders SET erasable_since = now()"),
    corruption(
        "orders-are-reported",
        (str(BATCH),),
        f"{TOLD} UPDATE report_orders SET state = 'cancelled'",
        "sums-follow-orders",
    ),
    corruption(
        "reports-have-orders", ("9999",), f"{TOLD} UPDATE report_orders SET order_id = 9999", "orders-are-reported"
    ),
    corruption(
        "orders-are-reported",
        (str(BATCH),),
        f"{TOLD} UPDATE report_orders SET refund_days = '{{2030-01-01}}', refund_amounts = '{{5}}'",
        "sums-follow-orders",
    ),
    corruption(
        "report-days-fit",
        (str(BATCH),),
        f"{TOLD} UPDATE report_orders SET ages = '{{0,0,1,0,0}}'",
        "sums-follow-orders",
    ),
    corruption("sums-follow-orders", None, f"{TOLD} UPDATE report_sums SET spent_minor = spent_minor + 1"),
    corruption("sums-follow-orders", None, f"{TOLD} DELETE FROM report_sums WHERE grain = 'month'"),
    corruption(
        "recipients-are-found",
        (str(DIGITAL),),
        f"UPDATE events SET fanned_out_at = now() WHERE order_id = {DIGITAL}",
        "orders-are-reported",
    ),
    corruption(
        "words-have-orders",
        (str(DIGITAL),),
        f"""INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
            SELECT customer_id, 'staging', 'ada', created_at, id FROM orders WHERE id = {DIGITAL}""",
    ),
)
