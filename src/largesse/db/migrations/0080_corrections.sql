-- Corrections of what an account holds, which one person proposes and another posts. The kinds:
--   credit   money that came is on no account yet: from the customer's deposits
--   debit    money was credited that did not come: back to the deposits
--   refund   what an order cost is given back: from the customer's sales
-- The states:
--   waiting     nobody has decided, and nobody may after `expires_at`
--   approved    posted as the movement `transfer_id`
--   declined    by another person
--   withdrawn   by the person who proposed it
-- `proposed_by` and `decided_by` are members of staff.
CREATE SEQUENCE corrections_id_seq AS integer;
CREATE TABLE corrections (
    customer_id     integer NOT NULL REFERENCES customers,
    id              integer NOT NULL DEFAULT nextval('corrections_id_seq'),
    environment     text NOT NULL CHECK (environment IN ('production', 'staging')),
    account_id      integer NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('credit', 'debit', 'refund')),
    amount_minor    bigint NOT NULL CHECK (amount_minor > 0),
    order_reference text COLLATE "C",
    reason          text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
    state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'approved', 'declined', 'withdrawn')),
    proposed_by     integer NOT NULL,
    proposed_at     timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    decided_by      integer,
    decided_at      timestamptz,
    transfer_id     bigint,
    PRIMARY KEY (customer_id, id),
    CHECK ((kind = 'refund') = (order_reference IS NOT NULL)),
    CHECK ((state = 'waiting') = (decided_by IS NULL) AND (state = 'waiting') = (decided_at IS NULL)),
    CHECK ((state = 'approved') = (transfer_id IS NOT NULL)),
    CONSTRAINT corrections_by_two CHECK (state = 'waiting' OR (decided_by = proposed_by) = (state = 'withdrawn'))
);
CREATE INDEX corrections_newest ON corrections (id);
CREATE INDEX corrections_waiting ON corrections (expires_at) WHERE state = 'waiting';
CREATE INDEX corrections_of_order ON corrections (customer_id, order_reference) WHERE order_reference IS NOT NULL;

-- What was proposed is never changed, and a decision is made once.
CREATE FUNCTION guard_corrections() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'waiting' OR (OLD.customer_id, OLD.id, OLD.environment, OLD.account_id, OLD.kind, OLD.amount_minor, OLD.order_reference,
                                  OLD.reason, OLD.proposed_by, OLD.proposed_at)
        IS DISTINCT FROM (NEW.customer_id, NEW.id, NEW.environment, NEW.account_id, NEW.kind, NEW.amount_minor, NEW.order_reference,
                          NEW.reason, NEW.proposed_by, NEW.proposed_at) THEN
        RAISE EXCEPTION 'a correction is decided once, and not changed: refused' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER guard_corrections BEFORE UPDATE ON corrections FOR EACH ROW EXECUTE FUNCTION guard_corrections();

-- No entry has the kind yet, so those that are there need no look.
ALTER TABLE entries DROP CONSTRAINT entries_kind_check;
ALTER TABLE entries ADD CONSTRAINT entries_kind_check
    CHECK (kind IN ('top_up', 'transfer', 'settlement', 'correction', 'order', 'refund')) NOT VALID;

-- Files of banks that were read on a page, each once, and what of their lines is needed to find what they pay for. Who paid is not kept.
-- `dismissed_at`: somebody decided that the line confirms nothing.
CREATE TABLE bank_files (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest   bytea NOT NULL UNIQUE,
    name     text NOT NULL,
    decimals text CHECK (decimals IN ('.', ',')),  -- the sign before them, where it was said
    read_by  integer,
    read_at  timestamptz NOT NULL
);
CREATE TABLE bank_lines (
    file_id      integer NOT NULL REFERENCES bank_files,
    line         integer NOT NULL,
    mark         bytea NOT NULL,
    amount       text NOT NULL,
    currency     text NOT NULL,
    named        text[] NOT NULL,
    dismissed_by integer,
    dismissed_at timestamptz,
    PRIMARY KEY (file_id, line)
);
CREATE INDEX bank_lines_dismissed ON bank_lines (mark) WHERE dismissed_at IS NOT NULL;

-- Whom an account belongs to, of which only the number is known.
CREATE INDEX accounts_by_id ON accounts (id);
CREATE INDEX accounts_receivable ON accounts (customer_id, id) WHERE kind = 'receivable';
