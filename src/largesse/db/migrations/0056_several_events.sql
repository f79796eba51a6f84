-- A subscription names one event in `event`, or several in `events`.
ALTER TABLE webhook_subscriptions
    ADD COLUMN events text[],
    ALTER COLUMN event DROP NOT NULL,
    ADD CONSTRAINT webhook_subscriptions_names_events CHECK (num_nonnulls(event, events) = 1 AND events <> '{}');
