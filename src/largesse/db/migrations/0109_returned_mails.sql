-- `returned` tells a recipient that their parcel came back. The mail of its second, third … return is of kinds of its own, as that of its sendings.
-- The rows are not read again: what the check allowed before, it allows now.
ALTER TABLE messages
    DROP CONSTRAINT messages_kind_check,
    ADD CONSTRAINT messages_kind_check CHECK (
        kind IN ('gift', 'voucher_ready', 'shipped', 'returned', 'reminder_1', 'reminder_2', 'reminder_3', 'reminder_last', 'campaign_code')
        OR kind ~ '^(shipped|returned)_[1-9][0-9]*$') NOT VALID;
