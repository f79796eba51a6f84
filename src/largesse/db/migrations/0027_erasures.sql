-- Receipts of erasures: what was taken out, by number. They name nobody. `customer_id` is null where it was all customers'.
CREATE SEQUENCE erasures_id_seq AS integer;
CREATE TABLE erasures (
    id          integer PRIMARY KEY DEFAULT nextval('erasures_id_seq'),
    at          timestamptz NOT NULL,
    customer_id integer,
    orders      integer NOT NULL,
    lines       integer NOT NULL,
    messages    integer NOT NULL,
    cancelled   integer NOT NULL,
    captured    integer NOT NULL,
    parcels     integer NOT NULL,
    texts       integer NOT NULL,
    drafts      integer NOT NULL
);

-- An address that was erased is null; a parcel that has not been shipped then has nowhere to go.
ALTER TABLE shipments ALTER COLUMN sealed_address DROP NOT NULL;
