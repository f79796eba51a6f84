-- Entries bear marks: of themselves and of the one before them on their account (docs/decisions/0030-chains.md). `chain_head` is what
-- the next mark is made of beside its entry, and what no entry tells: sixteen zero bytes where there are no marks yet.
ALTER TABLE entries ADD COLUMN mac bytea;
ALTER TABLE accounts ADD COLUMN chain_head bytea NOT NULL DEFAULT '\x00000000000000000000000000000000';

-- What accounts had before there were marks: `mac` is the one that the entry would bear, had all up to it been chained.
-- `largesse migrate` writes it once it has the master key, and never again.
CREATE TABLE chain_openings (
    customer_id integer NOT NULL,
    account_id  integer NOT NULL,
    entry_id    bigint NOT NULL,
    mac         bytea NOT NULL,
    chained_at  timestamptz NOT NULL,
    PRIMARY KEY (customer_id, account_id)
);
