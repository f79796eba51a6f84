-- A cluster refuses a statement with parameters in a function of SQL.
CREATE OR REPLACE FUNCTION lines_by_lookup(wanted bigint[]) RETURNS TABLE (customer_id integer, order_id integer, number integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT customer_id, order_id, number FROM lines WHERE code_lookup = ANY(wanted);
END
$$;
