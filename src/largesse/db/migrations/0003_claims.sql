-- The recipient's side: the states of a line once it is placed. A statement that moves a line holds the row lock of its row in
-- `lines`, so that a claim and a cancellation of one line never both happen. Nothing here is written when an order is placed.
-- No foreign keys to orders and lines, for the reason 0001 gives.

-- How far a line has come. A line without a row is `issued`: nobody has claimed it. The states, which only move forwards
-- (largesse.codes.states has the same table of moves):
--   claimed    a recipient has claimed it, and has yet to choose among the products of a collection
--   chosen     the product is settled; it waits for a voucher number, an address or a parcel
--   fulfilled  the voucher number is the recipient's, or the parcel is on its way
--   expired    its time ran out while the recipient still had something to do
--   cancelled  the customer took it back before anyone claimed it, and was refunded
-- `product_id` is the product once it is settled. `sealed_email` is an address the recipient left, for lines without one.
CREATE TABLE line_states (
    order_id     integer NOT NULL,
    number       integer NOT NULL,
    state        text NOT NULL CHECK (state IN ('claimed', 'chosen', 'fulfilled', 'expired', 'cancelled')),
    claimed_at   timestamptz,
    expires_at   timestamptz,
    product_id   integer,
    language     text,
    sealed_email bytea,
    PRIMARY KEY (order_id, number),
    CHECK ((state = 'cancelled') = (claimed_at IS NULL)),
    CHECK (state NOT IN ('chosen', 'fulfilled') OR product_id IS NOT NULL)
) WITH (fillfactor = 80);
CREATE INDEX line_states_expiring ON line_states (expires_at)
    WHERE state IN ('claimed', 'chosen') AND expires_at IS NOT NULL;

CREATE FUNCTION refuse_backwards() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.state = OLD.state OR (OLD.state, NEW.state) IN (
            ('claimed', 'chosen'), ('claimed', 'expired'), ('chosen', 'fulfilled'), ('chosen', 'expired'))) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a line moves only forwards: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER line_states_forwards BEFORE UPDATE OF state OR DELETE ON line_states
    FOR EACH ROW EXECUTE FUNCTION refuse_backwards();

-- When what happened to a line, each at most once: its moves, and `opened`, the first thing a person did with its link.
CREATE TABLE line_events (
    order_id integer NOT NULL,
    number   integer NOT NULL,
    event    text NOT NULL CHECK (event IN ('opened', 'claimed', 'chosen', 'fulfilled', 'expired', 'cancelled')),
    at       timestamptz NOT NULL,
    PRIMARY KEY (order_id, number, event)
);

-- The stock of voucher numbers, and who got which. `sealed` holds the number and what belongs to it; `lookup` is a keyed
-- hash of product and number, by which a second copy is refused. Numbers of the test issuer are born handed out.
CREATE TABLE vouchers (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id  integer NOT NULL REFERENCES products,
    value_minor bigint NOT NULL CHECK (value_minor > 0),
    lookup      bigint NOT NULL UNIQUE,
    sealed      bytea NOT NULL,
    is_test     boolean NOT NULL DEFAULT false,
    added_at    timestamptz NOT NULL,
    order_id    integer,
    number      integer,
    handed_at   timestamptz,
    CHECK ((order_id IS NULL) = (number IS NULL) AND (order_id IS NULL) = (handed_at IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX vouchers_free ON vouchers (product_id, value_minor, id) WHERE order_id IS NULL;
CREATE UNIQUE INDEX vouchers_line ON vouchers (order_id, number) WHERE order_id IS NOT NULL;

-- Lines that found the stock empty, served by `id` within a product and value.
CREATE TABLE voucher_waits (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    product_id  integer NOT NULL,
    value_minor bigint NOT NULL,
    order_id    integer NOT NULL,
    number      integer NOT NULL,
    since       timestamptz NOT NULL,
    UNIQUE (order_id, number)
);
CREATE INDEX voucher_waits_next ON voucher_waits (product_id, value_minor, since, id);

-- Parcels: one for each line of a physical gift whose recipient gave an address.
CREATE TABLE shipments (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id        integer NOT NULL,
    number          integer NOT NULL,
    environment     text NOT NULL CHECK (environment IN ('production', 'staging')),
    product_id      integer NOT NULL,
    country         text NOT NULL,
    sealed_address  bytea NOT NULL,
    requested_at    timestamptz NOT NULL,
    exported_at     timestamptz,
    shipped_at      timestamptz,
    carrier         text,
    tracking_number text,
    UNIQUE (order_id, number),
    CHECK ((shipped_at IS NULL) = (carrier IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX shipments_open ON shipments (environment, id) WHERE shipped_at IS NULL;

-- Mail that fulfilment makes due goes out as the orders' mail does. A notice is of one line, and its number is its edition:
--   gift           the order's own mail
--   voucher_ready  the voucher that a line waited for is there
--   shipped        the parcel is on its way
-- A message whose lines were all cancelled before it left is `cancelled`.
ALTER TABLE messages
    ADD COLUMN kind text NOT NULL DEFAULT 'gift' CHECK (kind IN ('gift', 'voucher_ready', 'shipped')),
    DROP CONSTRAINT messages_order_id_email_edition_key,
    ADD CONSTRAINT messages_once UNIQUE (order_id, email, kind, edition),
    DROP CONSTRAINT messages_state_check,
    ADD CONSTRAINT messages_state_check
        CHECK (state IN ('pending', 'sent', 'captured', 'bounced', 'exhausted', 'cancelled'));

-- Wrong PINs in a row of a code, and the pause they led to. `key` is the code's look-up number. Guesses at codes that do
-- not exist are written too, so that they take as long, but share a bounded number of rows (`decoy`).
CREATE TABLE pin_failures (
    decoy        boolean NOT NULL,
    key          bigint NOT NULL,
    failures     smallint NOT NULL,
    pauses       smallint NOT NULL,
    paused_until timestamptz NOT NULL,
    last_at      timestamptz NOT NULL,
    PRIMARY KEY (decoy, key)
) WITH (fillfactor = 50);

-- How many wrong answers a network address may still give; it refills with time. `address` is a keyed hash.
CREATE TABLE claim_addresses (
    address   bigint PRIMARY KEY,
    allowance double precision NOT NULL,
    last_at   timestamptz NOT NULL
) WITH (fillfactor = 50);
