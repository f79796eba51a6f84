-- A `test` is the mail of a gift as its recipients will get it, to a user who is about to send it: `content` is the whole message. There are
-- no codes in it.
ALTER TABLE people_mails
    ADD COLUMN content bytea,
    DROP CONSTRAINT people_mails_kind_check,
    DROP CONSTRAINT people_mails_check,
    ADD CONSTRAINT people_mails_kind_check CHECK (kind IN ('invitation', 'reset', 'new_device', 'low_balance', 'test')),
    ADD CONSTRAINT people_mails_check CHECK (
        (kind IN ('invitation', 'low_balance', 'test')) = (user_id IS NOT NULL) AND (user_id IS NULL) = (person_id IS NOT NULL)
        AND (kind = 'low_balance') = (account_id IS NOT NULL) AND (kind = 'test') = (content IS NOT NULL));
