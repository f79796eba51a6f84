-- Every row that an order fills names its customer, and primary and unique keys begin with it: so that the database can hold
-- customers apart, row by row, and so that a customer's rows can lie together, in a partition or on a node of their own.
--
-- Each table is written anew once, with its keys. A row whose parent is missing, which `largesse verify` tells, gets customer 0.
-- Processes of earlier releases cannot write to these tables afterwards.

-- For the time of this migration, and immutable as long: the value of a generated column, which is then none any more.
CREATE FUNCTION customer_of_order(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce((SELECT customer_id FROM orders WHERE id = $1), 0);
END $$;
CREATE FUNCTION customer_of_account(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce((SELECT customer_id FROM accounts WHERE id = $1), 0);
END $$;
CREATE FUNCTION customer_of_message(bigint) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce((SELECT customer_of_order(order_id) FROM messages WHERE id = $1), 0);
END $$;
CREATE FUNCTION customer_of_subscription(uuid) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce((SELECT customer_id FROM webhook_subscriptions WHERE id = $1), 0);
END $$;
-- Subscriptions are deleted before their deliveries. A sample tells whom it was made for.
CREATE FUNCTION customer_of_delivery(uuid, bigint, bytea) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce(
        (SELECT customer_id FROM webhook_subscriptions WHERE id = $1),
        (SELECT customer_id FROM events WHERE id = $2),
        substring(convert_from($3, 'UTF8') FROM '"customerId": ?([0-9]{1,9})')::integer,
        0);
END $$;
CREATE FUNCTION customer_of_attempt(bigint) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN coalesce((SELECT customer_of_delivery(subscription_id, event_id, sample) FROM deliveries WHERE id = $1), 0);
END $$;

-- Lines, and their states.
DROP INDEX lines_code_lookup;
ALTER TABLE lines
    DROP CONSTRAINT lines_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT lines_pkey PRIMARY KEY (customer_id, order_id, number);
ALTER TABLE lines ALTER COLUMN customer_id DROP EXPRESSION;
-- A code is typed before its customer is known.
CREATE UNIQUE INDEX lines_code_lookup ON lines (code_lookup, customer_id);

ALTER TABLE line_states
    DROP CONSTRAINT line_states_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT line_states_pkey PRIMARY KEY (customer_id, order_id, number);
ALTER TABLE line_states ALTER COLUMN customer_id DROP EXPRESSION;

ALTER TABLE line_events
    DROP CONSTRAINT line_events_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT line_events_pkey PRIMARY KEY (customer_id, order_id, number, event);
ALTER TABLE line_events ALTER COLUMN customer_id DROP EXPRESSION;

-- What fulfilment writes. A voucher has no customer until it is handed out.
DROP INDEX vouchers_line;
ALTER TABLE vouchers
    ADD COLUMN customer_id integer
        GENERATED ALWAYS AS (CASE WHEN order_id IS NOT NULL THEN customer_of_order(order_id) END) STORED,
    ADD CONSTRAINT vouchers_customer_check CHECK ((order_id IS NULL) = (customer_id IS NULL));
ALTER TABLE vouchers ALTER COLUMN customer_id DROP EXPRESSION;
CREATE UNIQUE INDEX vouchers_line ON vouchers (customer_id, order_id, number) WHERE order_id IS NOT NULL;

ALTER TABLE voucher_waits
    DROP CONSTRAINT voucher_waits_pkey,
    DROP CONSTRAINT voucher_waits_order_id_number_key,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT voucher_waits_pkey PRIMARY KEY (customer_id, id),
    ADD CONSTRAINT voucher_waits_line UNIQUE (customer_id, order_id, number);
ALTER TABLE voucher_waits ALTER COLUMN customer_id DROP EXPRESSION;

ALTER TABLE shipments
    DROP CONSTRAINT shipments_pkey,
    DROP CONSTRAINT shipments_order_id_number_key,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT shipments_pkey PRIMARY KEY (customer_id, id),
    ADD CONSTRAINT shipments_line UNIQUE (customer_id, order_id, number);
ALTER TABLE shipments ALTER COLUMN customer_id DROP EXPRESSION;
-- Who packs them gives the number of a parcel back, and nothing else.
CREATE INDEX shipments_number ON shipments (id);

-- The ledger. Accounts come after what asks them for their customers.
ALTER TABLE account_service_accounts
    DROP CONSTRAINT account_service_accounts_account_id_fkey,
    DROP CONSTRAINT account_service_accounts_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_account(account_id)) STORED,
    ADD CONSTRAINT account_service_accounts_pkey PRIMARY KEY (customer_id, account_id, service_account_id);
ALTER TABLE account_service_accounts ALTER COLUMN customer_id DROP EXPRESSION;

DROP INDEX entries_reference;
ALTER TABLE entries
    DROP CONSTRAINT entries_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_account(account_id)) STORED,
    ADD CONSTRAINT entries_pkey PRIMARY KEY (customer_id, account_id, id);
