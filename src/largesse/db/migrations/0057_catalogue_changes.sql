-- A process reads what changed in the catalogue, and no longer all of it, and a customer's own collections when that customer uses them
-- (docs/decisions/0062-catalogue-by-changes.md).

-- What each version of the catalogue changed: products, and collections that all customers may send. A version without a row changed too much
-- to list, or everything: a process with an older version reads the whole catalogue. The last thousand versions are here.
CREATE TABLE catalogue_changes (
    version        bigint PRIMARY KEY,
    product_ids    integer[] NOT NULL,
    collection_ids integer[] NOT NULL
);

-- Counts the changes of each customer's own collections. A customer that never had any has no row.
CREATE TABLE collection_versions (
    customer_id integer PRIMARY KEY REFERENCES customers,
    version     bigint NOT NULL DEFAULT 1
);
INSERT INTO collection_versions (customer_id) SELECT DISTINCT customer_id FROM collections WHERE customer_id IS NOT NULL;

CREATE INDEX collections_own ON collections (customer_id) WHERE active;

DROP TRIGGER catalogue_changed ON products;
DROP TRIGGER catalogue_changed ON collections;
DROP FUNCTION catalogue_changed();

-- `changed` has the rows that were written or deleted, `former` those that an UPDATE replaced. Whoever changes the catalogue holds the row of its version until
-- the end, so that versions become visible in their order.
CREATE FUNCTION catalogue_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids    integer[];
    owners integer[];
    raised bigint;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        UPDATE catalogue_version SET version = version + 1;
        UPDATE collection_versions SET version = version + 1;
        RETURN NULL;
    END IF;
    IF TG_TABLE_NAME = 'products' THEN
        ids := ARRAY(SELECT id FROM changed);
    ELSE
        ids := ARRAY(SELECT id FROM changed WHERE customer_id IS NULL);
        owners := ARRAY(SELECT DISTINCT customer_id FROM changed WHERE customer_id IS NOT NULL);
        IF TG_OP = 'UPDATE' THEN -- also of a collection that changed hands
            ids := ARRAY(SELECT unnest(ids) UNION SELECT id FROM former WHERE customer_id IS NULL);
            owners := ARRAY(SELECT unnest(owners) UNION SELECT customer_id FROM former WHERE customer_id IS NOT NULL);
        END IF;
        INSERT INTO collection_versions AS saved (customer_id) SELECT unnest(owners) ORDER BY 1
            ON CONFLICT (customer_id) DO UPDATE SET version = saved.version + 1;
    END IF;
    IF cardinality(ids) = 0 THEN
        RETURN NULL;
    END IF;
    UPDATE catalogue_version SET version = version + 1 RETURNING version INTO raised;
    IF cardinality(ids) <= 1000 THEN
        INSERT INTO catalogue_changes (version, product_ids, collection_ids) VALUES (
            raised,
            CASE TG_TABLE_NAME WHEN 'products' THEN ids ELSE '{}' END,
            CASE TG_TABLE_NAME WHEN 'products' THEN '{}' ELSE ids END);
    END IF;
    DELETE FROM catalogue_changes WHERE version <= raised - 1000;
    RETURN NULL;
END $$;

DO $$
DECLARE
    gifts text;
BEGIN
    FOREACH gifts IN ARRAY ARRAY['products', 'collections'] LOOP
        EXECUTE format('CREATE TRIGGER catalogue_inserted AFTER INSERT ON %I REFERENCING NEW TABLE AS changed
                        FOR EACH STATEMENT EXECUTE FUNCTION catalogue_changed()', gifts);
        EXECUTE format('CREATE TRIGGER catalogue_updated AFTER UPDATE ON %I REFERENCING OLD TABLE AS former NEW TABLE AS changed
                        FOR EACH STATEMENT EXECUTE FUNCTION catalogue_changed()', gifts);
        EXECUTE format('CREATE TRIGGER catalogue_deleted AFTER DELETE ON %I REFERENCING OLD TABLE AS changed
                        FOR EACH STATEMENT EXECUTE FUNCTION catalogue_changed()', gifts);
        EXECUTE format('CREATE TRIGGER catalogue_emptied AFTER TRUNCATE ON %I
                        FOR EACH STATEMENT EXECUTE FUNCTION catalogue_changed()', gifts);
    END LOOP;
END $$;

-- The collections that all customers may send, of these ids; null: all of them. Each customer reads its own as its own.
DROP FUNCTION every_collection();
CREATE FUNCTION curated_collections(of_ids integer[]) RETURNS SETOF collections
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM collections WHERE customer_id IS NULL AND active AND (of_ids IS NULL OR id = ANY (of_ids));
END $$;

-- As before (0039), and the version of the customer's own collections.
DROP FUNCTION callers(bytea[], text);
CREATE FUNCTION callers(hashes bytea[], wanted_environment text)
RETURNS TABLE (hash bytea, key_id integer, environment text, customer_id integer, customer_name text, plan text, funding text,
               service_account_id integer, service_account_name text, active boolean, scopes text[], networks cidr[], limits jsonb,
               collections_version bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT k.hash, k.id, k.environment, c.id, c.name, c.plan, c.funding, s.id, s.name, s.active, k.scopes, k.networks, s.limits,
               coalesce((SELECT v.version FROM collection_versions v WHERE v.customer_id = k.customer_id), 0)
        FROM api_keys k
        JOIN customers c ON c.id = k.customer_id
        JOIN service_accounts s ON s.id = k.service_account_id
        WHERE k.hash = ANY (hashes) AND k.environment = wanted_environment;
END $$;
