-- How often a parcel was given to a carrier: each time its recipient is mailed, once. Of one that came back and left again before this migration,
-- it is not known how often that was, and it was mailed of once.
ALTER TABLE shipments ADD COLUMN sendings integer NOT NULL DEFAULT 0;
UPDATE shipments SET sendings = CASE WHEN returned_at < shipped_at THEN 2 ELSE 1 END WHERE shipped_at IS NOT NULL;
ALTER TABLE shipments ADD CONSTRAINT shipments_sendings CHECK ((sendings = 0) = (shipped_at IS NULL));

-- The mail of the second, third … time is of kinds of its own: `shipped_2`, `shipped_3` …
ALTER TABLE messages
    DROP CONSTRAINT messages_kind_check,
    ADD CONSTRAINT messages_kind_check CHECK (
        kind IN ('gift', 'voucher_ready', 'shipped', 'reminder_1', 'reminder_2', 'reminder_3', 'reminder_last', 'campaign_code')
        OR kind ~ '^shipped_[1-9][0-9]*$');
