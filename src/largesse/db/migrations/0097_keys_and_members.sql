-- Outside a transaction
-- A customer's API keys with those that were deleted, for lists of requests and of customers: the index of names leaves these out.
CREATE INDEX CONCURRENTLY IF NOT EXISTS api_keys_of_customer ON api_keys (customer_id, id);

-- The members of groups are read and counted by the index alone: it has what the policy compares.
CREATE INDEX CONCURRENTLY IF NOT EXISTS contact_members_read ON contact_members (customer_id, group_id, environment, contact_id);
