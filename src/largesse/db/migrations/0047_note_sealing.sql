-- Notes that a process encrypts under a master key now. False where the key is unknown or retired: only an operator changes that.
-- Serving processes and workers need nothing else of `master_keys`, so they have no right to change a row of it.
CREATE FUNCTION note_sealing(of_key bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE master_keys SET sealing_at = clock_now() WHERE id = of_key AND retired_at IS NULL;
    RETURN FOUND;
END $$;
