-- Look-ups of the serving process before it knows the customer. Row-level security then shows it no customer's row
-- (docs/decisions/0037-look-ups.md). Each function here takes something that only its owner knows, and returns what one look-up needs and
-- nothing else. They run as the owner of the schema. PL/pgSQL, as it keeps plans where functions in SQL are planned at each call before PostgreSQL 18.

-- Whose API keys have these hashes, in one environment.
CREATE FUNCTION callers(hashes bytea[], wanted_environment text)
RETURNS TABLE (hash bytea, key_id integer, environment text, customer_id integer, customer_name text, plan text, funding text,
               service_account_id integer, service_account_name text, active boolean, scopes text[], networks cidr[], limits jsonb)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT k.hash, k.id, k.environment, c.id, c.name, c.plan, c.funding, s.id, s.name, s.active, k.scopes, k.networks, s.limits
        FROM api_keys k
        JOIN customers c ON c.id = k.customer_id
        JOIN service_accounts s ON s.id = k.service_account_id
        WHERE k.hash = ANY (hashes) AND k.environment = wanted_environment;
END $$;

-- Notes that keys were used just now and from where, whosever they are.
CREATE FUNCTION note_keys_seen(ids integer[], addresses inet[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE api_keys SET last_seen_at = clock_now(), last_seen_address = seen.address
    FROM unnest(ids, addresses) AS seen (id, address) WHERE api_keys.id = seen.id;
END $$;

-- The lines that are found by these numbers, in one environment, with what their orders say of the gift: at most one of them has the code that
-- the numbers were made of. `held`: they are locked to the end of the transaction.
CREATE FUNCTION lines_of_code(lookups bigint[], wanted_environment text, held boolean)
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
               o.value_minor, o.wrapping_key, o.from_name, o.message, o.scheduled_for, o.expiry_after_days
        FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
        WHERE l.code_lookup = ANY (lookups) AND o.environment = wanted_environment;
END $$;

-- The collections that are offered, everybody's and each customer's own: the catalogue that a process keeps in memory.
CREATE FUNCTION every_collection() RETURNS SETOF collections
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM collections WHERE active;
END $$;

-- The customers that somebody who signs in belongs to, and what they are there.
CREATE FUNCTION memberships(of_person integer)
RETURNS TABLE (user_id integer, email text, name text, role text, customer_id integer, customer_name text, plan text, funding text,
               requires_second_step boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT u.id, u.email, u.name, u.role, c.id, c.name, c.plan, c.funding, c.requires_second_step
        FROM users u JOIN customers c ON c.id = u.customer_id
        WHERE u.person_id = of_person AND u.is_active;
END $$;

-- For whom a link is that lets a user in, by the hash of its secret.
CREATE FUNCTION user_of_link(of_hash bytea)
RETURNS TABLE (user_id integer, person_id integer, email text, name text, role text, is_active boolean, customer_id integer, customer_name text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT u.id, u.person_id, u.email, u.name, u.role, u.is_active, c.id, c.name
        FROM sign_in_links l JOIN users u ON u.id = l.user_id JOIN customers c ON c.id = u.customer_id
        WHERE l.hash = of_hash;
END $$;

-- The captured mail of an environment, newest first, for the mailbox that is served where mail is not sent.
CREATE FUNCTION captured_page(of_environment text, before bigint, most integer)
RETURNS TABLE (id bigint, recipient text, subject text, captured_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT id, recipient, subject, captured_at FROM captured_mail
        WHERE environment = of_environment AND (before IS NULL OR id < before) ORDER BY id DESC LIMIT most;
END $$;

CREATE FUNCTION captured_message(of_environment text, of_id bigint)
RETURNS TABLE (message_id bigint, sealed bytea, captured_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT message_id, sealed, captured_at FROM captured_mail WHERE id = of_id AND environment = of_environment;
END $$;

-- What was sealed last, which tells the key of a database that has no proof of it yet.
CREATE FUNCTION last_sealed() RETURNS bytea
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN coalesce(
        (SELECT sealed FROM lines ORDER BY customer_id DESC, order_id DESC, number DESC LIMIT 1),
        (SELECT sealed FROM vouchers ORDER BY id DESC LIMIT 1),
        (SELECT sealed_secret FROM webhook_subscriptions ORDER BY created_at DESC LIMIT 1));
END $$;

-- Whether every account with entries has marks: the head of one that has none is sixteen zero bytes.
CREATE FUNCTION is_ledger_chained() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM accounts a WHERE a.chain_head = '\x00000000000000000000000000000000' AND EXISTS (
            SELECT FROM entries e WHERE e.customer_id = a.customer_id AND e.account_id = a.id));
END $$;

-- Whether the audit log has begun.
CREATE FUNCTION has_audit_heads() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM audit_heads);
END $$;

-- The lines that wait for a voucher of that product and value, whosever they are: who waits longest is served first.
CREATE FUNCTION waiting_lines(of_product integer, of_value_minor bigint, most integer)
RETURNS TABLE (id bigint, customer_id integer, order_id integer, number integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT id, customer_id, order_id, number FROM voucher_waits
        WHERE product_id = of_product AND value_minor = of_value_minor ORDER BY since, id LIMIT most;
END $$;
