-- What a person signs in with beside the password: the secret of an app that shows codes (RFC 6238), sealed. `totp_step` is the
-- 30 seconds of the last code that was taken: none of them, nor an earlier one, is taken again.
ALTER TABLE people ADD COLUMN totp bytea, ADD COLUMN totp_step bigint NOT NULL DEFAULT 0;

-- Codes for when the app is lost, each for one use: of each only the SHA-256 is here.
CREATE TABLE recovery_codes (
    person_id integer NOT NULL REFERENCES people,
    hash      bytea NOT NULL CHECK (length(hash) = 32),
    used_at   timestamptz,
    PRIMARY KEY (person_id, hash)
);

-- `awaits_second_step`: the password was right, and nothing is shown yet. `proved_at` is when the person last showed that it is
-- them: on signing in, and when asked again before something that matters.
ALTER TABLE sessions
    ADD COLUMN awaits_second_step boolean NOT NULL DEFAULT false,
    ADD COLUMN proved_at timestamptz NOT NULL DEFAULT clock_now();

-- Whether a customer asks its people for a second step.
ALTER TABLE customers ADD COLUMN requires_second_step boolean NOT NULL DEFAULT false;
