-- Outside a transaction
-- A mail that could not be written is the fault of the service, not of the mail server.
ALTER TABLE messages DROP CONSTRAINT IF EXISTS messages_fault_check,
    ADD CONSTRAINT messages_fault_check CHECK (fault IN ('recipient', 'server', 'service')) NOT VALID;

ALTER TABLE messages VALIDATE CONSTRAINT messages_fault_check;

-- Mail that waits because the mail server fails, or as it could not be written: the overview of the back office counts it.
-- Such mail is pending, but asked for by state, all that is pending might be read, by the index of that.
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_put_off ON messages (fault, rank_at) WHERE finished_at IS NULL AND fault IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS messages_failed;

-- What was not delivered: with the mail that bounced, was given up or is held, also that which waits.
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_undelivered ON messages ((coalesce(finished_at, due_at)), id)
    WHERE state IN ('bounced', 'exhausted', 'held') OR state = 'pending' AND fault IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_undelivered_of ON messages (customer_id, (coalesce(finished_at, due_at)), id)
    WHERE state IN ('bounced', 'exhausted', 'held') OR state = 'pending' AND fault IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS messages_given_up;

DROP INDEX CONCURRENTLY IF EXISTS messages_given_up_of;
