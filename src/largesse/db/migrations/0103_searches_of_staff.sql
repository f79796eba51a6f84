-- Outside a transaction
-- Members of staff search the gifts of all customers. A look-up for each customer read more with each new one: half a million
-- blocks with 100,000 customers. Whole addresses are the words with an @.
CREATE INDEX CONCURRENTLY IF NOT EXISTS report_words_addresses ON report_words (word, created_at) WHERE word LIKE '%@%';

-- The same key, with the reference first. It is as unique, and orders have no further index to write.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS orders_by_reference ON orders (reference, customer_id);

DROP INDEX CONCURRENTLY IF EXISTS orders_reference;

ALTER INDEX IF EXISTS orders_by_reference RENAME TO orders_reference;
