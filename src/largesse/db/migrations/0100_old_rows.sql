-- Outside a transaction
-- Old rows are found by sorted indexes. The summaries of the ones before never shrink: once new rows were in pages from
-- which old ones had gone, each search for old rows, once a minute, read the whole table.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_by_age ON deliveries (created_at);

CREATE INDEX CONCURRENTLY IF NOT EXISTS delivery_attempts_by_age ON delivery_attempts (started_at);

-- Only events that were fanned out can go. So orders do not write to this index, the worker does.
CREATE INDEX CONCURRENTLY IF NOT EXISTS events_by_age ON events (created_at) WHERE fanned_out_at IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS captured_mail_by_age ON captured_mail (captured_at);

DROP INDEX CONCURRENTLY IF EXISTS deliveries_old;

DROP INDEX CONCURRENTLY IF EXISTS delivery_attempts_old;

DROP INDEX CONCURRENTLY IF EXISTS events_old;

DROP INDEX CONCURRENTLY IF EXISTS captured_mail_old;
