-- Led by whose they are, as every key is: what is asked of one subscription's queue goes by all of it. Before the first ANALYZE the planner took
-- another index for as good, read all that waits there and sorted it.
DROP INDEX deliveries_pending;
CREATE INDEX deliveries_pending ON deliveries (customer_id, subscription_id, due_at) WHERE state = 'pending';
