-- Outside a transaction
-- A customer's requests by request id, newest first: callers may give all their requests the same one.
CREATE INDEX CONCURRENTLY IF NOT EXISTS api_requests_by_request_id ON api_requests (customer_id, environment, request_id, id);

-- No statement uses it under row-level security.
DROP INDEX CONCURRENTLY IF EXISTS api_requests_of_status;
