-- What a person did in the web application has no service account and no API key, but their `user_id`. The checks are of rows from
-- here on: those there are were all written for a service account.
ALTER TABLE orders ADD COLUMN user_id integer, ALTER COLUMN service_account_id DROP NOT NULL;
ALTER TABLE code_readings ADD COLUMN user_id integer, ALTER COLUMN service_account_id DROP NOT NULL;
ALTER TABLE order_acts ADD COLUMN user_id integer, ALTER COLUMN service_account_id DROP NOT NULL,
    ALTER COLUMN api_key_id DROP NOT NULL;
ALTER TABLE orders ADD CONSTRAINT orders_by_somebody
    CHECK ((service_account_id IS NULL) <> (user_id IS NULL)) NOT VALID;
