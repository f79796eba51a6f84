-- Outside a transaction
-- The worker ends previous secrets each minute. Few subscriptions have one.
CREATE INDEX CONCURRENTLY IF NOT EXISTS webhook_subscriptions_previous ON webhook_subscriptions (previous_until) WHERE previous_until IS NOT NULL;
