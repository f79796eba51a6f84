-- Mail to people who sign in, until it is sent: `invitation` to a user, `reset` (a new password) and `new_device` (a browser that
-- signed in for the first time) to a person. The link in one is made as it is sent: no secret waits here.
CREATE TABLE people_mails (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('invitation', 'reset', 'new_device')),
    user_id    integer REFERENCES users,
    person_id  integer REFERENCES people,
    address    inet,
    browser    text,
    due_at     timestamptz NOT NULL DEFAULT clock_now(),
    attempts   integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_now(),
    CHECK ((kind = 'invitation') = (user_id IS NOT NULL) AND (kind = 'invitation') = (person_id IS NULL))
);
CREATE INDEX people_mails_due ON people_mails (due_at);

-- By which a browser is known again: the SHA-256 of a cookie that stays.
ALTER TABLE sessions ADD COLUMN device bytea;
CREATE INDEX sessions_device ON sessions (person_id, device);
