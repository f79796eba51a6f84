-- One row if the tables that orders fill are distributed over nodes. It shows whether a server has lost the extension or never had
-- it. Written by `largesse migrate` (largesse.database.distribution).
CREATE TABLE distribution (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz NOT NULL DEFAULT clock_now()
);
