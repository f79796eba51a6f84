-- What a line's recipient reads instead of their order's message, which has placeholders. Written as the order is placed, for such orders
-- alone. An erased message is empty.
CREATE TABLE line_messages (
    customer_id integer NOT NULL,
    order_id    integer NOT NULL,
    number      integer NOT NULL,
    message     text NOT NULL,
    PRIMARY KEY (customer_id, order_id, number)
);

-- As before, with the line's own message. Whether there is one is asked only where the order's message has a placeholder.
CREATE OR REPLACE FUNCTION lines_of_code(lookups bigint[], wanted_environment text, held boolean)
RETURNS TABLE (order_id integer, number integer, code_lookup bigint, sealed bytea, recipient_email text, recipient_name text, reference text,
               environment text, customer_id integer, gift_selection text, product_id integer, collection_id integer, country text,
               currency text, value_minor bigint, wrapping_key text, from_name text, message text, scheduled_for timestamptz,
               expiry_after_days integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF held THEN
        PERFORM FROM lines l WHERE l.code_lookup = ANY (lookups) ORDER BY l.code_lookup, l.customer_id FOR UPDATE;
    END IF;
    RETURN QUERY
        SELECT l.order_id, l.number, l.code_lookup, l.sealed, l.recipient_email, l.recipient_name, o.reference,
               o.environment, o.customer_id, o.gift_selection, o.product_id, o.collection_id, o.country, o.currency,
               o.value_minor, o.wrapping_key, o.from_name,
               CASE WHEN position('{' IN o.message) > 0 THEN coalesce(
                   (SELECT m.message FROM line_messages m
                    WHERE m.customer_id = l.customer_id AND m.order_id = l.order_id AND m.number = l.number), o.message)
                    ELSE o.message END,
               o.scheduled_for, o.expiry_after_days
        FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
        WHERE l.code_lookup = ANY (lookups) AND o.environment = wanted_environment;
END $$;
