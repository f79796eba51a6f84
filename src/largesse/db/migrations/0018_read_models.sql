-- Read models: what people list, search and add up. The worker derives them from orders and the states of their lines. Placing an order
-- writes nothing here, and everything can be rebuilt.

-- Orders that have changed since the read models last looked at them: placed, claimed, cancelled, their mail refused. Whoever looks
-- removes the row in the transaction in which the read models follow. `texts`: its names and texts have changed as well.
CREATE SEQUENCE order_changes_id_seq;
CREATE TABLE order_changes (
    customer_id integer NOT NULL,
    id          bigint NOT NULL DEFAULT nextval('order_changes_id_seq'),
    order_id    integer NOT NULL,
    texts       boolean NOT NULL DEFAULT false,
    changed_at  timestamptz NOT NULL,
    PRIMARY KEY (customer_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX order_changes_waiting ON order_changes (id);

-- What orders may have in common: each combination there is of what they are filtered and added up by. 0 stands for none: no
-- product where the gift is a collection, no account where the order was invoiced, no service account where a person placed it.
CREATE SEQUENCE report_groups_id_seq;
CREATE TABLE report_groups (
    customer_id        integer NOT NULL,
    id                 bigint NOT NULL DEFAULT nextval('report_groups_id_seq'),
    environment        text NOT NULL,
    currency           text NOT NULL,
    source             text COLLATE "C" NOT NULL,
    product_id         integer NOT NULL,
    collection_id      integer NOT NULL,
    account_id         integer NOT NULL,
    service_account_id integer NOT NULL,
    user_id            integer NOT NULL,
    PRIMARY KEY (customer_id, id),
    UNIQUE (customer_id, environment, currency, source, product_id, collection_id, account_id, service_account_id, user_id)
);

-- One row for each order. The states:
--   scheduled  its mail is to leave later
--   bounced    mail of it was refused, and codes of it are unclaimed
--   waiting    codes of it are unclaimed
--   claimed    every code was claimed, or cancelled
--   cancelled  every code was cancelled
-- `claimed` and `cancelled` are codes, the arrays how many of them on which days (UTC); `ages` how many were claimed within an hour of
-- having been sent, within a day, a week, 30 days, and later. Only this row says which part of it is in `report_sums`.
CREATE TABLE report_orders (
    customer_id   integer NOT NULL,
    order_id      integer NOT NULL,
    environment   text NOT NULL,
    group_id      bigint NOT NULL,
    state         text NOT NULL CHECK (state IN ('scheduled', 'bounced', 'waiting', 'claimed', 'cancelled')),
    created_at    timestamptz NOT NULL,
    codes         integer NOT NULL,
    spent_minor   bigint NOT NULL,
    claimed       integer NOT NULL,
    fulfilled     integer NOT NULL,
    expired       integer NOT NULL,
    cancelled     integer NOT NULL,
    bounced       integer NOT NULL,
    claim_days    date[] NOT NULL,
    claim_counts  integer[] NOT NULL,
    cancel_days   date[] NOT NULL,
    cancel_counts integer[] NOT NULL,
    ages          integer[] NOT NULL,
    PRIMARY KEY (customer_id, order_id)
) WITH (fillfactor = 90);
CREATE INDEX report_orders_newest ON report_orders (customer_id, environment, created_at, order_id);
CREATE INDEX report_orders_grouped ON report_orders (customer_id, group_id, state, created_at, order_id);

-- By which words an order is found: of its own reference, its sender and message, its recipients' names and addresses, and those whole.
CREATE TABLE report_words (
    customer_id integer NOT NULL,
    environment text NOT NULL,
    word        text COLLATE "C" NOT NULL,
    created_at  timestamptz NOT NULL,
    order_id    integer NOT NULL,
    PRIMARY KEY (customer_id, environment, word, created_at, order_id)
);

-- Sums of the orders of a group and state, by day and by month (`grain`; `day` is its first), in UTC. Orders, codes and what was spent
-- count on the day of the order, as do the ages; claims and cancellations on their own days.
CREATE TABLE report_sums (
    customer_id    integer NOT NULL,
    grain          text NOT NULL CHECK (grain IN ('day', 'month')),
    day            date NOT NULL,
    group_id       bigint NOT NULL,
    state          text NOT NULL,
    orders         bigint NOT NULL,
    codes          bigint NOT NULL,
    spent_minor    bigint  NOT NULL,
    claimed        bigint NOT NULL,
    claimed_minor  bigint  NOT NULL,
    cancelled      bigint NOT NULL,
    refunded_minor bigint  NOT NULL,
    within_hour    bigint NOT NULL,
    within_day     bigint NOT NULL,
    within_week    bigint NOT NULL,
    within_month   bigint NOT NULL,
    later          bigint NOT NULL,
    PRIMARY KEY (customer_id, grain, day, group_id, state)
) WITH (fillfactor = 70);

-- The orders there are: the worker takes them in.
INSERT INTO order_changes (customer_id, order_id, changed_at) SELECT customer_id, id, created_at FROM orders ORDER BY id;
