-- The place of an event in the stream of its customer and environment (GET /events). A worker gives it when it fans the event out, one worker at a
-- time, so that no place is filled after a later one was read. Null until then, and for events that an earlier release fanned out.
CREATE SEQUENCE events_position_seq;
ALTER TABLE events ADD COLUMN position bigint;
CREATE UNIQUE INDEX events_stream ON events (customer_id, environment, position) WHERE position IS NOT NULL;
