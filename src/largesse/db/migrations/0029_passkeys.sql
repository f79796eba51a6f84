-- Passkeys of people (WebAuthn), a second step as the codes of an app are. `credential` is what the authenticator said when it was made, with
-- its public key: nothing of it is secret. `sign_count` is how often it has signed, where it counts.
CREATE SEQUENCE passkeys_id_seq AS integer;
CREATE TABLE passkeys (
    id            integer PRIMARY KEY DEFAULT nextval('passkeys_id_seq'),
    person_id     integer NOT NULL REFERENCES people,
    credential_id bytea NOT NULL UNIQUE,
    credential    bytea NOT NULL,
    name          text NOT NULL,
    sign_count    bigint NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_now(),
    used_at       timestamptz
);
CREATE INDEX passkeys_person ON passkeys (person_id);

-- What the pages of a session ask a passkey to sign: taken once, and within some minutes.
ALTER TABLE sessions ADD COLUMN challenge bytea, ADD COLUMN challenged_at timestamptz;
