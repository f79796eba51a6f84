-- Outside a transaction
-- A customer's API keys with those that were deleted, for lists of requests and of customers: the index of names leaves these out.
CREATE INDEX CONCURRENTLY IF NOT EXISTS api_keys_of_customer ON api_keys (customer_id, id);