ALTER TABLE entries ALTER COLUMN customer_id DROP EXPRESSION;
CREATE UNIQUE INDEX entries_reference ON entries (customer_id, account_id, reference) WHERE reference IS NOT NULL;

ALTER TABLE top_ups DROP CONSTRAINT top_ups_account_id_fkey;
ALTER TABLE accounts
    DROP CONSTRAINT accounts_pkey,
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (customer_id, id);
ALTER TABLE top_ups
    ADD CONSTRAINT top_ups_account_fkey FOREIGN KEY (customer_id, account_id) REFERENCES accounts (customer_id, id);
ALTER TABLE account_service_accounts
    ADD CONSTRAINT account_service_accounts_account_fkey
        FOREIGN KEY (customer_id, account_id) REFERENCES accounts (customer_id, id);

-- What was done with orders.
DROP INDEX code_readings_order;
ALTER TABLE code_readings
    DROP CONSTRAINT code_readings_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT code_readings_pkey PRIMARY KEY (customer_id, id);
ALTER TABLE code_readings ALTER COLUMN customer_id DROP EXPRESSION;
CREATE INDEX code_readings_order ON code_readings (customer_id, order_id);

DROP INDEX order_acts_order;
ALTER TABLE order_acts
    DROP CONSTRAINT order_acts_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT order_acts_pkey PRIMARY KEY (customer_id, id);
ALTER TABLE order_acts ALTER COLUMN customer_id DROP EXPRESSION;
CREATE INDEX order_acts_order ON order_acts (customer_id, order_id);

-- Mail.
ALTER TABLE captured_mail
    DROP CONSTRAINT captured_mail_pkey,
    DROP CONSTRAINT captured_mail_message_id_key,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_message(message_id)) STORED,
    ADD CONSTRAINT captured_mail_pkey PRIMARY KEY (customer_id, id),
    ADD CONSTRAINT captured_mail_message UNIQUE (customer_id, message_id);
ALTER TABLE captured_mail ALTER COLUMN customer_id DROP EXPRESSION;

ALTER TABLE messages
    DROP CONSTRAINT messages_pkey,
    DROP CONSTRAINT messages_once,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT messages_pkey PRIMARY KEY (customer_id, id),
    ADD CONSTRAINT messages_once UNIQUE (customer_id, order_id, email, kind, edition);
ALTER TABLE messages ALTER COLUMN customer_id DROP EXPRESSION;

ALTER TABLE mail_jobs
    DROP CONSTRAINT mail_jobs_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_order(order_id)) STORED,
    ADD CONSTRAINT mail_jobs_pkey PRIMARY KEY (customer_id, order_id);
ALTER TABLE mail_jobs ALTER COLUMN customer_id DROP EXPRESSION;

-- Webhooks: attempts before deliveries, those before events and subscriptions.
ALTER TABLE delivery_attempts
    DROP CONSTRAINT delivery_attempts_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_attempt(delivery_id)) STORED,
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (customer_id, delivery_id, number);
ALTER TABLE delivery_attempts ALTER COLUMN customer_id DROP EXPRESSION;

