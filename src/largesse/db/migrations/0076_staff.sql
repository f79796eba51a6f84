-- The people of who runs the installation, who sign in to the back office. They are no people of customers, and have no row in `people`.
-- Whoever was invited once stays: the audit log names them. `password` is null until the invitation was taken up.
CREATE TABLE staff (
    id                integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email             text NOT NULL,
    email_key         text NOT NULL UNIQUE,
    name              text NOT NULL,
    role              text NOT NULL CHECK (role IN ('owner', 'catalogue', 'finance', 'warehouse', 'support', 'auditor')),
    is_active         boolean NOT NULL DEFAULT true,
    password          text,
    totp              bytea,
    totp_step         bigint NOT NULL DEFAULT 0,
    language          text,
    zone              text,
    created_at        timestamptz NOT NULL DEFAULT clock_now(),
    last_signed_in_at timestamptz,
    has_password      boolean NOT NULL GENERATED ALWAYS AS (password IS NOT NULL) STORED,
    has_app           boolean NOT NULL GENERATED ALWAYS AS (totp IS NOT NULL) STORED
);

-- As `sessions`, `sign_in_links`, `passkeys`, `recovery_codes` and `form_posts` are for people of customers.
CREATE TABLE staff_sessions (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash               bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    staff_id           integer NOT NULL REFERENCES staff,
    address            inet,
    browser            text NOT NULL,
    device             bytea,
    notice             text,
    challenge          bytea,
    challenged_at      timestamptz,
    awaits_second_step boolean NOT NULL,
    proved_at          timestamptz NOT NULL DEFAULT clock_now(),
    created_at         timestamptz NOT NULL DEFAULT clock_now(),
    seen_at            timestamptz NOT NULL DEFAULT clock_now(),
    ends_at            timestamptz NOT NULL,
    ended_at           timestamptz
);
CREATE INDEX staff_sessions_staff ON staff_sessions (staff_id) WHERE ended_at IS NULL;
CREATE INDEX staff_sessions_device ON staff_sessions (staff_id, device);
CREATE INDEX staff_sessions_ends ON staff_sessions (ends_at);

--   invitation, reset   lets its holder choose a password, once
--   sign_in             lets in once: the demo's
CREATE TABLE staff_links (
    hash     bytea PRIMARY KEY CHECK (length(hash) = 32),
    kind     text NOT NULL CHECK (kind IN ('invitation', 'reset', 'sign_in')),
    staff_id integer NOT NULL REFERENCES staff,
    ends_at  timestamptz NOT NULL,
    used_at  timestamptz
);
CREATE INDEX staff_links_staff ON staff_links (staff_id) WHERE used_at IS NULL;
CREATE INDEX staff_links_ends ON staff_links (ends_at);

CREATE TABLE staff_passkeys (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    staff_id      integer NOT NULL REFERENCES staff,
    credential_id bytea NOT NULL UNIQUE,
    credential    bytea NOT NULL,
    name          text NOT NULL,
    sign_count    bigint NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_now(),
    used_at       timestamptz
);
CREATE INDEX staff_passkeys_staff ON staff_passkeys (staff_id);

CREATE TABLE staff_recovery_codes (
    staff_id integer NOT NULL REFERENCES staff,
    hash     bytea NOT NULL CHECK (length(hash) = 32),
    used_at  timestamptz,
    PRIMARY KEY (staff_id, hash)
);

CREATE TABLE staff_form_posts (
    session_id bigint NOT NULL,
    token      bytea NOT NULL,
    answer     bytea,
    posted_at  timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (session_id, token)
);
CREATE INDEX staff_form_posts_posted ON staff_form_posts (posted_at);

-- Changing them takes a key of the master key, and so does reading a password's hash and an app's secret (migration `credentials`).
CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE ON staff
    FOR EACH ROW EXECUTE FUNCTION guard_credentials('language', 'zone', 'last_signed_in_at', 'has_password', 'has_app');
CREATE TRIGGER guarded BEFORE INSERT OR UPDATE ON staff_sessions
    FOR EACH ROW EXECUTE FUNCTION guard_credentials('notice', 'challenge', 'challenged_at', 'ended_at');
CREATE TRIGGER guarded_end BEFORE UPDATE ON staff_sessions
    FOR EACH ROW WHEN (OLD.ended_at IS DISTINCT FROM NEW.ended_at AND OLD.ended_at IS NOT NULL) EXECUTE FUNCTION guard_credentials();
CREATE TRIGGER guarded BEFORE INSERT OR UPDATE ON staff_links
    FOR EACH ROW EXECUTE FUNCTION guard_credentials('used_at');
CREATE TRIGGER guarded_end BEFORE UPDATE ON staff_links
    FOR EACH ROW WHEN (OLD.used_at IS DISTINCT FROM NEW.used_at AND OLD.used_at IS NOT NULL) EXECUTE FUNCTION guard_credentials();
CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE ON staff_passkeys
    FOR EACH ROW EXECUTE FUNCTION guard_credentials();
CREATE TRIGGER guarded BEFORE INSERT OR UPDATE OR DELETE ON staff_recovery_codes
    FOR EACH ROW EXECUTE FUNCTION guard_credentials();

CREATE FUNCTION staff_password_of(key bytea, who integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT password FROM staff WHERE id = who AND EXISTS (
        SELECT FROM master_keys WHERE credentials_hash = sha256(key) AND retired_at IS NULL)
$$;
CREATE FUNCTION staff_totp_of(key bytea, who integer) RETURNS bytea
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT totp FROM staff WHERE id = who AND EXISTS (
        SELECT FROM master_keys WHERE credentials_hash = sha256(key) AND retired_at IS NULL)
$$;

-- What was ordered and claimed on a day, of all customers.
CREATE INDEX report_sums_of_day ON report_sums (day) WHERE grain = 'day';

-- The audit log names them: a `staff` with an `actor_id` of `staff`.
ALTER TABLE audit_events
    DROP CONSTRAINT audit_events_actor_check,
    DROP CONSTRAINT audit_events_check,
    ADD CONSTRAINT audit_events_actor_check CHECK (actor IN ('person', 'key', 'staff', 'command', 'worker')),
    ADD CONSTRAINT audit_events_check CHECK ((actor IN ('person', 'key', 'staff')) = (actor_id IS NOT NULL));
