-- The master keys that something may be sealed under: every key that a process has had in its list. `sealed` is the known text that
-- proves it, and begins with the key's id. A key is needed until `largesse reseal` has sealed everything under a newer one
-- (`retired_at`); `sealed_rest`, sealed under the newest, is then what is left of it: what claim links that are out depend on.
-- `sealing_at` is when a process that seals under it was last heard of.
ALTER TABLE master_key_proof RENAME TO master_keys;
ALTER TABLE master_keys
    ADD COLUMN id bytea,
    ADD COLUMN since timestamptz,
    ADD COLUMN sealing_at timestamptz,
    ADD COLUMN retired_at timestamptz,
    ADD COLUMN sealed_rest bytea,
    DROP COLUMN is_only;
UPDATE master_keys SET id = substring(sealed FROM 1 FOR 4), since = clock_now();
ALTER TABLE master_keys
    ADD PRIMARY KEY (id),
    ALTER COLUMN since SET NOT NULL,
    ADD CHECK ((retired_at IS NULL) = (sealed_rest IS NULL));
