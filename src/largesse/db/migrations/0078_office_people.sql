-- Customers by the words of their name and key, for the back office.
CREATE INDEX customers_by_words ON customers USING gin (to_tsvector('simple', name || ' ' || key));

-- What members of staff write down about a customer. It may name people: each note can be erased, and erasing an address deletes those that contain it.
CREATE SEQUENCE customer_notes_id_seq AS integer;
CREATE TABLE customer_notes (
    customer_id integer NOT NULL REFERENCES customers,
    id          integer NOT NULL DEFAULT nextval('customer_notes_id_seq'),
    author      text NOT NULL,
    note        text NOT NULL CHECK (length(note) BETWEEN 1 AND 2000),
    written_at  timestamptz NOT NULL,
    PRIMARY KEY (customer_id, id)
);

-- A member of staff sees the web application as a customer does, without changing anything.
--   session_id  the session of the back office, in which alone the view is open
--   ends_at     30 minutes after it began; when it is ended before, that moment
CREATE SEQUENCE customer_views_id_seq AS integer;
CREATE TABLE customer_views (
    id          integer PRIMARY KEY DEFAULT nextval('customer_views_id_seq'),
    session_id  bigint NOT NULL,
    customer_id integer NOT NULL REFERENCES customers,
    environment text NOT NULL CHECK (environment IN ('production', 'staging')),
    reason      text NOT NULL CHECK (length(reason) BETWEEN 10 AND 200),
    began_at    timestamptz NOT NULL,
    ends_at     timestamptz NOT NULL
);
CREATE INDEX customer_views_open ON customer_views (session_id, ends_at);

-- What people ask about their personal data, until it is done.
--   customer_id   null: with all customers
--   sealed_email  whom it is about; erased when the request is done
--   due_on        30 days after it was received
--   erasure_id    the receipt of the erasure
--   outcome       done, or nothing: nothing is stored about the address, or declined
CREATE SEQUENCE privacy_requests_id_seq AS integer;
CREATE TABLE privacy_requests (
    id           integer PRIMARY KEY DEFAULT nextval('privacy_requests_id_seq'),
    kind         text NOT NULL CHECK (kind IN ('export', 'erase')),
    customer_id  integer REFERENCES customers,
    sealed_email bytea,
    received_on  date NOT NULL,
    due_on       date NOT NULL CHECK (due_on = received_on + 30),
    done_at      timestamptz,
    outcome      text CHECK (outcome IN ('done', 'nothing', 'declined')),
    erasure_id   integer,
    CHECK ((done_at IS NULL) = (sealed_email IS NOT NULL)),
    CHECK ((done_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX privacy_requests_due ON privacy_requests (due_on, id) WHERE done_at IS NULL;

-- Parcels by their tracking number.
CREATE INDEX shipments_by_tracking ON shipments (tracking_number) WHERE tracking_number IS NOT NULL;

-- What was given up or is held, of one customer.
CREATE INDEX messages_given_up_of ON messages (customer_id, (coalesce(finished_at, due_at)), id)
    WHERE state IN ('bounced', 'exhausted', 'held');

-- Erased addresses also stand in notes of staff.
ALTER TABLE erasures ADD COLUMN customer_notes integer NOT NULL DEFAULT 0;

-- The lines that codes may be of, by the numbers that codes are found by: the back office reads neither those nor what is encrypted of a line.
CREATE FUNCTION lines_by_lookup(wanted bigint[]) RETURNS TABLE (customer_id integer, order_id integer, number integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT customer_id, order_id, number FROM lines WHERE code_lookup = ANY(wanted)
$$;
