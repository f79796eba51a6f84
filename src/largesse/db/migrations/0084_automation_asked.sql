-- `automation_asked` tells an administrator that an automation waits for approval. Of each, one mail at a time waits for a person.
ALTER TABLE people_mails
    ADD COLUMN automation_id integer,
    DROP CONSTRAINT people_mails_kind_check,
    DROP CONSTRAINT people_mails_check,
    ADD CONSTRAINT people_mails_kind_check CHECK (
        kind IN ('invitation', 'reset', 'new_device', 'low_balance', 'test', 'second_step', 'approval_asked', 'approval_ended', 'thank_you',
                 'automation_asked')),
    ADD CONSTRAINT people_mails_check CHECK (
        (kind IN ('invitation', 'low_balance', 'test', 'approval_asked', 'approval_ended', 'thank_you', 'automation_asked'))
            = (user_id IS NOT NULL)
        AND (user_id IS NULL) = (person_id IS NOT NULL)
        AND (kind = 'low_balance') = (account_id IS NOT NULL) AND (kind = 'test') = (content IS NOT NULL)
        AND (kind IN ('approval_asked', 'approval_ended')) = (request_id IS NOT NULL)
        AND (kind = 'thank_you') = (note_order_id IS NOT NULL)
        AND (kind = 'automation_asked') = (automation_id IS NOT NULL)
        AND (kind = 'second_step') = (change IS NOT NULL));
CREATE UNIQUE INDEX people_mails_automation_asked ON people_mails (user_id, automation_id) WHERE kind = 'automation_asked';
