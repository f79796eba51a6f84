-- Outside a transaction
-- Contacts by the day on which they began to work, for automations: no index with `extract` serves a statement under row-level security.
CREATE INDEX CONCURRENTLY IF NOT EXISTS contacts_by_start_date ON contacts (customer_id, environment, start_date)
    WHERE start_date IS NOT NULL AND left_at IS NULL;

DROP INDEX CONCURRENTLY IF EXISTS contacts_by_start;
