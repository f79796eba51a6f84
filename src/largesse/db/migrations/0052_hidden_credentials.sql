-- The roles that serve, deliver and audit cannot read the hashes of passwords and the secrets of second steps (largesse.database.rights): the functions
-- below tell it to who has a key of the master key, as `open_credentials` asks for (docs/decisions/0039-credentials.md).

-- Whether there is any is no secret.
ALTER TABLE people
    ADD COLUMN has_password boolean NOT NULL GENERATED ALWAYS AS (password IS NOT NULL) STORED,
    ADD COLUMN has_app      boolean NOT NULL GENERATED ALWAYS AS (totp IS NOT NULL) STORED;

-- Nothing for a key that is wrong, or of a master key that is retired.
CREATE FUNCTION password_of(key bytea, who integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT password FROM people WHERE id = who AND EXISTS (
        SELECT FROM master_keys WHERE credentials_hash = sha256(key) AND retired_at IS NULL)
$$;
CREATE FUNCTION totp_of(key bytea, who integer) RETURNS bytea
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT totp FROM people WHERE id = who AND EXISTS (
        SELECT FROM master_keys WHERE credentials_hash = sha256(key) AND retired_at IS NULL)
$$;

-- Columns that are worked out are empty yet where a trigger looks at the new row.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        CREATE OR REPLACE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE ON people
            FOR EACH ROW EXECUTE FUNCTION guard_credentials('language', 'zone', 'has_password', 'has_app');
    END IF;
END $$;
