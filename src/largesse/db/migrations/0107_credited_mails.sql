-- `credited` tells who watches an account, and who requested the top-up, that money arrived: `credited_minor` in minor units of the account's currency.
ALTER TABLE people_mails
    ADD COLUMN credited_minor bigint,
    DROP CONSTRAINT people_mails_kind_check,
    DROP CONSTRAINT people_mails_check,
    ADD CONSTRAINT people_mails_kind_check CHECK (
        kind IN ('invitation', 'reset', 'new_device', 'low_balance', 'credited', 'test', 'second_step', 'approval_asked', 'approval_ended',
                 'thank_you', 'automation_asked', 'automation_refused')),
    ADD CONSTRAINT people_mails_check CHECK (
        (kind IN ('invitation', 'low_balance', 'credited', 'test', 'approval_asked', 'approval_ended', 'thank_you', 'automation_asked',
                  'automation_refused')) = (user_id IS NOT NULL)
        AND (user_id IS NULL) = (person_id IS NOT NULL)
        AND (kind IN ('low_balance', 'credited')) = (account_id IS NOT NULL) AND (kind = 'test') = (content IS NOT NULL)
        AND (kind = 'credited') = (credited_minor IS NOT NULL)
        AND (kind IN ('approval_asked', 'approval_ended')) = (request_id IS NOT NULL)
        AND (kind = 'thank_you') = (note_order_id IS NOT NULL)
        AND (kind IN ('automation_asked', 'automation_refused')) = (automation_id IS NOT NULL)
        AND (kind = 'second_step') = (change IS NOT NULL));
