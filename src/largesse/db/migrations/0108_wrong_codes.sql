-- `wrong_codes` tells a person that somebody shows wrong second steps as them.
ALTER TABLE people_mails
    DROP CONSTRAINT people_mails_change_check,
    ADD CONSTRAINT people_mails_change_check CHECK (
        change IN ('app_on', 'app_off', 'passkey_added', 'passkey_removed', 'recovery_codes', 'forgotten', 'wrong_codes'));
