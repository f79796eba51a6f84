-- The first schema. Amounts are whole minor units of their currency; instants are UTC.
--
-- Foreign keys hold everything an operator edits. The append-only tables that each order
-- fills (orders, lines, entries, events, mail_jobs) carry none: their parents are never
-- deleted, and a key check per row would lock the same hot parent rows in every order.
-- `largesse verify` audits those references instead (docs/decisions/0006-no-foreign-keys-on-hot-tables.md).

-- Which currencies exist. `id` is the ISO 4217 numeric code.
CREATE TABLE currencies (
    id   smallint PRIMARY KEY,
    code text NOT NULL UNIQUE CHECK (code ~ '^[A-Z]{3}$')
);

INSERT INTO currencies (id, code) VALUES
    (8, 'ALL'), (12, 'DZD'), (32, 'ARS'), (36, 'AUD'), (44, 'BSD'), (48, 'BHD'), (50, 'BDT'), (51, 'AMD'),
    (52, 'BBD'), (60, 'BMD'), (64, 'BTN'), (68, 'BOB'), (72, 'BWP'), (84, 'BZD'), (90, 'SBD'), (96, 'BND'),
    (104, 'MMK'), (108, 'BIF'), (116, 'KHR'), (124, 'CAD'), (132, 'CVE'), (136, 'KYD'), (144, 'LKR'),
    (152, 'CLP'), (156, 'CNY'), (170, 'COP'), (174, 'KMF'), (188, 'CRC'), (192, 'CUP'), (203, 'CZK'),
    (208, 'DKK'), (214, 'DOP'), (222, 'SVC'), (230, 'ETB'), (232, 'ERN'), (238, 'FKP'), (242, 'FJD'),
    (262, 'DJF'), (270, 'GMD'), (292, 'GIP'), (320, 'GTQ'), (324, 'GNF'), (328, 'GYD'), (332, 'HTG'),
    (340, 'HNL'), (344, 'HKD'), (348, 'HUF'), (352, 'ISK'), (356, 'INR'), (360, 'IDR'), (364, 'IRR'),
    (368, 'IQD'), (376, 'ILS'), (388, 'JMD'), (392, 'JPY'), (396, 'XAD'), (398, 'KZT'), (400, 'JOD'),
    (404, 'KES'), (408, 'KPW'), (410, 'KRW'), (414, 'KWD'), (417, 'KGS'), (418, 'LAK'), (422, 'LBP'),
    (426, 'LSL'), (430, 'LRD'), (434, 'LYD'), (446, 'MOP'), (454, 'MWK'), (458, 'MYR'), (462, 'MVR'),
    (480, 'MUR'), (484, 'MXN'), (496, 'MNT'), (498, 'MDL'), (504, 'MAD'), (512, 'OMR'), (516, 'NAD'),
    (524, 'NPR'), (532, 'XCG'), (533, 'AWG'), (548, 'VUV'), (554, 'NZD'), (558, 'NIO'), (566, 'NGN'),
    (578, 'NOK'), (586, 'PKR'), (590, 'PAB'), (598, 'PGK'), (600, 'PYG'), (604, 'PEN'), (608, 'PHP'),
    (634, 'QAR'), (643, 'RUB'), (646, 'RWF'), (654, 'SHP'), (682, 'SAR'), (690, 'SCR'), (702, 'SGD'),
    (704, 'VND'), (706, 'SOS'), (710, 'ZAR'), (728, 'SSP'), (748, 'SZL'), (752, 'SEK'), (756, 'CHF'),
    (760, 'SYP'), (764, 'THB'), (776, 'TOP'), (780, 'TTD'), (784, 'AED'), (788, 'TND'), (800, 'UGX'),
    (807, 'MKD'), (818, 'EGP'), (826, 'GBP'), (834, 'TZS'), (840, 'USD'), (858, 'UYU'), (860, 'UZS'),
    (882, 'WST'), (886, 'YER'), (901, 'TWD'), (924, 'ZWG'), (925, 'SLE'), (926, 'VED'), (928, 'VES'),
    (929, 'MRU'), (930, 'STN'), (933, 'BYN'), (934, 'TMT'), (936, 'GHS'), (938, 'SDG'), (941, 'RSD'),
    (943, 'MZN'), (944, 'AZN'), (946, 'RON'), (949, 'TRY'), (950, 'XAF'), (951, 'XCD'), (952, 'XOF'),
    (953, 'XPF'), (967, 'ZMW'), (968, 'SRD'), (969, 'MGA'), (971, 'AFN'), (972, 'TJS'), (973, 'AOA'),
    (976, 'CDF'), (977, 'BAM'), (978, 'EUR'), (980, 'UAH'), (981, 'GEL'), (985, 'PLN'), (986, 'BRL');

