-- What recipients wrote back after they claimed a gift, one note for each gift, encrypted.
--   user_id   the person who sent the order; null for an order of an API key
--   mail_id   the mail to that person that has the note; null before there is one
CREATE SEQUENCE thank_you_notes_id_seq;
CREATE TABLE thank_you_notes (
    customer_id integer NOT NULL,
    id          bigint NOT NULL DEFAULT nextval('thank_you_notes_id_seq'),
    environment text NOT NULL CHECK (environment IN ('production', 'staging')),
    order_id    integer NOT NULL,
    number      integer NOT NULL,
    user_id     integer,
    sealed      bytea NOT NULL,
    written_at  timestamptz NOT NULL,
    mail_id     bigint,
    PRIMARY KEY (customer_id, id),
    UNIQUE (customer_id, order_id, number)
);
CREATE INDEX thank_you_notes_newest ON thank_you_notes (customer_id, environment, id);
CREATE INDEX thank_you_notes_of_people ON thank_you_notes (customer_id, environment, user_id, id);

-- Whether recipients of a customer's gifts may write back.
ALTER TABLE customers ADD COLUMN takes_notes boolean NOT NULL DEFAULT true;

-- `thank_you` has the notes of an order that came since the last one. Its person gets one at a time for each order.
ALTER TABLE people_mails
    ADD COLUMN note_order_id integer,
    DROP CONSTRAINT people_mails_kind_check,
    DROP CONSTRAINT people_mails_check,
    ADD CONSTRAINT people_mails_kind_check CHECK (
        kind IN ('invitation', 'reset', 'new_device', 'low_balance', 'test', 'second_step', 'approval_asked', 'approval_ended', 'thank_you')),
    ADD CONSTRAINT people_mails_check CHECK (
        (kind IN ('invitation', 'low_balance', 'test', 'approval_asked', 'approval_ended', 'thank_you')) = (user_id IS NOT NULL)
        AND (user_id IS NULL) = (person_id IS NOT NULL)
        AND (kind = 'low_balance') = (account_id IS NOT NULL) AND (kind = 'test') = (content IS NOT NULL)
        AND (kind IN ('approval_asked', 'approval_ended')) = (request_id IS NOT NULL)
        AND (kind = 'thank_you') = (note_order_id IS NOT NULL)
        AND (kind = 'second_step') = (change IS NOT NULL));
CREATE UNIQUE INDEX people_mails_thank_you ON people_mails (user_id, note_order_id) WHERE kind = 'thank_you';
