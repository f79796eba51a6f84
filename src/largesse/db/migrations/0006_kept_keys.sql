-- A deleted key loses its hash, so that no secret finds it any more, and keeps its row: what was done with it goes on telling
-- which key that was, and a world file does not bring it back. Its name is free again.
-- `hash` belongs to a unique index: to take it away locks the row as a DELETE would, against every FOR KEY SHARE.
ALTER TABLE api_keys
    ADD COLUMN deleted_at timestamptz,
    ALTER COLUMN hash DROP NOT NULL,
    ADD CHECK ((hash IS NULL) = (deleted_at IS NOT NULL)),
    DROP CONSTRAINT api_keys_customer_id_key_key;
CREATE UNIQUE INDEX api_keys_name ON api_keys (customer_id, key) WHERE deleted_at IS NULL;
