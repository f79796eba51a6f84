-- As before, but with a column where the entries are looked for: rows without any cannot be passed between the nodes of a cluster.
CREATE OR REPLACE FUNCTION is_ledger_chained() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN NOT EXISTS (
        SELECT 1 FROM accounts a WHERE a.chain_head = '\x00000000000000000000000000000000' AND EXISTS (
            SELECT 1 FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id));
END $$;
