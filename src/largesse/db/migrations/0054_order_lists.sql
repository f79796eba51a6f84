-- Lists of orders: by any one state, and by total, each read from an index in its own order.
CREATE INDEX report_orders_of_state ON report_orders (customer_id, environment, state, created_at, order_id);
CREATE INDEX report_orders_by_total ON report_orders (customer_id, environment, spent_minor, order_id);

-- Whether mail of an order is still to leave, or held: a list says so of each order.
CREATE INDEX messages_unfinished ON messages (customer_id, order_id, state) WHERE state IN ('pending', 'held');
