-- The last anchor of each account, as far as `largesse anchor --note` noted one: its last entry then, and the mark of that. A copy for
-- people to look at; only an anchor that is stored elsewhere proves anything.
CREATE TABLE noted_anchors (
    customer_id integer NOT NULL,
    account_id  integer NOT NULL,
    entry_id    bigint NOT NULL,
    mac         bytea NOT NULL,
    made_at     timestamptz NOT NULL,
    PRIMARY KEY (customer_id, account_id)
);
