-- Who signs in to the web application: one row an address, whatever customers it belongs to. `email_key` is what two spellings of it
-- share. `password` is argon2id; null until one is chosen. `language` and `zone` are how pages are written for them; null: as their
-- browser asks, and UTC.
CREATE TABLE people (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email      text NOT NULL,
    email_key  text NOT NULL UNIQUE,
    password   text,
    language   text,
    zone       text,
    created_at timestamptz NOT NULL DEFAULT clock_now()
);

-- What a person is at a customer. `person_id` is null until its invitation was taken up: an address alone gives nobody a place.
ALTER TABLE users
    DROP CONSTRAINT users_role_check,
    ADD CONSTRAINT users_role_check CHECK (role IN ('admin', 'member', 'finance', 'viewer')),
    ADD COLUMN person_id integer REFERENCES people;
CREATE UNIQUE INDEX users_person ON users (person_id, customer_id) WHERE person_id IS NOT NULL;

-- Links that can be used once. Only the SHA-256 of a link's secret is stored. `invitation` gives a user to a person, `sign_in` signs a
-- user in without a password, `reset` lets a person choose a new password. Used links stay for a while, so that a page can say so.
CREATE TABLE sign_in_links (
    hash       bytea PRIMARY KEY CHECK (length(hash) = 32),
    kind       text NOT NULL CHECK (kind IN ('invitation', 'sign_in', 'reset')),
    user_id    integer REFERENCES users,
    person_id  integer REFERENCES people,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    ends_at    timestamptz NOT NULL,
    used_at    timestamptz,
    CHECK ((kind = 'reset') = (person_id IS NOT NULL) AND (kind = 'reset') = (user_id IS NULL))
);
CREATE INDEX sign_in_links_user ON sign_in_links (user_id) WHERE used_at IS NULL;
CREATE INDEX sign_in_links_person ON sign_in_links (person_id) WHERE used_at IS NULL;
CREATE INDEX sign_in_links_ends ON sign_in_links (ends_at);

-- Browsers that are signed in. Of the cookie only the SHA-256 is here. `user_id` is the customer that was chosen, null before. One
-- that ended stays for a while. `notice` is what the next page says about what was just done.
CREATE TABLE sessions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash        bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    person_id   integer NOT NULL REFERENCES people,
    user_id     integer REFERENCES users,
    environment text NOT NULL CHECK (environment IN ('production', 'staging')),
    address     inet,
    browser     text NOT NULL,
    notice      text,
    created_at  timestamptz NOT NULL DEFAULT clock_now(),
    seen_at     timestamptz NOT NULL DEFAULT clock_now(),
    ends_at     timestamptz NOT NULL,
    ended_at    timestamptz
);
CREATE INDEX sessions_person ON sessions (person_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_user ON sessions (user_id) WHERE ended_at IS NULL;
CREATE INDEX sessions_ends ON sessions (ends_at);

-- Forms that were posted, each once: a repeat gets the answer of the first, sealed. `answer` is null while the first is under way.
CREATE TABLE form_posts (
    session_id bigint NOT NULL,
    token      bytea NOT NULL,
    answer     bytea,
    posted_at  timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (session_id, token)
);
CREATE INDEX form_posts_posted ON form_posts (posted_at);

-- How often a password, a code or an address may still be tried, by a keyed hash of the person or address. `is_refused` is about the
-- last try alone.
CREATE TABLE sign_in_allowances (
    key        bigint PRIMARY KEY,
    remaining  real NOT NULL,
    is_refused boolean NOT NULL DEFAULT false,
    counted_at timestamptz NOT NULL DEFAULT clock_now()
);
CREATE INDEX sign_in_allowances_counted ON sign_in_allowances (counted_at);
