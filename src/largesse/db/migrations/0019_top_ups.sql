-- Top-ups that customers ask for. `credited_minor` is what came, which may be another amount than was asked for; `bank_line` is a
-- hash of the line of the bank's file by which one was confirmed, so that the same line is known when it comes again.
CREATE TABLE top_ups (
    customer_id    integer NOT NULL REFERENCES customers,
    reference      text NOT NULL,
    environment    text NOT NULL CHECK (environment IN ('production', 'staging')),
    account_id     integer NOT NULL REFERENCES accounts,
    amount_minor   bigint NOT NULL CHECK (amount_minor > 0),
    credited_minor bigint CHECK (credited_minor > 0),
    state          text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'confirmed', 'cancelled')),
    requested_by   integer REFERENCES users,
    requested_at   timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    ended_at       timestamptz,
    bank_line      bytea,
    PRIMARY KEY (customer_id, reference),
    CHECK ((state = 'confirmed') = (credited_minor IS NOT NULL)),
    CHECK ((state = 'waiting') = (ended_at IS NULL))
);
CREATE UNIQUE INDEX top_ups_reference ON top_ups (reference);
CREATE INDEX top_ups_newest ON top_ups (customer_id, environment, requested_at);
CREATE INDEX top_ups_waiting ON top_ups (requested_at) WHERE state = 'waiting';
