-- Failing lanes are counted every few seconds; few fail, of many.
CREATE INDEX webhook_lanes_failing ON webhook_lanes (subscription_id) WHERE failing;

-- What two instants mean from here on:
--   webhook_lanes.due_at  when the first of the lane's pending deliveries is due; or when the lane was given back, if that is
--                         later: from then on it waits in line for its next turn
--   messages.rank_at      the place in line, at most 25 seconds after due_at; just that once the message was tried. So what
--                         is ranked later than 25 seconds from now is not due, and nobody reads further.
