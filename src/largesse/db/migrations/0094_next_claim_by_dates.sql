-- Outside a transaction
-- The next claim-by dates, for `largesse unclaimed list`.
CREATE INDEX CONCURRENTLY IF NOT EXISTS follow_ups_by_claim_by ON follow_ups (claim_by) WHERE due_at IS NOT NULL AND claim_by IS NOT NULL;
