-- Whether a line of staging waits: no number of the stock is for it, and nobody in production waits behind it. It took one before this migration.
ALTER TABLE voucher_waits ADD COLUMN is_test boolean NOT NULL DEFAULT false;
UPDATE voucher_waits AS w SET is_test = true
FROM orders AS o WHERE o.customer_id = w.customer_id AND o.id = w.order_id AND o.environment = 'staging';

DROP INDEX voucher_waits_next;
CREATE INDEX voucher_waits_next ON voucher_waits (product_id, value_minor, since, id) WHERE NOT is_test;

CREATE OR REPLACE FUNCTION waiting_lines(of_product integer, of_value_minor bigint, most integer)
RETURNS TABLE (id bigint, customer_id integer, order_id integer, number integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT id, customer_id, order_id, number FROM voucher_waits
        WHERE product_id = of_product AND value_minor = of_value_minor AND NOT is_test ORDER BY since, id LIMIT most;
END $$;