-- Who buys. `funding` says whether orders are paid from a topped-up balance or invoiced.
CREATE TABLE customers (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        text NOT NULL UNIQUE,
    name       text NOT NULL,
    plan       text NOT NULL CHECK (plan IN ('starter', 'pro', 'enterprise')),
    funding    text NOT NULL CHECK (funding IN ('balance', 'invoiced')),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- The people of a customer.
CREATE TABLE users (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id   integer NOT NULL REFERENCES customers,
    email         text NOT NULL,
    name          text NOT NULL,
    role          text NOT NULL CHECK (role IN ('admin', 'member')),
    is_active     boolean NOT NULL DEFAULT true,
    created_at    timestamptz NOT NULL DEFAULT now(),
    last_login_at timestamptz
);
CREATE UNIQUE INDEX users_email ON users (customer_id, lower(email));

-- Who the API acts as.
CREATE TABLE service_accounts (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id integer NOT NULL REFERENCES customers,
    key         text NOT NULL,
    name        text NOT NULL,
    active      boolean NOT NULL DEFAULT true,
    created_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (customer_id, key)
);

-- API keys: only the SHA-256 of the secret is here, never the secret.
CREATE TABLE api_keys (
    id                 integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id        integer NOT NULL REFERENCES customers,
    service_account_id integer NOT NULL REFERENCES service_accounts,
    key                text NOT NULL,
    environment        text NOT NULL CHECK (environment IN ('production', 'staging')),
    hash               bytea NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at         timestamptz NOT NULL DEFAULT now(),
    last_seen_at       timestamptz,
    UNIQUE (customer_id, key)
) WITH (fillfactor = 70);

-- Counts the changes of the catalogue: a serving process compares it with its snapshot's.
CREATE TABLE catalogue_version (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint NOT NULL DEFAULT 1
);
INSERT INTO catalogue_version DEFAULT VALUES;

-- One gift. Digital: `denominations_minor`, or `min_amount_minor` to `max_amount_minor`, sold in `countries`.
-- Physical: `cost_minor` marked up, with postage (minor units) and VAT (percent) by country, sold where postage is known.
-- `customer_ids` null: sold to all, otherwise to these customers alone.
CREATE TABLE products (
    id                  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key                 text NOT NULL UNIQUE,
    name                text NOT NULL,
    is_digital          boolean NOT NULL,
    currency            text NOT NULL REFERENCES currencies (code),
    countries           text[] NOT NULL DEFAULT '{}',
    denominations_minor bigint[] NOT NULL DEFAULT '{}',
    min_amount_minor    bigint,
    max_amount_minor    bigint,
    cost_minor          bigint,
    markup_percent      numeric,
    postage_minor       jsonb NOT NULL DEFAULT '{}',
    vat_percent         jsonb NOT NULL DEFAULT '{}',
    customer_ids        integer[],
    active              boolean NOT NULL DEFAULT true,
    CHECK (0 < ALL (denominations_minor)),
    CHECK ((min_amount_minor IS NULL) = (max_amount_minor IS NULL)),
    CHECK (min_amount_minor > 0 AND max_amount_minor >= min_amount_minor),
    CHECK (markup_percent >= 0),
    CHECK (CASE WHEN is_digital THEN cardinality(denominations_minor) > 0 OR min_amount_minor IS NOT NULL
                ELSE cost_minor IS NOT NULL AND cost_minor > 0 END)
);

-- What a recipient chooses from. Curated (`customer_id` null): sent at one of its value points, or at any amount
-- where `allow_custom_value`. Custom: one customer's own, of one fixed value.
CREATE TABLE collections (
    id                 integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key                text NOT NULL UNIQUE,
    customer_id        integer REFERENCES customers,
    name               text NOT NULL,
    country            text NOT NULL,
    currency           text NOT NULL REFERENCES currencies (code),
    value_minor        bigint CHECK (value_minor > 0),
    value_points_minor bigint[] NOT NULL DEFAULT '{}',
    allow_custom_value boolean NOT NULL DEFAULT false,
    product_ids        integer[] NOT NULL,
    active             boolean NOT NULL DEFAULT true,
    CHECK ((customer_id IS NULL) = (value_minor IS NULL)),
    CHECK (0 < ALL (value_points_minor))
);

CREATE FUNCTION catalogue_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE catalogue_version SET version = version + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER catalogue_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON products
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_changed();
CREATE TRIGGER catalogue_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON collections
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_changed();

-- Saved send presets. The gift may have been deleted since, so its id is no foreign key; its name is stored.
CREATE TABLE templates (
    id                integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id       integer NOT NULL REFERENCES customers,
    key               text NOT NULL,
    name              text,
    product_id        integer,
    collection_id     integer,
    gift_name         text NOT NULL,
    value_minor       bigint NOT NULL CHECK (value_minor > 0),
    currency          text NOT NULL REFERENCES currencies (code),
    country           text,
    wrapping_key      text,
    from_name         text,
    message           text,
    expiry_after_days integer CHECK (expiry_after_days > 0),
    created_at        timestamptz NOT NULL DEFAULT now(),
    UNIQUE (customer_id, key),
    CHECK ((product_id IS NULL) <> (collection_id IS NULL))
);
CREATE INDEX templates_newest ON templates (customer_id, id);

-- The ledger's accounts. The kinds:
--   funding     what a customer may spend; never below zero
--   receivable  what an invoiced customer owes (negative: the sum of its orders)
--   sales       what a customer's orders came to
--   deposits    the other side of top-ups
-- Entries of one movement add up to zero, so the balances of one currency do too.
CREATE TABLE accounts (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id   integer NOT NULL REFERENCES customers,
    environment   text NOT NULL CHECK (environment IN ('production', 'staging')),
    kind          text NOT NULL CHECK (kind IN ('funding', 'receivable', 'sales', 'deposits')),
    key           text,
    name          text,
    is_master     boolean NOT NULL DEFAULT false,
    open_to_all   boolean NOT NULL DEFAULT false,
    currency      text NOT NULL REFERENCES currencies (code),
    balance_minor bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (customer_id, key),
    CHECK ((kind = 'funding') = (key IS NOT NULL)),
    CHECK ((kind = 'funding') = (name IS NOT NULL)),
    CONSTRAINT accounts_not_overdrawn CHECK (kind <> 'funding' OR balance_minor >= 0)
) WITH (fillfactor = 20);
CREATE UNIQUE INDEX accounts_own ON accounts (customer_id, environment, currency, kind) WHERE kind <> 'funding';

-- Which service accounts may draw from a funding account that is not open to all.
CREATE TABLE account_service_accounts (
    account_id         integer NOT NULL REFERENCES accounts,
    service_account_id integer NOT NULL REFERENCES service_accounts,
    PRIMARY KEY (account_id, service_account_id)
);

-- The journal: append-only, each entry with its account's balance after it. The entries of one movement share
-- `movement_id` and add up to zero. `reference` names a top-up; one reference credits an account once.
CREATE SEQUENCE movements_id_seq;
CREATE TABLE entries (
    account_id    integer NOT NULL,
    id            bigint GENERATED ALWAYS AS IDENTITY,
    movement_id   bigint NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('top_up', 'order', 'refund')),
    order_id      integer,
    amount_minor  bigint NOT NULL CHECK (amount_minor <> 0),
    balance_minor bigint NOT NULL,
    reference     text,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX entries_reference ON entries (account_id, reference) WHERE reference IS NOT NULL;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Placed orders. `value_minor` is the face value of one code, `total_minor` what was charged for all of them.
-- `account_id` is the funding account, null when invoiced.
CREATE TABLE orders (
    id                 integer PRIMARY KEY,
    reference          text COLLATE "C" NOT NULL,
    customer_id        integer NOT NULL,
    environment        text NOT NULL,
    service_account_id integer NOT NULL,
    source             text NOT NULL,
    external_reference text,
    gift_selection     text NOT NULL CHECK (gift_selection IN ('gift', 'gifts')),
    product_id         integer,
    collection_id      integer,
    template_id        integer,
    country            text NOT NULL,
    currency           text NOT NULL,
    value_minor        bigint NOT NULL CHECK (value_minor > 0),
    total_minor        bigint NOT NULL CHECK (total_minor > 0),
    code_count         integer NOT NULL CHECK (code_count BETWEEN 1 AND 5000),
    recipient_count    integer NOT NULL,
    delivery_mode      text NOT NULL CHECK (delivery_mode IN ('send', 'manual')),
    wrapping_key       text NOT NULL,
    from_name          text,
    message            text,
    scheduled_for      timestamptz,
    expiry_after_days  integer,
    account_id         integer,
    created_at         timestamptz NOT NULL
);
CREATE SEQUENCE orders_id_seq AS integer OWNED BY orders.id;
CREATE UNIQUE INDEX orders_reference ON orders (reference);
CREATE UNIQUE INDEX orders_external_reference ON orders (external_reference, customer_id, environment)
    WHERE external_reference IS NOT NULL;
-- Of expressions, so that the list of newest orders alone can be planned by it, and by nothing else. Before the first
-- ANALYZE the planner would look references up in it, reading all orders of a customer; where most orders are of one
-- customer it would look for another's few by walking the primary key down through them all.
CREATE INDEX orders_newest ON orders ((customer_id + 0), environment, (id + 0));

-- One row per code. `sealed` holds code and PIN; `code_lookup` is 64 bits of a keyed hash of the code.
-- `recipient_email` is null in a code batch.
CREATE TABLE lines (
    order_id        integer NOT NULL,
    number          integer NOT NULL,
    recipient_email text,
    recipient_name  text,
    code_lookup     bigint NOT NULL,
    sealed          bytea NOT NULL,
    PRIMARY KEY (order_id, number)
);
CREATE UNIQUE INDEX lines_code_lookup ON lines (code_lookup);

-- Each time codes were given out again after the order.
CREATE TABLE code_readings (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id           integer NOT NULL,
    service_account_id integer NOT NULL,
    read_at            timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX code_readings_order ON code_readings (order_id);

-- The outbox. An event's `body` is fixed when the order is placed. A worker turns events into webhook deliveries
-- and mail jobs into messages, and then sets `fanned_out_at`.
CREATE TABLE events (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id      integer NOT NULL,
    customer_id   integer NOT NULL,
    environment   text NOT NULL,
    event         text NOT NULL,
    body          bytea NOT NULL,
    created_at    timestamptz NOT NULL,
    fanned_out_at timestamptz
);
CREATE INDEX events_waiting ON events (id) WHERE fanned_out_at IS NULL;

CREATE TABLE mail_jobs (
    order_id      integer PRIMARY KEY,
    environment   text NOT NULL,
    due_at        timestamptz NOT NULL,
    fanned_out_at timestamptz
);
CREATE INDEX mail_jobs_waiting ON mail_jobs (due_at) WHERE fanned_out_at IS NULL;

-- Who hears of events. The signing secret is sealed.
CREATE TABLE webhook_subscriptions (
    id                 uuid PRIMARY KEY,
    customer_id        integer NOT NULL REFERENCES customers,
    environment        text NOT NULL CHECK (environment IN ('production', 'staging')),
    event              text NOT NULL,
    target_url         text NOT NULL,
    sealed_secret      bytea NOT NULL,
    service_account_id integer NOT NULL REFERENCES service_accounts,
    created_at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_subscriptions_customer ON webhook_subscriptions (customer_id, environment, created_at);
