-- What an account is never changes, and its chain never begins anew (docs/decisions/0031-marks-of-orders-and-lines.md). Tables that are spread over nodes take
-- triggers by this setting alone.
-- Not by SET: a coordinator repeats for its nodes the whole message that holds one.
SELECT set_config('citus.enable_unsafe_triggers', 'on', true);

-- The mark of what an account is: its environment, kind and currency. Null where marks of its entries cover that.
ALTER TABLE accounts ADD COLUMN mac bytea;

-- After the update, so that no row is locked a second time on an order's way; for what is meant to change the function is not called.
CREATE TRIGGER accounts_stay AFTER UPDATE ON accounts FOR EACH ROW
    -- One column after the other: a comparison of rows is written otherwise by pg_dump, and would differ after a restore.
    WHEN (OLD.environment IS DISTINCT FROM NEW.environment OR OLD.kind IS DISTINCT FROM NEW.kind
          OR OLD.currency IS DISTINCT FROM NEW.currency OR OLD.created_at IS DISTINCT FROM NEW.created_at
          OR OLD.key IS DISTINCT FROM NEW.key
          OR OLD.mac IS DISTINCT FROM NEW.mac AND OLD.mac IS NOT NULL
          OR NEW.chain_head = '\x00000000000000000000000000000000' AND OLD.chain_head <> NEW.chain_head)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER chain_openings_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON chain_openings
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Whether anything bears a mark, so that an installation without keys of chains has lost them. For every caller.
CREATE FUNCTION has_marks() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM audit_heads) OR EXISTS (SELECT 1 FROM chain_openings)
        OR EXISTS (SELECT 1 FROM accounts WHERE mac IS NOT NULL OR chain_head <> '\x00000000000000000000000000000000')
        OR EXISTS (SELECT 1 FROM entries WHERE mac IS NOT NULL);
END $$;
