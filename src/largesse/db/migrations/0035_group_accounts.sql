-- Funding accounts that customers' people make, and close once they hold nothing. Nothing is drawn from a closed one and nothing paid
-- into it; what orders return to it may be moved out, or it is opened again.
ALTER TABLE accounts ADD COLUMN closed_at timestamptz CHECK (kind = 'funding' OR closed_at IS NULL);

-- Money moved between two funding accounts of a customer. `id` is the movement of its two entries, which are the money; this row says
-- which way it went, and who moved it.
CREATE TABLE transfers (
    customer_id     integer NOT NULL REFERENCES customers,
    id              bigint NOT NULL,
    environment     text NOT NULL CHECK (environment IN ('production', 'staging')),
    from_account_id integer NOT NULL,
    to_account_id   integer NOT NULL CHECK (to_account_id <> from_account_id),
    amount_minor    bigint NOT NULL CHECK (amount_minor > 0),
    made_by         integer REFERENCES users,
    made_at         timestamptz NOT NULL,
    PRIMARY KEY (customer_id, id),
    CONSTRAINT transfers_from_fkey FOREIGN KEY (customer_id, from_account_id) REFERENCES accounts (customer_id, id),
    CONSTRAINT transfers_to_fkey FOREIGN KEY (customer_id, to_account_id) REFERENCES accounts (customer_id, id)
);

-- No entry has the kind yet, so those that are there need no look.
ALTER TABLE entries DROP CONSTRAINT entries_kind_check;
ALTER TABLE entries ADD CONSTRAINT entries_kind_check
    CHECK (kind IN ('top_up', 'transfer', 'settlement', 'order', 'refund')) NOT VALID;
