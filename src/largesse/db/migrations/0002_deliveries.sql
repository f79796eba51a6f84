-- What leaves the house: webhook deliveries and mail. The row is the job: a worker leases what is due, does the network
-- work outside any transaction, and writes the outcome only while its lease is still its own (the fence).
-- docs/decisions/0009-queue-leases.md says why webhooks are leased by subscription.

-- The clock deliveries go by: the database's, so that all workers agree. `ahead_by` moves it, for tests alone.
CREATE TABLE clock (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    ahead_by interval NOT NULL DEFAULT '0'
);
INSERT INTO clock DEFAULT VALUES;

CREATE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT now() + ahead_by FROM clock';

-- One event on its way to one subscription, or a sample (`sample` is its body). The states:
--   pending    waits for `due_at`
--   delivered  answered with 2xx
--   dropped    answered with another 4xx than 410 and 429
--   exhausted  all attempts failed
--   cancelled  the subscription ended first
-- `attempts` were made in all; `attempts_left` may still be made unless somebody asks for a redelivery.
CREATE TABLE deliveries (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id uuid NOT NULL,
    event_id        bigint,
    event           text NOT NULL,
    sample          bytea,
    state           text NOT NULL DEFAULT 'pending'
                    CHECK (state IN ('pending', 'delivered', 'dropped', 'exhausted', 'cancelled')),
    attempts        smallint NOT NULL DEFAULT 0,
    attempts_left   smallint NOT NULL DEFAULT 12,
    due_at          timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    CHECK ((event_id IS NULL) <> (sample IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX deliveries_pending ON deliveries (subscription_id, due_at) WHERE state = 'pending';
CREATE INDEX deliveries_newest ON deliveries (subscription_id, id);
CREATE INDEX deliveries_old ON deliveries USING brin (created_at) WITH (autosummarize = on);

-- What came of each attempt: a status, or the error when there was none; the first 2 KiB of the answer.
CREATE TABLE delivery_attempts (
    delivery_id bigint NOT NULL,
    number      smallint NOT NULL,
    started_at  timestamptz NOT NULL,
    duration_ms integer NOT NULL,
    status      smallint,
    error       text,
    answer      bytea,
    PRIMARY KEY (delivery_id, number)
);
CREATE INDEX delivery_attempts_old ON delivery_attempts USING brin (started_at) WITH (autosummarize = on);

-- The lane of a subscription: what a worker leases. `due_at` is no later than the first of its pending deliveries
-- (infinity: there are none). A `failing` lane uses the workers' other room, so that it delays nobody.
CREATE TABLE webhook_lanes (
    subscription_id uuid PRIMARY KEY REFERENCES webhook_subscriptions ON DELETE CASCADE,
    due_at          timestamptz NOT NULL,
    failing         boolean NOT NULL DEFAULT false,
    leased_until    timestamptz NOT NULL DEFAULT '-infinity',
    fence           bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX webhook_lanes_due ON webhook_lanes (failing, due_at) WHERE due_at < 'infinity';

-- One mail to one recipient of one order, with all their codes (`line_numbers`). Edition 0 is the order's own; each
-- resend is another. The states:
--   pending    waits for `due_at`
--   sent       the mail server took it
--   captured   stored in `captured_mail`: staging, or no mail server is set
--   bounced    the mail server refused it for good; `reason` says why
--   exhausted  the mail server could not take it in three days
-- Workers take what is due in the order of `rank_at`, which spreads a large order so that small ones pass between.
CREATE TABLE messages (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id      integer NOT NULL,
    environment   text NOT NULL,
    edition       smallint NOT NULL DEFAULT 0,
    email         text NOT NULL,
    name          text,
    line_numbers  integer[] NOT NULL,
    state         text NOT NULL DEFAULT 'pending'
                  CHECK (state IN ('pending', 'sent', 'captured', 'bounced', 'exhausted')),
    attempts      smallint NOT NULL DEFAULT 0,
    due_at        timestamptz NOT NULL,
    rank_at       timestamptz NOT NULL,
    leased_until  timestamptz NOT NULL DEFAULT '-infinity',
    fence         bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL,
    finished_at   timestamptz,
    reason        text,
    UNIQUE (order_id, email, edition)
) WITH (fillfactor = 80);
CREATE INDEX messages_pending ON messages (rank_at) WHERE state = 'pending';

-- The captured mailbox. `sealed` is the whole message: it holds codes and PINs.
CREATE TABLE captured_mail (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id  bigint NOT NULL,
    environment text NOT NULL,
    recipient   text NOT NULL,
    subject     text NOT NULL,
    sealed      bytea NOT NULL,
    captured_at timestamptz NOT NULL,
    UNIQUE (message_id)
);
CREATE INDEX captured_mail_newest ON captured_mail (environment, id);
CREATE INDEX captured_mail_old ON captured_mail USING brin (captured_at) WITH (autosummarize = on);

-- Housekeeping prunes events by age; mail jobs stay with their orders.
CREATE INDEX events_old ON events USING brin (created_at) WITH (autosummarize = on);

-- Queues change all their rows in a short time: they are cleaned sooner than tables that only grow.
ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE webhook_lanes SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
ALTER TABLE messages SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
