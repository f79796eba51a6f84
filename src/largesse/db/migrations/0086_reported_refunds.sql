-- What corrections by two people refunded of an order, by the day in UTC, so that reports deduct it from what was spent.
ALTER TABLE report_orders
    ADD COLUMN refund_days date[] NOT NULL DEFAULT '{}',
    ADD COLUMN refund_amounts bigint[] NOT NULL DEFAULT '{}'; -- in minor units

-- What was refunded before: the worker reports it as it takes these orders in.
INSERT INTO order_changes (customer_id, order_id, changed_at)
SELECT customer_id, id, (SELECT clock_now()) FROM (
    SELECT DISTINCT o.customer_id, o.id
    FROM corrections AS c JOIN orders AS o ON o.customer_id = c.customer_id AND o.reference = c.order_reference
    WHERE c.kind = 'refund' AND c.state = 'approved') AS refunded;
