-- Erasures of a person: what was found when each began, and what was removed so far. Workers carry on one that was interrupted.
--   customer_id   null: with all customers
--   request_id    the request that it finishes; null for one of the command line
--   sealed_email  whom it erases; gone when it has ended
--   who           who began it, for the audit log
--   found         the orders to erase, each [customer, order, lines, those of the lines that are sent to the address, whether texts have it];
--                 null until the search is over
--   done          how many of them are erased. lines, messages, cancelled, captured and parcels count what was removed there.
--   due_at        when a worker goes on, later after a failure
--   erasure_id    the receipt; null while it runs, and if nothing was found
CREATE SEQUENCE erasure_jobs_id_seq AS integer;
CREATE TABLE erasure_jobs (
    id           integer PRIMARY KEY DEFAULT nextval('erasure_jobs_id_seq'),
    customer_id  integer REFERENCES customers,
    request_id   integer REFERENCES privacy_requests ON DELETE CASCADE,
    sealed_email bytea,
    who          jsonb NOT NULL,
    began_at     timestamptz NOT NULL,
    due_at       timestamptz NOT NULL,
    found        jsonb,
    done         integer NOT NULL DEFAULT 0,
    lines        integer NOT NULL DEFAULT 0,
    messages     integer NOT NULL DEFAULT 0,
    cancelled    integer NOT NULL DEFAULT 0,
    captured     integer NOT NULL DEFAULT 0,
    parcels      integer NOT NULL DEFAULT 0,
    ended_at     timestamptz,
    erasure_id   integer,
    CHECK ((ended_at IS NULL) = (sealed_email IS NOT NULL)),
    CHECK (erasure_id IS NULL OR ended_at IS NOT NULL)
);
CREATE UNIQUE INDEX erasure_jobs_of_request ON erasure_jobs (request_id) WHERE ended_at IS NULL;
