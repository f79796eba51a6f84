-- One row where the tables that orders fill are spread over nodes, so that a server that has lost the extension is told from one
-- that never had it. Written by `largesse migrate` (largesse.database.distribution).
CREATE TABLE distribution (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    since timestamptz NOT NULL DEFAULT clock_now()
);
