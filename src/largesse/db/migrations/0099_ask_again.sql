-- Outside a transaction
-- When suppliers are asked again for a line that waits for stock; null if they are not. Lines that waited before this migration are due at once.
ALTER TABLE voucher_waits ADD COLUMN IF NOT EXISTS ask_at timestamptz DEFAULT '-infinity';

CREATE INDEX CONCURRENTLY IF NOT EXISTS voucher_waits_ask_again ON voucher_waits (product_id, ask_at, id) WHERE NOT is_test;
