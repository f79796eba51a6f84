-- The template that an order was placed with; 0: none.
ALTER TABLE report_orders ADD COLUMN template_id integer NOT NULL DEFAULT 0;
CREATE INDEX report_orders_of_template ON report_orders (customer_id, environment, template_id, created_at) WHERE template_id <> 0;

-- The orders there are of templates: the worker takes them in again.
INSERT INTO order_changes (customer_id, order_id, changed_at)
SELECT customer_id, id, created_at FROM orders WHERE template_id IS NOT NULL ORDER BY id;
