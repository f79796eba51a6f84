-- `confirmed_at`: when a person first chose a password by a link that had only been mailed to their address. Until then anybody who had the
-- address's invitation from a page may have set up what is there, and the first such link ends it. Who has a second step already keeps it:
-- nobody can tell who was invited by mail, and a reset by mail must not end the second step of its owner.
ALTER TABLE people ADD COLUMN confirmed_at timestamptz;
-- Two statements: on a cluster, people are on every node and passkeys are not.
DO $$
DECLARE
    with_passkey integer[] := ARRAY(SELECT DISTINCT person_id FROM passkeys);
BEGIN
    UPDATE people SET confirmed_at = clock_now() WHERE totp IS NOT NULL OR id = ANY (with_passkey);
END $$;

-- `is_mailed`: made as the mail was written, and seen by nobody but who reads it.
ALTER TABLE sign_in_links ADD COLUMN is_mailed boolean NOT NULL DEFAULT false;
