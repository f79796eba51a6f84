-- What a key may be used for, and from where; null: everything, and everywhere.
ALTER TABLE api_keys
    ADD COLUMN scopes text[]
        CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'send', 'codes', 'webhooks']),
    ADD COLUMN networks cidr[] CHECK (cardinality(networks) > 0);

-- What a service account may order, by currency: {"GBP": {"largest_order_minor": 10000, "daily_minor": 50000}}. Null: no limit.
ALTER TABLE service_accounts ADD COLUMN limits jsonb CHECK (jsonb_typeof(limits) = 'object');

-- What service accounts with a daily limit have ordered on their last day (UTC). Written and read under the lock of the customer's
-- sales account of that environment and currency, which every such order holds.
CREATE TABLE daily_spending (
    customer_id        integer NOT NULL,
    service_account_id integer NOT NULL,
    environment        text NOT NULL,
    currency           text NOT NULL,
    day                date NOT NULL,
    spent_minor        bigint NOT NULL CHECK (spent_minor > 0),
    PRIMARY KEY (customer_id, service_account_id, environment, currency)
) WITH (fillfactor = 50);
