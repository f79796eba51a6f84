-- Reminders of gifts that nobody has claimed.
--   sent_at        when the order leaves: reminders are counted from it
--   reminder_days  so many days after it, each a number; at most three, ascending
--   reminded       how many of them have been dealt with
--   reminded_last  whether the one before the claim-by date has been
ALTER TABLE follow_ups
    ADD COLUMN sent_at       timestamptz,
    ADD COLUMN reminder_days smallint[] NOT NULL DEFAULT '{}',
    ADD COLUMN reminded      smallint NOT NULL DEFAULT 0,
    ADD COLUMN reminded_last boolean NOT NULL DEFAULT false;
UPDATE follow_ups AS f SET sent_at = coalesce(o.scheduled_for, o.created_at), reminded_last = true
FROM orders AS o WHERE o.customer_id = f.customer_id AND o.id = f.order_id;
ALTER TABLE follow_ups ALTER COLUMN sent_at SET NOT NULL;

-- Recipients who want no more reminders, by each of their lines. It names nobody, and stays as their lines do.
CREATE TABLE reminder_stops (
    customer_id integer NOT NULL,
    order_id    integer NOT NULL,
    number      integer NOT NULL,
    stopped_at  timestamptz NOT NULL,
    PRIMARY KEY (customer_id, order_id, number)
);

-- Reminders are messages of kinds of their own, so that each is made once for a recipient, whose first line is the edition:
--   reminder_1, reminder_2, reminder_3   after so many days
--   reminder_last                        before the claim-by date
ALTER TABLE messages
    DROP CONSTRAINT messages_kind_check,
    ADD CONSTRAINT messages_kind_check CHECK (
        kind IN ('gift', 'voucher_ready', 'shipped', 'reminder_1', 'reminder_2', 'reminder_3', 'reminder_last'));
