-- Claim-by dates: what nobody has claimed of an order by then is cancelled by the worker, and refunded. An order without one has no row.
--   claim_by   the instant; it can only be moved to a later one, before it has passed
--   due_at     when the worker next has something to do with the order; null once nothing is left to do
CREATE TABLE follow_ups (
    customer_id integer NOT NULL,
    order_id    integer NOT NULL,
    environment text NOT NULL,
    claim_by    timestamptz,
    due_at      timestamptz,
    PRIMARY KEY (customer_id, order_id)
);
CREATE INDEX follow_ups_due ON follow_ups (due_at) WHERE due_at IS NOT NULL;

-- What a customer's orders are followed up by where they say nothing themselves, as JSON: orders placed in the web application, and through
-- the API only if the customer says so. Null: nothing.
ALTER TABLE customers ADD COLUMN follow_up jsonb;

-- A line that was cancelled as nobody had claimed it by the claim-by date has `lapsed` beside `cancelled`.
ALTER TABLE line_events
    DROP CONSTRAINT line_events_event_check,
    ADD CONSTRAINT line_events_event_check
        CHECK (event IN ('opened', 'claimed', 'chosen', 'fulfilled', 'expired', 'cancelled', 'lapsed'));

-- That the claim-by date of an order was moved: `due_at` is the new one, and `was_due_at` the one before.
ALTER TABLE order_acts
    DROP CONSTRAINT order_acts_act_check,
    ADD CONSTRAINT order_acts_act_check CHECK (act IN ('cancel', 'resend', 'correct', 'schedule', 'extend'));

-- As before (0057), and the customer's defaults for its orders of the API.
DROP FUNCTION callers(bytea[], text);
CREATE FUNCTION callers(hashes bytea[], wanted_environment text)
RETURNS TABLE (hash bytea, key_id integer, environment text, customer_id integer, customer_name text, plan text, funding text,
               service_account_id integer, service_account_name text, active boolean, scopes text[], networks cidr[], limits jsonb,
               collections_version bigint, follow_up jsonb)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT k.hash, k.id, k.environment, c.id, c.name, c.plan, c.funding, s.id, s.name, s.active, k.scopes, k.networks, s.limits,
               coalesce((SELECT v.version FROM collection_versions v WHERE v.customer_id = k.customer_id), 0), c.follow_up
        FROM api_keys k
        JOIN customers c ON c.id = k.customer_id
        JOIN service_accounts s ON s.id = k.service_account_id
        WHERE k.hash = ANY (hashes) AND k.environment = wanted_environment;
END $$;
