-- For 24 hours after a subscription's secret was rotated, deliveries are signed with the secret before it too. A worker then removes that.
ALTER TABLE webhook_subscriptions
    ADD COLUMN previous_secret bytea,
    ADD COLUMN previous_until timestamptz,
    ADD CONSTRAINT webhook_subscriptions_rotated CHECK ((previous_secret IS NULL) = (previous_until IS NULL));
