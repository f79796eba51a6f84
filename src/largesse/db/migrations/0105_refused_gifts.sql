-- The last day for which somebody was mailed that gifts of an automation were refused or missed.
ALTER TABLE automations ADD COLUMN mailed_on date;

-- `automation_refused` tells the person an automation sends as, or the administrators.
ALTER TABLE people_mails
    DROP CONSTRAINT people_mails_kind_check,
    DROP CONSTRAINT people_mails_check,
    ADD CONSTRAINT people_mails_kind_check CHECK (
        kind IN ('invitation', 'reset', 'new_device', 'low_balance', 'test', 'second_step', 'approval_asked', 'approval_ended', 'thank_you',
                 'automation_asked', 'automation_refused')),
    ADD CONSTRAINT people_mails_check CHECK (
        (kind IN ('invitation', 'low_balance', 'test', 'approval_asked', 'approval_ended', 'thank_you', 'automation_asked', 'automation_refused'))
            = (user_id IS NOT NULL)
        AND (user_id IS NULL) = (person_id IS NOT NULL)
        AND (kind = 'low_balance') = (account_id IS NOT NULL) AND (kind = 'test') = (content IS NOT NULL)
        AND (kind IN ('approval_asked', 'approval_ended')) = (request_id IS NOT NULL)
        AND (kind = 'thank_you') = (note_order_id IS NOT NULL)
        AND (kind IN ('automation_asked', 'automation_refused')) = (automation_id IS NOT NULL)
        AND (kind = 'second_step') = (change IS NOT NULL));
