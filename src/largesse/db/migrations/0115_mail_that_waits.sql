-- Outside a transaction
-- A mail that could not be written is the fault of the service, not of the mail server.
ALTER TABLE messages DROP CONSTRAINT IF EXISTS messages_fault_check,
    ADD CONSTRAINT messages_fault_check CHECK (fault IN ('recipient', 'server', 'service')) NOT VALID;

ALTER TABLE messages VALIDATE CONSTRAINT messages_fault_check;

-- Mail that waits because the mail server fails, or because it could not be written. The overview of the back office counts it.
-- The condition names `finished_at`, not the state: with a state, the planner may read all pending mail by another index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_put_off ON messages (fault, rank_at) WHERE finished_at IS NULL AND fault IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS messages_failed;

-- Mail that was not delivered: it bounced, was given up, is held, or waits for its next try.
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_undelivered ON messages ((coalesce(finished_at, due_at)), id)
    WHERE state IN ('bounced', 'exhausted', 'held') OR state = 'pending' AND fault IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_undelivered_of ON messages (customer_id, (coalesce(finished_at, due_at)), id)
    WHERE state IN ('bounced', 'exhausted', 'held') OR state = 'pending' AND fault IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS messages_given_up;

DROP INDEX CONCURRENTLY IF EXISTS messages_given_up_of;
