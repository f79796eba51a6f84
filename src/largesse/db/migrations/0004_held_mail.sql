-- Mail of production that finds no mail server set is held, and goes out when one is:
--   held   waits, with nothing due, until a worker with a mail server makes it pending again
-- `trying_since` is when a message was made pending again: the three days in which the mail server must take it begin
-- there, else with `created_at`. `captured` is from here on for staging and the demo alone; 0009 changes what
-- production captured before.
ALTER TABLE messages
    ADD COLUMN trying_since timestamptz,
    DROP CONSTRAINT messages_state_check,
    ADD CONSTRAINT messages_state_check
        CHECK (state IN ('pending', 'held', 'sent', 'captured', 'bounced', 'exhausted', 'cancelled'));
CREATE INDEX messages_held ON messages (rank_at) WHERE state = 'held';
