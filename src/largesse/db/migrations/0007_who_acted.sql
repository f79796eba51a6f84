-- Which API key acted, and from which network address; both null for what was done before this was stored. Keys are never
-- deleted from their table, so that an id always has its name. No foreign keys, for the reason 0001 gives.
ALTER TABLE orders ADD COLUMN api_key_id integer, ADD COLUMN address inet;
ALTER TABLE code_readings ADD COLUMN api_key_id integer, ADD COLUMN address inet;

-- What was done with an order after it was placed: `cancel` voided codes of it, `resend` sent a recipient's mail once more
-- (`message_id`).
CREATE TABLE order_acts (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id           integer NOT NULL,
    act                text NOT NULL CHECK (act IN ('cancel', 'resend')),
    message_id         bigint,
    service_account_id integer NOT NULL,
    api_key_id         integer NOT NULL,
    address            inet,
    acted_at           timestamptz NOT NULL,
    CHECK ((act = 'resend') = (message_id IS NOT NULL))
);
CREATE INDEX order_acts_order ON order_acts (order_id);
