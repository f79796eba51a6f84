-- What people sign in with, and what they are at a customer, is changed by who has a master key of the installation: SQL alone, by an
-- injection or with the password of the database, makes no session and no administrator (docs/decisions/0039-credentials.md).

-- The SHA-256 of a key that is derived from the master key. It is of 32 random bytes: the hash gives nothing of it away.
ALTER TABLE master_keys ADD COLUMN credentials_hash bytea CHECK (length(credentials_hash) = 32);

-- The transactions under way that have shown such a key. Written by the function below alone; a row goes as its transaction commits.
CREATE UNLOGGED TABLE credential_openings (xid xid8 PRIMARY KEY);

-- Lets the rest of the transaction change credentials. Says nothing of a wrong key: the changes are refused then.
CREATE FUNCTION open_credentials(key bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO credential_openings (xid)
        SELECT pg_current_xact_id() WHERE EXISTS (
            SELECT FROM master_keys WHERE credentials_hash = sha256(key) AND retired_at IS NULL)
        ON CONFLICT DO NOTHING;
END $$;

CREATE FUNCTION close_credentials() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    DELETE FROM credential_openings WHERE xid = NEW.xid;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER closed_at_the_end AFTER INSERT ON credential_openings
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION close_credentials();

-- Refuses a change of a row to all but who owns the table, commands, and a transaction that has shown the key. Its arguments are columns that
-- may change without. It runs as who changes the row, as it asks who that is.
CREATE FUNCTION guard_credentials() RETURNS trigger
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    is_free boolean := false;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        is_free := to_jsonb(NEW) - coalesce(TG_ARGV, '{}') = to_jsonb(OLD) - coalesce(TG_ARGV, '{}');
    END IF;
    IF NOT is_free
        AND NOT EXISTS (SELECT FROM credential_openings WHERE xid = pg_current_xact_id())
        AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = TG_RELID AND pg_has_role(current_user, c.relowner, 'USAGE'))
        AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'largesse_operator' AND pg_has_role(current_user, r.oid, 'USAGE'))
    THEN
        RAISE insufficient_privilege USING MESSAGE = format(
            'changing %s takes the key of the credentials, which %s has not shown', TG_TABLE_NAME, current_user);
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER guarded BEFORE INSERT OR UPDATE ON sessions
    FOR EACH ROW EXECUTE FUNCTION guard_credentials('environment', 'notice', 'challenge', 'challenged_at', 'ended_at');
-- One that has ended stays so.
CREATE TRIGGER guarded_end BEFORE UPDATE ON sessions
    FOR EACH ROW WHEN (OLD.ended_at IS DISTINCT FROM NEW.ended_at AND OLD.ended_at IS NOT NULL) EXECUTE FUNCTION guard_credentials();
CREATE TRIGGER guarded BEFORE INSERT OR UPDATE ON sign_in_links
    FOR EACH ROW EXECUTE FUNCTION guard_credentials('used_at');
CREATE TRIGGER guarded_end BEFORE UPDATE ON sign_in_links
    FOR EACH ROW WHEN (OLD.used_at IS DISTINCT FROM NEW.used_at AND OLD.used_at IS NOT NULL) EXECUTE FUNCTION guard_credentials();
CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE ON passkeys
    FOR EACH ROW EXECUTE FUNCTION guard_credentials();
CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE ON recovery_codes
    FOR EACH ROW EXECUTE FUNCTION guard_credentials();
-- On a cluster these two are copies on every node, where the transaction that has shown the key is not known.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE ON people
            FOR EACH ROW EXECUTE FUNCTION guard_credentials('language', 'zone');
        CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE ON users
            FOR EACH ROW EXECUTE FUNCTION guard_credentials('name', 'last_login_at');
    END IF;
END $$;
