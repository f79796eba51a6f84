-- What is stored goes by `clock_now()`: what was made, and what was done with it, by the same clock.
ALTER TABLE customers ALTER COLUMN created_at SET DEFAULT clock_now();
ALTER TABLE users ALTER COLUMN created_at SET DEFAULT clock_now();
ALTER TABLE service_accounts ALTER COLUMN created_at SET DEFAULT clock_now();
ALTER TABLE api_keys ALTER COLUMN created_at SET DEFAULT clock_now();
ALTER TABLE templates ALTER COLUMN created_at SET DEFAULT clock_now();
ALTER TABLE accounts ALTER COLUMN created_at SET DEFAULT clock_now();
ALTER TABLE webhook_subscriptions ALTER COLUMN created_at SET DEFAULT clock_now();
ALTER TABLE code_readings ALTER COLUMN read_at SET DEFAULT clock_now();
