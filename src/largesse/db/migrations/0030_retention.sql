-- Retention: when an order's recipients were erased because their retention time was over.
ALTER TABLE orders ADD COLUMN erased_at timestamptz;
-- Since when nothing more will happen to any code of an order; null while something may, and once its recipients were erased.
ALTER TABLE report_orders ADD COLUMN erasable_since timestamptz;
CREATE INDEX report_orders_erasable ON report_orders (erasable_since) WHERE erasable_since IS NOT NULL;
-- Of receipts: the days after which it was done by itself; null where an operator asked for it.
ALTER TABLE erasures ADD COLUMN retention_days integer;

-- The orders that have come to their end: the worker takes them in.
INSERT INTO order_changes (customer_id, order_id, changed_at)
SELECT customer_id, order_id, (SELECT clock_now()) FROM report_orders WHERE fulfilled + expired + cancelled = codes;
