-- Who made a subscription: a service account, or a person in the web application.
ALTER TABLE webhook_subscriptions ALTER COLUMN service_account_id DROP NOT NULL;
ALTER TABLE webhook_subscriptions ADD COLUMN user_id integer REFERENCES users;
ALTER TABLE webhook_subscriptions
    ADD CONSTRAINT webhook_subscriptions_made_by CHECK (num_nonnulls(service_account_id, user_id) = 1);

-- Those that a customer has sent again all at once.
CREATE INDEX deliveries_failed ON deliveries (subscription_id, id) WHERE state IN ('dropped', 'exhausted');