ALTER TABLE deliveries
    DROP CONSTRAINT deliveries_pkey,
    ADD COLUMN customer_id integer NOT NULL
        GENERATED ALWAYS AS (customer_of_delivery(subscription_id, event_id, sample)) STORED,
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (customer_id, id);
ALTER TABLE deliveries ALTER COLUMN customer_id DROP EXPRESSION;

ALTER TABLE subscription_queues
    DROP CONSTRAINT subscription_queues_subscription_id_fkey,
    DROP CONSTRAINT subscription_queues_pkey,
    ADD COLUMN customer_id integer NOT NULL GENERATED ALWAYS AS (customer_of_subscription(subscription_id)) STORED,
    ADD CONSTRAINT subscription_queues_pkey PRIMARY KEY (customer_id, subscription_id);
ALTER TABLE subscription_queues ALTER COLUMN customer_id DROP EXPRESSION;

ALTER TABLE webhook_subscriptions
    DROP CONSTRAINT webhook_subscriptions_pkey,
    ADD CONSTRAINT webhook_subscriptions_pkey PRIMARY KEY (customer_id, id);
ALTER TABLE subscription_queues
    ADD CONSTRAINT subscription_queues_subscription_fkey FOREIGN KEY (customer_id, subscription_id)
        REFERENCES webhook_subscriptions (customer_id, id) ON DELETE CASCADE;

ALTER TABLE events
    DROP CONSTRAINT events_pkey,
    ADD CONSTRAINT events_pkey PRIMARY KEY (customer_id, id);

-- Orders, last: all others asked them for their customers.
DROP INDEX orders_reference, orders_external_reference;
ALTER TABLE orders
    DROP CONSTRAINT orders_pkey,
    ADD CONSTRAINT orders_pkey PRIMARY KEY (customer_id, id);
CREATE UNIQUE INDEX orders_reference ON orders (customer_id, reference);
CREATE UNIQUE INDEX orders_external_reference ON orders (customer_id, environment, external_reference)
    WHERE external_reference IS NOT NULL;

DROP FUNCTION customer_of_attempt(bigint);
DROP FUNCTION customer_of_delivery(uuid, bigint, bytea);
DROP FUNCTION customer_of_subscription(uuid);
DROP FUNCTION customer_of_message(bigint);
DROP FUNCTION customer_of_account(integer);
DROP FUNCTION customer_of_order(integer);

-- Ids come from sequences of their own, which go on where they were: a table that is spread has no identity columns.
DO $$
DECLARE
    filled text;
    sequence text;
    last bigint;
    used boolean;
BEGIN
    FOREACH filled IN ARRAY ARRAY['accounts', 'captured_mail', 'code_readings', 'deliveries', 'entries', 'events', 'messages',
                                  'order_acts', 'shipments', 'voucher_waits', 'vouchers'] LOOP
        sequence := filled || '_id_seq';
        EXECUTE format('SELECT last_value, is_called FROM %s', pg_get_serial_sequence(filled, 'id')) INTO last, used;
        EXECUTE format('ALTER TABLE %I ALTER COLUMN id DROP IDENTITY', filled);
        EXECUTE format('CREATE SEQUENCE %I AS %s', sequence, CASE filled WHEN 'accounts' THEN 'integer' ELSE 'bigint' END);
        PERFORM setval(sequence::regclass, last, used);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN id SET DEFAULT nextval(%L)', filled, sequence);
    END LOOP;
END $$;
ALTER SEQUENCE orders_id_seq OWNED BY NONE;

-- Nobody has figures of the new columns yet. A database that is still empty is left to grow first.
DO $$
BEGIN
    IF EXISTS (SELECT FROM orders) THEN
        ANALYZE orders, lines, line_states, line_events, entries, accounts, events, mail_jobs, messages, deliveries,
                delivery_attempts, subscription_queues, captured_mail, code_readings, order_acts, vouchers,
                voucher_waits, shipments;
    END IF;
END $$;
