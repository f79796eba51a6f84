-- Outside a transaction
-- Mail that waits because the mail server fails, which the overview of the back office counts.
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_failed ON messages (rank_at) WHERE state = 'pending' AND fault = 'server';
