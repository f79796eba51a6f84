-- Whose fault it is that a message was refused, or could not even be offered:
--   recipient  the address, or this one message: the state is `bounced`
--   server     the mail server, which can be mended: tried again, and `exhausted` after three days
-- What bounced before this has none.
ALTER TABLE messages ADD COLUMN fault text CHECK (fault IN ('recipient', 'server'));

-- For `largesse mail requeue`: what was given up, and what is held, by when.
CREATE INDEX messages_given_up ON messages ((coalesce(finished_at, due_at)), id)
    WHERE state IN ('bounced', 'exhausted', 'held');

-- Each time that an operator had mail sent again: what was given up `since`, where its reason has these words.
CREATE TABLE mail_requeues (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL,
    since    timestamptz NOT NULL,
    reason   text,
    messages integer NOT NULL
);
