-- A `second_step` tells a person what has changed about theirs: codes of an app are asked for (`app_on`) or no longer (`app_off`), a passkey was
-- added or removed, recovery codes are new (`recovery_codes`), or an operator has had all of it forgotten (`forgotten`).
ALTER TABLE people_mails
    ADD COLUMN change text CHECK (
        change IN ('app_on', 'app_off', 'passkey_added', 'passkey_removed', 'recovery_codes', 'forgotten')),
    DROP CONSTRAINT people_mails_kind_check,
    DROP CONSTRAINT people_mails_check,
    ADD CONSTRAINT people_mails_kind_check CHECK (
        kind IN ('invitation', 'reset', 'new_device', 'low_balance', 'test', 'second_step')),
    ADD CONSTRAINT people_mails_check CHECK (
        (kind IN ('invitation', 'low_balance', 'test')) = (user_id IS NOT NULL) AND (user_id IS NULL) = (person_id IS NOT NULL)
        AND (kind = 'low_balance') = (account_id IS NOT NULL) AND (kind = 'test') = (content IS NOT NULL)
        AND (kind = 'second_step') = (change IS NOT NULL));
