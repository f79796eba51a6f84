-- What proves that a process has the master key the database is sealed under: a known text, sealed by the newest key in use.
-- The first process that starts writes it; it is one row at most.
CREATE TABLE master_key_proof (
    is_only  boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    sealed   bytea NOT NULL
);
