-- What an invoiced customer pays of what it owes is a settlement: a credit of its receivable from its deposits, named by a
-- reference. No entry has the kind yet, so those that are there need no look.
ALTER TABLE entries DROP CONSTRAINT entries_kind_check;
ALTER TABLE entries ADD CONSTRAINT entries_kind_check
    CHECK (kind IN ('top_up', 'settlement', 'order', 'refund')) NOT VALID;
