-- Where the vouchers of a product come from, in the order in which it is asked: `stock` or names of suppliers.
ALTER TABLE products ADD COLUMN suppliers text[] NOT NULL DEFAULT '{stock}'
    CONSTRAINT products_suppliers_check CHECK (cardinality(suppliers) BETWEEN 1 AND 10);

-- What a supplier is asked for: one voucher for one line. The `order` call of a row is made at most once, so that nothing is bought twice under a
-- `supplier_order_id`; a new attempt is a new row. Suppliers serve production alone. The states:
--   new         the order call was not made, or certainly did not arrive
--   asked       the order call was made, and its answer is not known
--   pending     the supplier has the order and will deliver
--   cancelling  it took too long, and the supplier is asked to cancel it
--   delivered   its voucher is the line's
--   refused     the supplier has refused it for good, or could not be reached
--   lost        the supplier does not have the order
--   cancelled   the supplier has cancelled it
--   late        the supplier has it after all, and is asked to cancel it
--   returned    it was late, and the supplier has cancelled it
--   kept        it was late and could not be cancelled: its voucher is in the stock
-- The first four are open: a line has one such row at most. `lost` and `cancelled` are looked at a few times more, for a late answer.
-- `failures` counts calls in a row without a clear answer, and in `lost` and `cancelled` how often it was looked at again.
CREATE SEQUENCE supplier_orders_id_seq;
CREATE TABLE supplier_orders (
    customer_id       integer NOT NULL,
    id                bigint NOT NULL DEFAULT nextval('supplier_orders_id_seq'),
    environment       text NOT NULL DEFAULT 'production' CHECK (environment = 'production'),
    order_id          integer NOT NULL,
    number            integer NOT NULL,
    supplier          text NOT NULL,
    attempt           integer NOT NULL CHECK (attempt > 0),
    supplier_order_id uuid NOT NULL,
    product_id        integer NOT NULL,
    value_minor       bigint NOT NULL CHECK (value_minor > 0),
    state             text NOT NULL DEFAULT 'new' CHECK (state IN (
        'new', 'asked', 'pending', 'cancelling', 'delivered', 'refused', 'lost', 'cancelled', 'late', 'returned', 'kept')),
    reason            text,
    cost_minor        bigint CHECK (cost_minor >= 0),
    cost_currency     text,
    created_at        timestamptz NOT NULL,
    asked_at          timestamptz,
    ended_at          timestamptz,
    due_at            timestamptz NOT NULL,
    leased_until      timestamptz NOT NULL DEFAULT '-infinity',
    fence             bigint NOT NULL DEFAULT 0,
    failures          integer NOT NULL DEFAULT 0,
    PRIMARY KEY (customer_id, id),
    UNIQUE (customer_id, order_id, number, supplier, attempt),
    UNIQUE (customer_id, supplier_order_id),
    CHECK ((cost_minor IS NULL) = (cost_currency IS NULL)),
    CHECK ((ended_at IS NULL) = (state IN ('new', 'asked', 'pending', 'cancelling')))
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX supplier_orders_open ON supplier_orders (customer_id, order_id, number)
    WHERE state IN ('new', 'asked', 'pending', 'cancelling');
CREATE UNIQUE INDEX supplier_orders_delivered ON supplier_orders (customer_id, order_id, number) WHERE state = 'delivered';
CREATE INDEX supplier_orders_due ON supplier_orders (supplier, due_at) WHERE due_at < 'infinity';
CREATE INDEX supplier_orders_newest ON supplier_orders (id);

-- What was bought of a product from a supplier on a day in UTC, and what it cost in the currency the supplier says; '' where it says none.
--   bought       vouchers that went to lines, worth `value_minor` of the product's currency together
--   kept         late vouchers that are in the stock
--   cost_minor   of both
CREATE TABLE supplier_costs (
    supplier    text NOT NULL,
    product_id  integer NOT NULL,
    currency    text NOT NULL,
    day         date NOT NULL,
    bought      bigint NOT NULL,
    kept        bigint NOT NULL,
    value_minor bigint NOT NULL,
    cost_minor  bigint NOT NULL,
    PRIMARY KEY (supplier, product_id, currency, day)
);
