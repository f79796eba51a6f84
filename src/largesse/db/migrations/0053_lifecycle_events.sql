-- Events beyond order.created: `line_number` is the line that an event is about, null for an event of a whole order; `order_id` is null for an
-- event that is about no order. Placing an order writes neither.
ALTER TABLE events ADD COLUMN line_number integer, ALTER COLUMN order_id DROP NOT NULL;

-- Erasing a recipient finds the events of an order's lines by it.
CREATE INDEX events_of_lines ON events (customer_id, order_id) WHERE line_number IS NOT NULL;
