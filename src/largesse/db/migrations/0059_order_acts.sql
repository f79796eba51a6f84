-- More that is done with an order after it was placed:
--   correct   a recipient's address was corrected: the one whose first line is `line_number`
--   schedule  the order leaves at `due_at` instead of `was_due_at`
-- A cancellation says how many codes it voided (`codes`; null before this release), and of which recipient, where it was of one.
ALTER TABLE order_acts
    ADD COLUMN line_number integer,
    ADD COLUMN codes       integer,
    ADD COLUMN due_at      timestamptz,
    ADD COLUMN was_due_at  timestamptz,
    DROP CONSTRAINT order_acts_act_check,
    ADD CONSTRAINT order_acts_act_check CHECK (act IN ('cancel', 'resend', 'correct', 'schedule'));

-- What the address was before it was corrected, masked (`b•••@example.com`). It is erased with the recipient.
ALTER TABLE lines ADD COLUMN was_email text;

-- Whose codes were read again: the recipient whose first line this is; null for all codes of a batch.
ALTER TABLE code_readings ADD COLUMN line_number integer;
