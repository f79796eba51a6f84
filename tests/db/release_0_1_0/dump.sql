-- A database of release 0.1.0, filled through its API, pages, commands and worker. All of it is made up: see facts.py.

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE FUNCTION public.catalogue_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE catalogue_version SET version = version + 1;
    RETURN NULL;
END $$;

CREATE FUNCTION public.clock_now() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$SELECT now() + ahead_by FROM clock$$;

CREATE FUNCTION public.refuse_backwards() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.state = OLD.state OR (OLD.state, NEW.state) IN (
            ('claimed', 'chosen'), ('claimed', 'expired'), ('chosen', 'fulfilled'), ('chosen', 'expired'))) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a line moves only forwards: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.account_service_accounts (
    account_id integer NOT NULL,
    service_account_id integer NOT NULL
);

CREATE TABLE public.accounts (
    id integer NOT NULL,
    customer_id integer NOT NULL,
    environment text NOT NULL,
    kind text NOT NULL,
    key text,
    name text,
    is_master boolean DEFAULT false NOT NULL,
    open_to_all boolean DEFAULT false NOT NULL,
    currency text NOT NULL,
    balance_minor bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT accounts_check CHECK (((kind = 'funding'::text) = (key IS NOT NULL))),
    CONSTRAINT accounts_check1 CHECK (((kind = 'funding'::text) = (name IS NOT NULL))),
    CONSTRAINT accounts_environment_check CHECK ((environment = ANY (ARRAY['production'::text, 'staging'::text]))),
    CONSTRAINT accounts_kind_check CHECK ((kind = ANY (ARRAY['funding'::text, 'receivable'::text, 'sales'::text, 'deposits'::text]))),
    CONSTRAINT accounts_not_overdrawn CHECK (((kind <> 'funding'::text) OR (balance_minor >= 0)))
)
WITH (fillfactor='20');

ALTER TABLE public.accounts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.accounts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE public.api_keys (
    id integer NOT NULL,
    customer_id integer NOT NULL,
    service_account_id integer NOT NULL,
    key text NOT NULL,
    environment text NOT NULL,
    hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone,
    CONSTRAINT api_keys_environment_check CHECK ((environment = ANY (ARRAY['production'::text, 'staging'::text]))),
    CONSTRAINT api_keys_hash_check CHECK ((length(hash) = 32))
)
WITH (fillfactor='70');

ALTER TABLE public.api_keys ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.api_keys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.captured_mail (
    id bigint NOT NULL,
    message_id bigint NOT NULL,
    environment text NOT NULL,
    recipient text NOT NULL,
    subject text NOT NULL,
    sealed bytea NOT NULL,
    captured_at timestamp with time zone NOT NULL
);

ALTER TABLE public.captured_mail ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.captured_mail_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.catalogue_version (
    one boolean DEFAULT true NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    CONSTRAINT catalogue_version_one_check CHECK (one)
);

CREATE TABLE public.claim_addresses (
    address bigint NOT NULL,
    allowance double precision NOT NULL,
    last_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.clock (
    one boolean DEFAULT true NOT NULL,
    ahead_by interval DEFAULT '00:00:00'::interval NOT NULL,
    CONSTRAINT clock_one_check CHECK (one)
);

CREATE TABLE public.code_readings (
    id bigint NOT NULL,
    order_id integer NOT NULL,
    service_account_id integer NOT NULL,
    read_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.code_readings ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.code_readings_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.collections (
    id integer NOT NULL,
    key text NOT NULL,
    customer_id integer,
    name text NOT NULL,
    country text NOT NULL,
    currency text NOT NULL,
    value_minor bigint,
    value_points_minor bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    allow_custom_value boolean DEFAULT false NOT NULL,
    product_ids integer[] NOT NULL,
    active boolean DEFAULT true NOT NULL,
    CONSTRAINT collections_check CHECK (((customer_id IS NULL) = (value_minor IS NULL))),
    CONSTRAINT collections_value_minor_check CHECK ((value_minor > 0)),
    CONSTRAINT collections_value_points_minor_check CHECK ((0 < ALL (value_points_minor)))
);

ALTER TABLE public.collections ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.collections_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.currencies (
    id smallint NOT NULL,
    code text NOT NULL,
    CONSTRAINT currencies_code_check CHECK ((code ~ '^[A-Z]{3}$'::text))
);

CREATE TABLE public.customers (
    id integer NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    plan text NOT NULL,
    funding text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT customers_funding_check CHECK ((funding = ANY (ARRAY['balance'::text, 'invoiced'::text]))),
    CONSTRAINT customers_plan_check CHECK ((plan = ANY (ARRAY['starter'::text, 'pro'::text, 'enterprise'::text])))
);

ALTER TABLE public.customers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.customers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.deliveries (
    id bigint NOT NULL,
    subscription_id uuid NOT NULL,
    event_id bigint,
    event text NOT NULL,
    sample bytea,
    state text DEFAULT 'pending'::text NOT NULL,
    attempts smallint DEFAULT 0 NOT NULL,
    attempts_left smallint DEFAULT 12 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT deliveries_check CHECK (((event_id IS NULL) <> (sample IS NULL))),
    CONSTRAINT deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'dropped'::text, 'exhausted'::text, 'cancelled'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE public.deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.delivery_attempts (
    delivery_id bigint NOT NULL,
    number smallint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    duration_ms integer NOT NULL,
    status smallint,
    error text,
    answer bytea
);

CREATE TABLE public.entries (
    account_id integer NOT NULL,
    id bigint NOT NULL,
    movement_id bigint NOT NULL,
    kind text NOT NULL,
    order_id integer,
    amount_minor bigint NOT NULL,
    balance_minor bigint NOT NULL,
    reference text,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT entries_amount_minor_check CHECK ((amount_minor <> 0)),
    CONSTRAINT entries_kind_check CHECK ((kind = ANY (ARRAY['top_up'::text, 'order'::text, 'refund'::text])))
);

ALTER TABLE public.entries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.entries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.events (
    id bigint NOT NULL,
    order_id integer NOT NULL,
    customer_id integer NOT NULL,
    environment text NOT NULL,
    event text NOT NULL,
    body bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    fanned_out_at timestamp with time zone
);

ALTER TABLE public.events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.line_events (
    order_id integer NOT NULL,
    number integer NOT NULL,
    event text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT line_events_event_check CHECK ((event = ANY (ARRAY['opened'::text, 'claimed'::text, 'chosen'::text, 'fulfilled'::text, 'expired'::text, 'cancelled'::text])))
);

CREATE TABLE public.line_states (
    order_id integer NOT NULL,
    number integer NOT NULL,
    state text NOT NULL,
    claimed_at timestamp with time zone,
    expires_at timestamp with time zone,
    product_id integer,
    language text,
    sealed_email bytea,
    CONSTRAINT line_states_check CHECK (((state = 'cancelled'::text) = (claimed_at IS NULL))),
    CONSTRAINT line_states_check1 CHECK (((state <> ALL (ARRAY['chosen'::text, 'fulfilled'::text])) OR (product_id IS NOT NULL))),
    CONSTRAINT line_states_state_check CHECK ((state = ANY (ARRAY['claimed'::text, 'chosen'::text, 'fulfilled'::text, 'expired'::text, 'cancelled'::text])))
)
WITH (fillfactor='80');

CREATE TABLE public.lines (
    order_id integer NOT NULL,
    number integer NOT NULL,
    recipient_email text,
    recipient_name text,
    code_lookup bigint NOT NULL,
    sealed bytea NOT NULL
);

CREATE TABLE public.mail_jobs (
    order_id integer NOT NULL,
    environment text NOT NULL,
    due_at timestamp with time zone NOT NULL,
    fanned_out_at timestamp with time zone
);

CREATE TABLE public.messages (
    id bigint NOT NULL,
    order_id integer NOT NULL,
    environment text NOT NULL,
    edition smallint DEFAULT 0 NOT NULL,
    email text NOT NULL,
    name text,
    line_numbers integer[] NOT NULL,
    state text DEFAULT 'pending'::text NOT NULL,
    attempts smallint DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    rank_at timestamp with time zone NOT NULL,
    leased_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    reason text,
    kind text DEFAULT 'gift'::text NOT NULL,
    CONSTRAINT messages_kind_check CHECK ((kind = ANY (ARRAY['gift'::text, 'voucher_ready'::text, 'shipped'::text]))),
    CONSTRAINT messages_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'sent'::text, 'captured'::text, 'bounced'::text, 'exhausted'::text, 'cancelled'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.02', autovacuum_analyze_scale_factor='0.02');

ALTER TABLE public.messages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.messages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE public.movements_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.orders (
    id integer NOT NULL,
    reference text NOT NULL COLLATE pg_catalog."C",
    customer_id integer NOT NULL,
    environment text NOT NULL,
    service_account_id integer NOT NULL,
    source text NOT NULL,
    external_reference text,
    gift_selection text NOT NULL,
    product_id integer,
    collection_id integer,
    template_id integer,
    country text NOT NULL,
    currency text NOT NULL,
    value_minor bigint NOT NULL,
    total_minor bigint NOT NULL,
    code_count integer NOT NULL,
    recipient_count integer NOT NULL,
    delivery_mode text NOT NULL,
    wrapping_key text NOT NULL,
    from_name text,
    message text,
    scheduled_for timestamp with time zone,
    expiry_after_days integer,
    account_id integer,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT orders_code_count_check CHECK (((code_count >= 1) AND (code_count <= 5000))),
    CONSTRAINT orders_delivery_mode_check CHECK ((delivery_mode = ANY (ARRAY['send'::text, 'manual'::text]))),
    CONSTRAINT orders_gift_selection_check CHECK ((gift_selection = ANY (ARRAY['gift'::text, 'gifts'::text]))),
    CONSTRAINT orders_total_minor_check CHECK ((total_minor > 0)),
    CONSTRAINT orders_value_minor_check CHECK ((value_minor > 0))
);

CREATE SEQUENCE public.orders_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.orders_id_seq OWNED BY public.orders.id;

CREATE TABLE public.pin_failures (
    decoy boolean NOT NULL,
    key bigint NOT NULL,
    failures smallint NOT NULL,
    pauses smallint NOT NULL,
    paused_until timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE public.products (
    id integer NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    is_digital boolean NOT NULL,
    currency text NOT NULL,
    countries text[] DEFAULT '{}'::text[] NOT NULL,
    denominations_minor bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    min_amount_minor bigint,
    max_amount_minor bigint,
    cost_minor bigint,
    markup_percent numeric,
    postage_minor jsonb DEFAULT '{}'::jsonb NOT NULL,
    vat_percent jsonb DEFAULT '{}'::jsonb NOT NULL,
    customer_ids integer[],
    active boolean DEFAULT true NOT NULL,
    CONSTRAINT products_check CHECK (((min_amount_minor IS NULL) = (max_amount_minor IS NULL))),
    CONSTRAINT products_check1 CHECK (((min_amount_minor > 0) AND (max_amount_minor >= min_amount_minor))),
    CONSTRAINT products_check2 CHECK (
CASE
    WHEN is_digital THEN ((cardinality(denominations_minor) > 0) OR (min_amount_minor IS NOT NULL))
    ELSE ((cost_minor IS NOT NULL) AND (cost_minor > 0))
END),
    CONSTRAINT products_denominations_minor_check CHECK ((0 < ALL (denominations_minor))),
    CONSTRAINT products_markup_percent_check CHECK ((markup_percent >= (0)::numeric))
);

ALTER TABLE public.products ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.products_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.service_accounts (
    id integer NOT NULL,
    customer_id integer NOT NULL,
    key text NOT NULL,
    name text NOT NULL,
    active boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.service_accounts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.service_accounts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.shipments (
    id bigint NOT NULL,
    order_id integer NOT NULL,
    number integer NOT NULL,
    environment text NOT NULL,
    product_id integer NOT NULL,
    country text NOT NULL,
    sealed_address bytea NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    exported_at timestamp with time zone,
    shipped_at timestamp with time zone,
    carrier text,
    tracking_number text,
    CONSTRAINT shipments_check CHECK (((shipped_at IS NULL) = (carrier IS NULL))),
    CONSTRAINT shipments_environment_check CHECK ((environment = ANY (ARRAY['production'::text, 'staging'::text])))
)
WITH (fillfactor='80');

ALTER TABLE public.shipments ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.shipments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.templates (
    id integer NOT NULL,
    customer_id integer NOT NULL,
    key text NOT NULL,
    name text,
    product_id integer,
    collection_id integer,
    gift_name text NOT NULL,
    value_minor bigint NOT NULL,
    currency text NOT NULL,
    country text,
    wrapping_key text,
    from_name text,
    message text,
    expiry_after_days integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT templates_check CHECK (((product_id IS NULL) <> (collection_id IS NULL))),
    CONSTRAINT templates_expiry_after_days_check CHECK ((expiry_after_days > 0)),
    CONSTRAINT templates_value_minor_check CHECK ((value_minor > 0))
);

ALTER TABLE public.templates ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.templates_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.users (
    id integer NOT NULL,
    customer_id integer NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    is_active boolean DEFAULT true NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_login_at timestamp with time zone,
    CONSTRAINT users_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'member'::text])))
);

ALTER TABLE public.users ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.voucher_waits (
    id bigint NOT NULL,
    product_id integer NOT NULL,
    value_minor bigint NOT NULL,
    order_id integer NOT NULL,
    number integer NOT NULL,
    since timestamp with time zone NOT NULL
);

ALTER TABLE public.voucher_waits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.voucher_waits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.vouchers (
    id bigint NOT NULL,
    product_id integer NOT NULL,
    value_minor bigint NOT NULL,
    lookup bigint NOT NULL,
    sealed bytea NOT NULL,
    is_test boolean DEFAULT false NOT NULL,
    added_at timestamp with time zone NOT NULL,
    order_id integer,
    number integer,
    handed_at timestamp with time zone,
    CONSTRAINT vouchers_check CHECK ((((order_id IS NULL) = (number IS NULL)) AND ((order_id IS NULL) = (handed_at IS NULL)))),
    CONSTRAINT vouchers_value_minor_check CHECK ((value_minor > 0))
)
WITH (fillfactor='80');

ALTER TABLE public.vouchers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.vouchers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhook_lanes (
    subscription_id uuid NOT NULL,
    due_at timestamp with time zone NOT NULL,
    failing boolean DEFAULT false NOT NULL,
    leased_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    fence bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='500');

CREATE TABLE public.webhook_subscriptions (
    id uuid NOT NULL,
    customer_id integer NOT NULL,
    environment text NOT NULL,
    event text NOT NULL,
    target_url text NOT NULL,
    sealed_secret bytea NOT NULL,
    service_account_id integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT webhook_subscriptions_environment_check CHECK ((environment = ANY (ARRAY['production'::text, 'staging'::text])))
);

INSERT INTO public.account_service_accounts VALUES
	(2, 1);

INSERT INTO public.accounts OVERRIDING SYSTEM VALUE VALUES
	(4, 1, 'production', 'receivable', NULL, NULL, false, false, 'GBP', 0, '2026-11-21 18:50:07.528578+00'),
	(10, 1, 'staging', 'receivable', NULL, NULL, false, false, 'GBP', 0, '2026-11-21 18:50:07.528578+00'),
	(2, 1, 'production', 'funding', 'team', 'People team', false, false, 'GBP', 7500, '2026-11-21 18:50:07.528578+00'),
	(12, 1, 'staging', 'deposits', NULL, NULL, false, false, 'GBP', -100000, '2026-11-21 18:50:07.528578+00'),
	(11, 1, 'staging', 'sales', NULL, NULL, false, false, 'GBP', 1500, '2026-11-21 18:50:07.528578+00'),
	(3, 1, 'staging', 'funding', 'test-gbp', 'Test float', true, true, 'GBP', 98500, '2026-11-21 18:50:07.528578+00'),
	(6, 1, 'production', 'deposits', NULL, NULL, false, false, 'GBP', -1007500, '2026-11-21 18:50:07.528578+00'),
	(5, 1, 'production', 'sales', NULL, NULL, false, false, 'GBP', 40642, '2026-11-21 18:50:07.528578+00'),
	(1, 1, 'production', 'funding', 'gbp', 'Acme float', true, true, 'GBP', 959358, '2026-11-21 18:50:07.528578+00'),
	(21, 2, 'production', 'deposits', NULL, NULL, false, false, 'GBP', 0, '2026-11-21 18:50:08.67331+00'),
	(19, 2, 'production', 'receivable', NULL, NULL, false, false, 'GBP', -1500, '2026-11-21 18:50:08.67331+00'),
	(20, 2, 'production', 'sales', NULL, NULL, false, false, 'GBP', 1500, '2026-11-21 18:50:08.67331+00');

INSERT INTO public.alembic_version VALUES
	('0003');

INSERT INTO public.api_keys OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, 'hr', 'production', '\xe07cd0bbce7717be401b0c91025ffcd826b48cb77b20e3e00a4f9fdacd832f7d', '2026-11-21 18:50:07.528578+00', '2026-11-21 18:50:10.357004+00'),
	(3, 2, 3, 'globex', 'production', '\xef304865f142d0955e46a02ba6a1a12bf633b0657550b3d0a25b7a2ef46bc4ac', '2026-11-21 18:50:07.528578+00', '2026-11-21 18:50:10.357004+00'),
	(2, 1, 1, 'hr-test', 'staging', '\x075a5698b42c163747132d82c26340befcc3f27f47f0f82cd192fe8d90dc3834', '2026-11-21 18:50:07.528578+00', '2026-11-21 18:50:10.387976+00');

INSERT INTO public.captured_mail OVERRIDING SYSTEM VALUE VALUES
	(1, 11, 'staging', 'ada@acme.example', 'You have been sent a gift', '\x0251023cf36ae059a55e32d092a2239a526f7c9e911efdf0ca5cb7f9679512d064b4f48b0d20babbe4da1a1a02e525ddfb25f55f848173837fcdda4c7de9d4ac485156acbd75de74543281ef20ea4ca18f379c6628470441fe63293620795719923ecc2db2ded1f506882f7f9e9ef1a1e6f4635eee0497974a1d562339b622fdce9eed2f7201ec29a449f0b56553dd61e25bbfd250230cfb5d094a762dd4204a203c742cd4cddaaa13d26a1f50ad94fcfd9bdcacd85e6567e81e9d9075a14561fa38e6c64aa8427b1469867ec5ef57e1ee38469b85ed140d0286b440da1cc66f67482f3aba59effef2ad20c29bc408104b6f3883e49b0f9e2b021d610768d4b5a973eb03e90a3b665649c1ad996138589ffd3ddfe54095d637e19f278d2d9e22805545a34129fe434f2694ae7cb83eebede2f31f770d8639e1b4fabc4260509db9952a6f7e12c42d36f7a598c88c88122e96900f53cfdfbbc02b12584cfaa6add0cfdb6f5fef58ec455c81b6cf154d68b05e1562c798436af9e48fa31f26c92eb6bef4919cb95afca5f870608baa74f97415d9adbe9d1a00aeed57254808249d25c711b111d49cd12f241088e6db3482efe80ec2f19447b72c4cf849f6654ca6ec96082cb393d24d4a4c3b6fedd90980598405ea0c98f36cc51408d70cf10b91264e4fd8d1dc3225a812873a9b35554156877ec5f12d7dfad138f74c70499a7b0e009c8987848d188d8f565c0e84a016e04fa2bdc9cf8525ea0e83f6e6dc80409a7a5e2e29bdfb14351b9d9ba8ad095f16869ee90870dec6ecd5ea5253041e7cdcf5c1dc4263d7b13b2ec574572f4a81106f4d51ac3ff3312f78691de21911f013d1c2b6dc998633ed1c821b13b363867e3af6e1b77b91b45f419b26557c8886a2c5b3b460af6f8506aa2365e3acd9fed7e462d5549e10ef6b70d1d6466c088ed7cdd8eaf71605c66c5641d65e4402cfd9015017f3c5861ca210b40e8012b49e84c6fd96ca88eecf33b9352779b854b6e19fb1a247c4a62de338a618800121a39f15b0a69e1a0c46d348dafe84ade02b63bf1fe44a299ef22ba6172c4977763bfba1d72f33aa10ea6ad97c87e1ff1c66af11c598cb67f60831c6c7fb95396d05f6b5824bd4a32c56c3e8d13a0c085c943082c3a2688727927a45432de2f495d9e8bd8db5a5e2ea9f15f5e94dd8ac677f16696bbfa1c4958214c89c575d601105ed1365510a9567cc880d138a211fe9c913a9f1326bb81fad34fbbd37c27c8d2842030071594c6b35ec05b93b4ba6076b78e73437c5771a35027fbf92a92e427c7906cc107cfa6dc722b32d92c64a74629d352d4924a4cff61a5a7e16abac5e0b46626f1617741f5b744e299dbc84ea0f42d8d2578bfb2ff9ddac14ec0093d250f1e4cc704ab2cb7f8a8e77cfefc1f5e736f68679d9fd32c785664124e1e99b744b91aba651888ac3c33656cb69d6481b8f17bce1cee96e153ab9235c1b4000e69e3f181da601e0b99e8360adcc8956843f12080b6a6eda1938c051b3e970685c801fade987ed178abd700de21f37a34a9fb0c7b977decd5490a1c9d74570404fa1770168ec6173c13278a6c96bf294c063240177bd9d5f83a4e6e329e14538b4f057e51052e533f7fc73b68e84e6e7ed824bb6bc718e32e26da52eaab81d484aac210af6577d40bf2ecfe6a25d55d7f3c8f6776cbb312128387a376a16567b1369d0800c069bf33a640185397fabc5f96d54aef1d25edb6b0d0c5700306f5b28a1b0b55dde8c81442c15df42a77d307d6c4c1a8574bb211eeedd015e05c1873ef0adb0ce8d18937c52e4f16d78efa5d3e96281ac0d7acb0e1af11da982081f4832ec86c0df315cc2134610e4bf30c2cb304450534fe857aa35d507fcae8f1c408edec9d6a5347dd53a6247f4f43dfd4bb41443eac385f2b60c6f7eedd22192d6f9137d2071c75bd10ff6dfeb05f21c2e4c32768076df9c505b61ae03d39c981dc6b140e27e71648ce88e4ee8324a79f8a20a063e0c32529dcb78478a94c546393adc1532add1f241fb0e60ce41f156e145c1e36e6de3798911c90a8c4d776e8d23d0126041d7dab890a1857e6a1b247c756b676f0f51ff2cb9d170cac4eb02e3ddf57f14f18bd0ad3e4c372efd1e0d0e39aaadec2d2841e491a18ecbfbc3b72ca68ae2225917f470ee1e253be1bfca87da02e2f900d1dd18b84653d1e933eadbc10d3b6335c84749e55a00188fe67496e45b5cb4e0a6e2b05bcab541497eaab077b4085ff8227f75cd24c815dc4e51cb5f2d75a5662aae9ea57bb058f621b5f942a884cbd81bda9abe40ea99c0efdc5aa45bf411696b89a158261378304d7d8137cb3605f469808a4db63062a8bbf233bf16cacfedbb7a80186f593d535679159c436406d37a127e234b79949629656afeca68a8a47af9ace6c897f9f800547cd135c17deb9522de538f896685dcc7a68313d689adaa6fc71190ab45360428628248bd90b126856d5042d6d599de5f679fa2aa915bc9f2244409f08c5dc4366c31ac3a8c80d577906e12f2f9b0f636ad535ed99c9858806d3b5412e89ce6155f7b7b4891e8c590c3a88fb858286e085ececacc9a34fddad7fac97ebdc8192969d682ac0e26f2e0cec1c35ebba15ffab4260247ccf01ebb035393b57358f84f27ca6c40add4d9a35f235f0b568b6ba60df2a80cf89edbfeee943c8da43e0c0d32f3d10275548e9ad3529e7038631fafe486491a7b63d9e95fdd9c419ce502a7638c857b478f7e199d9f040562a32658c69b6c6f3aed71a8b460fd0378bb7146e3004a67852f76e4fd1bb4f887aa7a2c10cc78a7b8247cb137654b5a066a131600928eacd79833239ded6b37d13a34b934d12f0e6f0d737986bfac081f4586f07ad044cce6d8a96605a7cde8349625baa05081bed23118727fcd2c2640afec400e92de95deed862682da6cf0422c25525abd92b2b07883ae47b4796513e3bed6367c400e7eca0fad08b0c0d058d95c339b241361c46fc36b6bdc611cb4c200f47d9be965bae13086535bee84af1cb9782a7e9021012f0eb5fc2b0914b4a56f6029b1c6c5c4ae004d14da266a02aae4cfe41600d44819fe5e7c8be74bf6b535232320d5cff5f35c20f95da8761b04d2d98ea2f2495da5aafb08a822bf5bb4f679d09c490e9a15b1b237bcaf096deac288b6d833e3b7f745aea66e3bd389bbe95d9d93e221a6f67d716b47c4ba929553504c974884ced395746031f7e924733d40a36fe77c64b3ba9a48d8a850e7736536f3c9847c757d4018b19a9287e77320f3829c7f9ff4a40747df8e26cebfab009665da41cd7dd2b33f3e672e9b89d6f33aa59f0ab676b13be9ff270af5ecf2c881a99abfc33cbd63de49a5d24bce2116d6810ffce43a4356b4d323b6b4b08a7aa47fb08dd095552289f136ce026e9a89a592817a3bbde999aa472a95258aeaf639145f7d9d7be84db2125f84c4ed77efe66fb780fc255b0f9670dde7cbe9ec393504c0c4bfdd447cf54b481e1514121de131a3c402b7e7e702bf2c2b8b06097c002d081a592d4ba9bb554aff2f5683ba484db920dadab720b467fe2fe7fc05979d1016e72ced99c0b86059eb4ac5947ac012b360e1f4cdb9732c7b441f985bf71bef03db160958eea753251355ee2fd25b7b8c62938cda86382e26662eabb048e6464b54a1636e3cc24d0b5b173d1c752fee1807a662ec0d8574ad5930ab0258ba216f25e528b9bfd8a3288ee2ee7da8dbbecd975a96bbb7b774888b9995f6e6d7b87f3d81fb073875053077be2b8bb7207d59955e5c6978d6da2c77690d00035cd104575f1a9145d2e9abaea94124d8d07da84aaf2806750d2f7e37707f14f7f9bc9bb26ee8a0474b0fae2fea6661d5358fbc748c41fcc57c20e06e90efc30ca40502f39f5dc744d8e9d23691b2f18af3521c1534be8cf3bd6e64058d39d0ad9e072419594b2efdbcf6a50d7b5f7b9396ade51a1fab5018846960012fdd0a7ba9ac099cd1be1be4036cc9b16cf09a67b2b08d055c0842a45ce887f3abe782578aae37214039a42565f277c2d72772c5ff579e5f91b6ba2b53871c94d6a63a60349be3b51e748f184add62873ea96056f1815e0695192916774da7e286dd839ab0e3ac390614860e7233842a9af866d9cb2d9d115b85d3df5d8b007b12ecc8df9cc12c8fa00fa00c80eae69c191413f95a92fd2d3bd7c878e0c1c0a9415cba362a33398db3c5d6a87c47e19156a375616f3e7c68efb8e6b735b9b9e091998a536aaff2d0bdeb1de2f47c6688b7f2245c463b1ccc4d821505e82604adaec0ec0ea8b0dc07a2edd4a6713455bf92f9c509740b683658d7de52177b9222412fb30a3be4446f8526f54c1f85aec3d947cc98a50b708ccba2745b54a60ea34cddee8a5962af29bc946232a45cee77757f6becb50399cee90df725ad9279b52745270abfe70f8ae1b925c20f182d70fe81fffc84bf8b6b588855ef14b95bbdef053815156b9e6e50f905a973c369b4e06e867e9cabf563acd946558e3147f558e440ed4e4f056d37eb00a41c0b5e161b946415d9757368c739c7af624ab459d41681091671d7b7a4104fcf9cf0eca0276a090f057609be6eb2aaa65def476a758987b6295cd86af776cae8c2f174657631ebf16c1809fc36a337d2a7ea66c35abfb806ca8fa77015dd497f2eef8a713fe729b5b9cfcc75e3d83a8ba591b6efe4b4afd45d33100c287305251d88d2e2df43721f17041312f27ac0d7214bd4d1207aa4c9d786c131ba07a1c628973608ea5080adb37e134d2a1eb2c23cbad9d3a666200d5091e3856be2d128b8366122cd80508c38aa59c05057b30e72dc21588aeb6c24d0213bdf19873fd3d041eda3395145d3530aaa75bbe958914b4fa37ebbe777ed217af925dd35d6f7e80eb9412896f7eb4c3bc9bf93868fabac136c9acd6a0e512e81931a7cf2710484cdd0f1d2e04d147dfba245fc1bbbb2cdbc6116161e576d1db08c232ea0eba97dfd1e8297530698644dff0f08f769ae74f3c220c4f3ff8dd19191a81055f02b10c7c0229d2feae662754f507cf91040d6f8f614b2a9f8b0f012aae537296ef708425defafe3129530a79ea99914565dd72ab00c08ac3c9d6947c32ed9f964c4d05f6b0941a0f4093da52a95dcf985a9d37521f2d7ac2db2b8c9a657441717590a3604ac2b75a361a9c47d9ad6f53099361cf065533524430dc66a846c7b8dd51b223fe03e37413237ca040785189b55b593e906575ae75f6971ee440588f31facdfcb327d5a4bf0b94bafd2fcb8f3ff760987d5221164180c5fe2ce9f718005363f94e7d0f09cdd7210556334c2acae7adf4b14a36be70d2b5119edfd0ff3dabcd500aa66a41a697f5d820ebb67d617b46214a7cb06b71cad06b6fefddaa44d12dec5e55068fe6134eb301745f6383b5d15fbd7a7fad04bfecf145159c4a0ccefc91760907f9e58a813624b4bacced066de2d3dee1a888e891c583dba4fe8a64d4ba5ee460b94d9ca234cbdb0cdb478cb823fc3c496854ced8c04c50e5d9b973082140c61f3d02a5744ff6064c25c7a6c60e0db165edd642536f91fe93cc722dca21dfdfeee46084019c8693b576725b581d1e0d776ef87a064a261f65d69ec95', '2026-11-21 18:50:08.787152+00'),
	(2, 12, 'staging', 'ben@acme.example', 'You have been sent gifts', '\x0251023c8223805d0e86f5f0e66c2aa88d1827e81c4e714bf4ad366d5718a679ce75be55f257415487584e4ae3dcae7441cb3ee5f42c104b14afa3cf6c54c96444ca94fe8244ef53a44d396b35e994d12fa35a093e53a7df1a31834c86c17a6c5fba38dc6236463d447e90d4345b025b3095c19a0fccbb9e36e61de8fda937dd1cfa94bb3da015b22f2fe9a0a2609308782f0441122dda882001c5e4ebf9bad6caa2b8df22a9caf2788251773bf3ff4f9207f72b9289c34be75a7111ea016393a6cb14ad76ed10e422765b1039aa55aaf8eeff89b42617d734e4da4ad5cea203a793f1e7d90037b1b3530d3a0850cee8f28547cd0d9b3bb2e1d6872431e23d2f257454e8d71af44281c6fb5010e98515ebb9b1e0ab85ac97ca5c15d97de3dd06a40932cb1994c7c7f5c0843f11490336b64a1463cd3cf3fba0d8132aa3c123909489f3b2b2b500fc7f135cf3edc835d6764ebe4324b12b5a7807946b0cfc5ff6ed96797fee44ff55edb53a1129b18c2ce5d37411237ae2f2868489c0ac20faebe01e8f600d9d9c1a4bda0b25cfee4830ef7ae33d31e3d1bd3ee8aaeea6f55f17496bb44611bbc557b9f3c45dd1f663fa1aaa9ad839eee7d10c0cfc05cbfa7063601a9771a440222002a342a2baf42378be52f567bcb25a3ce40b381eb702c0f1c66c214f9001bedad9d210988222dab8015adb553ab9110cdd89e9b35412520fbe28e26fd187bfc0b87ca9c5310ba6dbfab48ec418c95c0f0deb658ef39d5d964458951859473bbd13c40f515bc889fbfcff7cb904fa0dbc24f554877a2e7ba95bf71e12ee7e7e77c492ca1c91b104a8a671e2670d024f3c3a150f741040421d4bf9cc19ab38dbebabb8dcf84b0a75c7521d47fcf11d053b07232070357b5afc96ed4c07505d17a0d4e4e2f7c0cdb364b9b3f205c0eed6defdf840413158f635f8385f5e18ee49f7e32abcb915d83d8c83adb3e41667c098baf417f210c1a914e8e67f9eedc4ef1b2654938992b79f32fbec3a8b64b9113ab894268546db6062fb914d98757b78e75afce27490659b6af6314c0d2ad4a9250b376159ec19dd9c976e8d461adc00654196a02315a20669563cd35f0ce73eb3171d397220bbee892cd62206cba0ed9816c04ef9fb44655c72b0d98d650f10308bc1834e5cbb4b620ca25bec939ea4d12ba743428487f505093db30dd5e4f551458907344ab9a42735be5242a28d4541ae729bc8fdbd4221062d18ce62b271bfc9804a5bde427e5556e9663c7535b56c236edb7c0d82c09e15d3418c373556cf63bb4a501eb165be9094cea3eb74e5a8a7b019d5b3bd355e9865bc53f8600f1e0189ab5619d23e29524d7ca8e9a93144fa87e5005054af086beeff6be319154a09585f2e87ab856ae00a917a69a0bee354f1287ce0221beabd8a38bfd5fcb7ee1919eb52f1f31cca65f0725ce0b8451588fbf79128bb72b9fd3461389666761806fc56ec95eba3165ebbce44f2f4772ac5f02981c664285551fd6db6a1ad9deb9d627dc243beeb37055faf4cbd8ce9cdfef776440f0552d8fb58d94360b1c63228bc43a18cead4e31213725c583bb368f8e4612ee095c3897197ccdb26ea9aa3312927d2a8df48e30d5d0e78cb4611099761fac4bc667a16ef5d604edc107c15b4ae1eb366ede11f4645dadb0c7a7355b6f1c9932a37d6ffc1ab22530be8710e77b2e92be1928d9d3eff7608442d590a3d15a9fb1799696c2a167abb51c434af76dcd985d7a27f5d1c16ce9096963cf67a6de041ad9900f891f38f59fe01ecb55e9e5422f9d6e85027cb5f6919b5a9b99bbad5bdf376ca9fd5043310c3e85913a48e1dc98c4338cf6e8a503b41d5aae85825781ba9a26f9b971e9cba2bf6f530c0e0951a3596189e6129495a34d20c9a11c2c08a6aef7243c7f5722c5774893daf41b79f6ecd96ebfff4cd4cbffd94f99dbf62d4d7f723d4facb47a73c98ffbd8aa52a5567fa713f49e89c5725882bd18def5277cfafecdb26188711740b9f17b81751c539090a5c5debf897cc88defd52d41e2f26c62b0fb1f6571050c0442edea6c93e76a4234103f17a2faf53e0b2fdc08fe142c45f75b7f2ca80c7be8a7c546615d71640edb535b65f671692703db39cf0cc4115166505071c8d1725bf2450298aeb32b218f384df24ee21f9e38ec2281634e44c7fee7114e23fcd31fed0638bd6c4a2dfa1acea458020cf177548e1abd164ee9cd5f96ac8df05b452e2f9856c79330294c1e749ff6e08cd5de39edb1ac4b9fbe28d787a41784cd320a2adb2d5165ee903e493e673393edaff449c8ab2437d7aa1a5ff51b0cab01ce713e75be7815f6f649b2231ddf0ec39a2c3bc4692995a54dd2c78ef9dceaae2e062f77804983d224ea5906b32cbdf15421490a07483d32b9736a131d40e9ec7df9c7e4dceacabea9d5de6784d23976771163a004eda6e7098e0ddd98b2b83ae060fe73d6a3e0d0ccc99b774c8e7430a62f5e7cfd232ae3724d01c30e7a2f34351f5f3b4528948582410d7bbc293bbb1984b5d6163ce7eed70dc4b10437bc5a315772603c835e5c0d26479af1ecdd5ea35f603adf7a4ee68460fbe2c604931b369128b543337d5e53761ac3e4497932c5b32e9a5029fe935c4cbb44b7beadec521b575c04ceacf405142c66937531355f8017e6ee01cc01d5ff9b25a92a24fb7ee9695d8538e8a2e7347ebb096b7c6234154522c38fa34bc19a615fbd5e695e4fb9f2d74a997b0da843628a3db18b37ad531819626af0abf1c9f402a1e6fae495ec70f56d31cfcf1ef067b081887bf8f0458714dc116521f85d6f42fef0e5559684c17a1f70553c69db073918cafa70320547ca53b94097b807ead664f7cf354866827411ad6381d806f01e08ab624ec63c08372156933d96b369479ce18d226275e9a9ef5f0a235b86cbfc62bd0f3523323fc21befeed14f4cfc7756ea4303bc2b097ab16a3a53c56a35f2d17cf7eddd6893882450a62e652242c0d6a80c3982a69aec09ca192f353cd8817046c1db51e44435cc8ba69b9038ef39d532d4d5efe70aa929898774084daca52a1c0143b4274ca297ee3b5691015fb15e663a1ae20b372a627360bcdbba53939b4c3e140fb660f216d5c69e503be754a8d9ffbcf07d2da86a5fd6dc76e7ed6d9d6a196ffc0748de252d0786b53b3759db55b7be0f9a02b8e449ce6627dafcccbe7142bf2a9e54027ff270d7592049eccb8fb3a376d253badfe7cb1157cdaceb858361831b7f16f79ff769b355a5dd56490c0f9faf7e5b27144d920df92d52c269e0036a48ffc9821e4e6beb8e20990c3150c99cb1c9054d7a1249bea1873b5f855921c0652bbcf6479913335a4f6d852579a3aa26b8fcfe5d2bc0c5fc4e6c7a8d5efc4a3df15bb51140c04fb5cbdfb16b483f750f6a0b9ce633b35860ebd1f0dd6858c8f13b287c1b278087a6d502ee66b2f9ad3464612339cbc507549a8bf052dcd8b6e97b9e5004cee3c3bc103cd2970ee8e826feabcdf22381feedf19548442813e92982eea5c1748338ae0f275a6c25d4608dcc8f3d90bebb687a5284a5aaffa13d104de3b85ca74fe016a1e88ea64582357e1ce9cda74ee82460032419ef338a6527c6bec99f0bde948aaec36747b4c634f240b55219e0f10f573a68df0432a16d4c8575f4095610a1bcc88ae8010a878e451a1d27155195632512638e9c543df01186f7b0264b7c3766e5dd33e8f9d3043cdd5aa3b33dd682b21fa160c019e484b34359f32698f86840db99a2f6d95f3aedeb43dd7a3daedeb8c292c34724815ff68292eb0347d3d8cacc1aa32ac48a70cfd5d87fd94ad0f742bfe325a65f832d1482eae79338650ed341ef55db314ae709172fb1f250ce992b54ce8c5369ec10b91a50d60263a67e284a2a1c75ed7d3a7b7b1538fe6da7dd1ae918c5977a69f11d1b94a7b6d832776244aba603a6494469b5d820aeecf2ccee60b9ad9f6964e6567a5e506d807c9a2764d4891881a42b6756778bd781bdd2eefd86302b97e1d86423d6e7d32514e63944d9927974768e03d80efd4e1c9c948fb6d4f506815102132d3c924e9141ca3ce482fd0aef39d0a0a7e054d5792b4ca27a71ce7b47a30d07cdcddc298124bc300b345268f72bbe7a0ce023806fb174d0003c7ce7d485e1a4e38e6222035cb69e5db12b3b996b767db9201f67e8653e5d8e9c5f28b233df9b73b1ad13b9503ee48ac17e0252c3dda466e4438fbf26834d884066df97a11fcb6734bba5e64d2c6f6dafb9be2fe59c1f2a60e75f0a8fa3d14f8c5b9a6f08787d6e853225b67f3a6ceb831d4d1f89f8b6b9be76a397cdc102e1e9a7ce687231b0f2cc3948e6b4b48d0a68923a8a462f756c681d560198f3563f5cfdfa061f9945a691e3645da2503e4cae68dc3918f37854b88b42aa00ba4a3f21844824d46ae0230f467bbec27259385cb37490e5aa391f586831e67f2855de200416e7ad16a51d9aa53768dd83dfc993e399932311b48465dc7a8d2ad01cd5ad55a9f443528385c2137b707ca50e541785238eb4909ffe04b171a6ffac9466127ec7e1e1199666e5b1fdba92001f81fee2aed5f5814e22f2b3c710d00da383a82ed8b02357acf79716403a8b71c90de6c008693972a875468a61a34b7e5ab068f97f1011a88e796a14fdab0c08d33502e0d0e48057814ffa800909bc1f7fd416bc504b0cc57d5de8bd0e8da57d381bc162ea91f3ffdd8745f8a93986a62f246cbe9bf55e26739e1e6ad1c93d49fbcfbeff1017b9d9cff41fffa1e6bdadc0d4575f5eb899eb5009c21f50db707b0eb228c336ff34e533d2d7f1f6c509ffaf1f002429f9e97d42495495fadebb1769359dbd02ecc4b27f51d78f9f934cfbf38a207248c9a6bf09c84d60f460ee35d000606a417bb4842347b5d1838d3b72def427866e4e1a78882620ba550870a18846926357ac21e8cfb395a5735a1b5ad48305fa0502ed2644d1e32373e8388ffbc1700ea5d2d5420dda56df55abd535a822159f23a9b79e422def83b6561bfbe1e458153de23708d2da23de4975b49623972ea28487ee2ce54088c5150e1f96176a3301b3060967e2fbd4190e2478c54ae11f1890afb614013a0298ecfc4ddb4aef4aeaee76b600ba8b8d6c9e055fc770276acdf5011e645c52b80e0bd12763876616b90140ef72194310e8036e1d18221fbbd7bb0a00ed540356f556896c0ec82a60bfe33a5ae38f2999368450af0817a37b84f8ac832cba8962a3809c61adbc2f538f27f5ce3bc7fe25d8b3465d37bc57500cf89e0f729abe46de477d45ace3e3417f84695ab1e3ca42f88fe6063e5be8a539f2c78bb9c92b076097f756ba6ade8a846a7fd68df984a0556e0511245de1bfd24a5ef7fa1e519e76e794f8d5113be5ac6d0ac1685366e5c30a0f6ec483c2018b17347c2aebb82b482d925a0d0bbe70798ce42b0de9c357e957c17361df3c7bb4c3f04a166d74fe400b3fea6fca5e367c9a09d81165664dad828ac950db979a7a18c6609579bbd1832d6062adc232525e4c551d18c900e14ab4b1844b6ad023bb8dfae36b5d663d3c4e07f98cb1005fd64d5c9431890346ecc4a08010a16cd200a32bc407439f7614d342fbecec20e286d07bd6bbb2837c26b705ff152eb8b1695c39e450f8c0ef44d319a151cba158badc40eb9f18b36f9c58d3e89534c11f997c6b7ec9785a8b0776c5002abe816b05b3436c81bde0337f9526d61dc989a25497ab26f446da6d883d48cf98ecdd4bc7a37d5aa5af8d0d081c634531b5eb64a9535008be51e283f65886f0c4b5bfd98b62420af066c03e435dc4790723034d8b447ff8b4cd0f5dd45e8ff93defa4550387d9e3441687d61e699c66830b07a498dfca578dbfdaf8fbdae6014932481def8b5905643ce193c1d195e03315f359fcf264ade2d81c7ada2320a1774d1abc6ab2b8a63a5c8c4fac8fa194f402a86247bb8352f4e0b579f9a12d078ad18345abf4abe9b4035e5500c86c8fa9a818a2d28431b3f4087b54527bec238eb38cce3dc15e1ec73cffa1ab4d5850fb56dfcaa3e21f915a53e552461075ae683da9ff4455f8adf8dde830565278a7371a26a24ad9c7f12db26ea86a0984046ba543749b30a4baa2818859b5fd5663213e727816434b7da2ab98aebaf0befa740d0f95005c157190961f3810a38280d7927464088b77c38c5f5287279508eea61e95d49c6eae936f232295f8a185991ffdc4cc2e048b825e351e434b61a831331830da3e1992be27b428747a330064cda118ebbd7e2572d29ea5a37fe7a613afcb1639241ea643d234635275c367a0441e0013f41030d6889a6bff636267029cf4f1b65747d0fe765d2552fdc08827618ac2b823f5101eca050bd14d83632ef7ebe8cf50a0e7d53b4fde0617ea8264af4a38053a02d660693726d9863c5264142e74621d2222d9f9ccfad3338497f7751f73af23fd601a90e398bca4c35c69c2a36ef78e722b275c0fb4d650911cfcf619cfc2b912f517566c76308ca96d8f06e2be8e1d5937cde1fb125edd414bb85d29ab899f63a34b421ac067d310b107c5c84f8012afc5c3a61821607fed8ec9fcf7b86a81847be127d0e5ddb3eda9aa598eff5f232c55abfa40ed62a2d778be20e37da237ec6c122131bab82b212ae68b8515f5f44d017d059b80e431458504f9c3afbcb6851ef8f6c8800785ff81dcd2b5a62ae288f6d0b2dd46fb8e6b7e7a8002a1a83f99f320a84f5200d94075cb44dc4458b2494b113ec279df002b1d0b5abab4cda394e2045725620770150e983307e312c89660d4984e79e53f910fb375b61efea68c43ed81023b0f06c86ae797fdea155d28dbd9436cc9a3f2149662def032e0e48678ada8b9c9dc31d41f50993a1d2c2d0d3e4e995b26fef187af0b704ea62e6d9ded451ab8ee94028084d59c8e3b7d95015f1e5094c632e3b8f32619e203f76e14be26302b5e50658c82c0d983bfb625c6bd9c2ca0368eb292ffc1058c3eb6dcc5e7905db4c91e672450f75c90024f2a43ef87b6b237ee59a2d67941a8c0c1485d6026c7ad0458dac5e99e20b0e4d7cc6304c3cef7fa4752a900111561ca946615e57ea9323c9f4a1e9164d59e250f02f95698c67841e8920f913cd3febcdfaa64b0237e89ce9f044148edcc90bc47892b5e0956eb112dbf00fce3885b98315e502a5fa21cd0676a170a8cc07aabab0f84933afff9955dfa50baa1f10c3d38be8257d9bfc589eff1e4e762be801289b6d', '2026-11-21 18:50:08.787152+00');

INSERT INTO public.catalogue_version VALUES
	(true, 3);

INSERT INTO public.claim_addresses VALUES
	(3902653015753992434, 99, '2026-11-21 18:50:09.360627+00'),
	(2168476477743660479, 99, '2026-11-21 18:50:09.368091+00'),
	(-1975728035686786710, 99, '2026-11-21 18:50:09.370796+00');

INSERT INTO public.clock VALUES
	(true, '00:00:00');

INSERT INTO public.collections OVERRIDING SYSTEM VALUE VALUES
	(1, 'treats', NULL, 'Treats', 'GB', 'GBP', NULL, '{1000,2500}', false, '{1,2}', true),
	(2, 'acme-thanks', 1, 'Acme thanks', 'GB', 'GBP', 1000, '{}', false, '{1}', true);

INSERT INTO public.currencies VALUES
	(8, 'ALL'),
	(12, 'DZD'),
	(32, 'ARS'),
	(36, 'AUD'),
	(44, 'BSD'),
	(48, 'BHD'),
	(50, 'BDT'),
	(51, 'AMD'),
	(52, 'BBD'),
	(60, 'BMD'),
	(64, 'BTN'),
	(68, 'BOB'),
	(72, 'BWP'),
	(84, 'BZD'),
	(90, 'SBD'),
	(96, 'BND'),
	(104, 'MMK'),
	(108, 'BIF'),
	(116, 'KHR'),
	(124, 'CAD'),
	(132, 'CVE'),
	(136, 'KYD'),
	(144, 'LKR'),
	(152, 'CLP'),
	(156, 'CNY'),
	(170, 'COP'),
	(174, 'KMF'),
	(188, 'CRC'),
	(192, 'CUP'),
	(203, 'CZK'),
	(208, 'DKK'),
	(214, 'DOP'),
	(222, 'SVC'),
	(230, 'ETB'),
	(232, 'ERN'),
	(238, 'FKP'),
	(242, 'FJD'),
	(262, 'DJF'),
	(270, 'GMD'),
	(292, 'GIP'),
	(320, 'GTQ'),
	(324, 'GNF'),
	(328, 'GYD'),
	(332, 'HTG'),
	(340, 'HNL'),
	(344, 'HKD'),
	(348, 'HUF'),
	(352, 'ISK'),
	(356, 'INR'),
	(360, 'IDR'),
	(364, 'IRR'),
	(368, 'IQD'),
	(376, 'ILS'),
	(388, 'JMD'),
	(392, 'JPY'),
	(396, 'XAD'),
	(398, 'KZT'),
	(400, 'JOD'),
	(404, 'KES'),
	(408, 'KPW'),
	(410, 'KRW'),
	(414, 'KWD'),
	(417, 'KGS'),
	(418, 'LAK'),
	(422, 'LBP'),
	(426, 'LSL'),
	(430, 'LRD'),
	(434, 'LYD'),
	(446, 'MOP'),
	(454, 'MWK'),
	(458, 'MYR'),
	(462, 'MVR'),
	(480, 'MUR'),
	(484, 'MXN'),
	(496, 'MNT'),
	(498, 'MDL'),
	(504, 'MAD'),
	(512, 'OMR'),
	(516, 'NAD'),
	(524, 'NPR'),
	(532, 'XCG'),
	(533, 'AWG'),
	(548, 'VUV'),
	(554, 'NZD'),
	(558, 'NIO'),
	(566, 'NGN'),
	(578, 'NOK'),
	(586, 'PKR'),
	(590, 'PAB'),
	(598, 'PGK'),
	(600, 'PYG'),
	(604, 'PEN'),
	(608, 'PHP'),
	(634, 'QAR'),
	(643, 'RUB'),
	(646, 'RWF'),
	(654, 'SHP'),
	(682, 'SAR'),
	(690, 'SCR'),
	(702, 'SGD');
INSERT INTO public.currencies VALUES
	(704, 'VND'),
	(706, 'SOS'),
	(710, 'ZAR'),
	(728, 'SSP'),
	(748, 'SZL'),
	(752, 'SEK'),
	(756, 'CHF'),
	(760, 'SYP'),
	(764, 'THB'),
	(776, 'TOP'),
	(780, 'TTD'),
	(784, 'AED'),
	(788, 'TND'),
	(800, 'UGX'),
	(807, 'MKD'),
	(818, 'EGP'),
	(826, 'GBP'),
	(834, 'TZS'),
	(840, 'USD'),
	(858, 'UYU'),
	(860, 'UZS'),
	(882, 'WST'),
	(886, 'YER'),
	(901, 'TWD'),
	(924, 'ZWG'),
	(925, 'SLE'),
	(926, 'VED'),
	(928, 'VES'),
	(929, 'MRU'),
	(930, 'STN'),
	(933, 'BYN'),
	(934, 'TMT'),
	(936, 'GHS'),
	(938, 'SDG'),
	(941, 'RSD'),
	(943, 'MZN'),
	(944, 'AZN'),
	(946, 'RON'),
	(949, 'TRY'),
	(950, 'XAF'),
	(951, 'XCD'),
	(952, 'XOF'),
	(953, 'XPF'),
	(967, 'ZMW'),
	(968, 'SRD'),
	(969, 'MGA'),
	(971, 'AFN'),
	(972, 'TJS'),
	(973, 'AOA'),
	(976, 'CDF'),
	(977, 'BAM'),
	(978, 'EUR'),
	(980, 'UAH'),
	(981, 'GEL'),
	(985, 'PLN'),
	(986, 'BRL');

INSERT INTO public.customers OVERRIDING SYSTEM VALUE VALUES
	(1, 'acme', 'Acme Ltd', 'enterprise', 'balance', '2026-11-21 18:50:07.528578+00'),
	(2, 'globex', 'Globex', 'pro', 'invoiced', '2026-11-21 18:50:07.528578+00');

INSERT INTO public.deliveries OVERRIDING SYSTEM VALUE VALUES
	(1, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 1, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.547756+00', '2026-11-21 18:50:08.547756+00', '2026-11-21 18:50:08.604059+00'),
	(2, '4bdebcd0-eb47-4c08-aab6-048b7d3f150f', 1, 'order.created', NULL, 'cancelled', 1, 11, '2026-11-21 18:50:08.547756+00', '2026-11-21 18:50:08.547756+00', '2026-11-21 18:50:08.604059+00'),
	(3, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 1, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:13.013417+00', '2026-11-21 18:50:08.547756+00', NULL),
	(4, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 1, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.547756+00', '2026-11-21 18:50:08.547756+00', '2026-11-21 18:50:08.604059+00'),
	(6, '4bdebcd0-eb47-4c08-aab6-048b7d3f150f', 2, 'order.created', NULL, 'cancelled', 0, 12, '2026-11-21 18:50:08.609638+00', '2026-11-21 18:50:08.609638+00', '2026-11-21 18:50:08.604059+00'),
	(5, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 2, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.609638+00', '2026-11-21 18:50:08.609638+00', '2026-11-21 18:50:08.723846+00'),
	(9, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 3, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(12, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 4, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(15, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 5, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(18, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 6, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(21, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 7, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(8, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 2, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.609638+00', '2026-11-21 18:50:08.609638+00', '2026-11-21 18:50:08.723846+00'),
	(11, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 3, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(14, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 4, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(17, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 5, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(7, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 2, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:12.325997+00', '2026-11-21 18:50:08.609638+00', NULL),
	(10, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 3, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:12.236667+00', '2026-11-21 18:50:08.657591+00', NULL),
	(13, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 4, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:12.209307+00', '2026-11-21 18:50:08.657591+00', NULL),
	(16, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 5, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:13.367021+00', '2026-11-21 18:50:08.657591+00', NULL),
	(20, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 6, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(23, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 7, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.657591+00', '2026-11-21 18:50:08.723846+00'),
	(19, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 6, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:13.063179+00', '2026-11-21 18:50:08.657591+00', NULL),
	(22, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 7, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:12.266446+00', '2026-11-21 18:50:08.657591+00', NULL),
	(24, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 8, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.711952+00', '2026-11-21 18:50:08.711952+00', '2026-11-21 18:50:08.806782+00'),
	(27, '38bf5f38-e788-4e18-ba37-4c3bce7788dc', 9, 'order.created', NULL, 'delivered', 1, 11, '2026-11-21 18:50:08.711952+00', '2026-11-21 18:50:08.711952+00', '2026-11-21 18:50:08.806782+00'),
	(26, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 8, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.711952+00', '2026-11-21 18:50:08.711952+00', '2026-11-21 18:50:08.806782+00'),
	(29, 'e4b4753a-e95c-4be1-9e23-2b5b236269dc', 9, 'order.created', NULL, 'dropped', 1, 11, '2026-11-21 18:50:08.711952+00', '2026-11-21 18:50:08.711952+00', '2026-11-21 18:50:08.806782+00'),
	(25, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 8, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:12.720519+00', '2026-11-21 18:50:08.711952+00', NULL),
	(28, '8b338798-93f2-41ea-99eb-5dd31e06a57b', 9, 'order.created', NULL, 'pending', 1, 11, '2026-11-21 18:50:12.131292+00', '2026-11-21 18:50:08.711952+00', NULL);

INSERT INTO public.delivery_attempts VALUES
	(1, 1, '2026-11-21 18:50:08.535005+00', 2, 200, NULL, '\x'),
	(2, 1, '2026-11-21 18:50:08.535122+00', 2, 410, NULL, '\x'),
	(3, 1, '2026-11-21 18:50:08.535227+00', 2, 500, NULL, '\x'),
	(4, 1, '2026-11-21 18:50:08.535278+00', 2, 404, NULL, '\x'),
	(5, 1, '2026-11-21 18:50:08.699315+00', 1, 200, NULL, '\x'),
	(9, 1, '2026-11-21 18:50:08.699288+00', 2, 200, NULL, '\x'),
	(12, 1, '2026-11-21 18:50:08.699312+00', 2, 200, NULL, '\x'),
	(15, 1, '2026-11-21 18:50:08.699327+00', 2, 200, NULL, '\x'),
	(18, 1, '2026-11-21 18:50:08.700968+00', 4, 200, NULL, '\x'),
	(21, 1, '2026-11-21 18:50:08.700962+00', 4, 200, NULL, '\x'),
	(8, 1, '2026-11-21 18:50:08.699348+00', 6, 404, NULL, '\x'),
	(11, 1, '2026-11-21 18:50:08.699489+00', 6, 404, NULL, '\x'),
	(14, 1, '2026-11-21 18:50:08.699849+00', 6, 404, NULL, '\x'),
	(17, 1, '2026-11-21 18:50:08.699889+00', 6, 404, NULL, '\x'),
	(7, 1, '2026-11-21 18:50:08.70246+00', 3, 500, NULL, '\x'),
	(10, 1, '2026-11-21 18:50:08.702504+00', 3, 500, NULL, '\x'),
	(13, 1, '2026-11-21 18:50:08.702688+00', 4, 500, NULL, '\x'),
	(16, 1, '2026-11-21 18:50:08.702603+00', 4, 500, NULL, '\x'),
	(20, 1, '2026-11-21 18:50:08.70542+00', 2, 404, NULL, '\x'),
	(23, 1, '2026-11-21 18:50:08.705491+00', 2, 404, NULL, '\x'),
	(19, 1, '2026-11-21 18:50:08.70561+00', 2, 500, NULL, '\x'),
	(22, 1, '2026-11-21 18:50:08.705663+00', 2, 500, NULL, '\x'),
	(24, 1, '2026-11-21 18:50:08.780985+00', 4, 200, NULL, '\x'),
	(27, 1, '2026-11-21 18:50:08.780899+00', 4, 200, NULL, '\x'),
	(26, 1, '2026-11-21 18:50:08.780913+00', 4, 404, NULL, '\x'),
	(29, 1, '2026-11-21 18:50:08.78093+00', 4, 404, NULL, '\x'),
	(25, 1, '2026-11-21 18:50:08.782652+00', 3, 500, NULL, '\x'),
	(28, 1, '2026-11-21 18:50:08.782697+00', 3, 500, NULL, '\x');

INSERT INTO public.entries OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, 'top_up', NULL, 1000000, 1000000, NULL, '2026-11-21 18:50:07.528578+00'),
	(6, 2, 1, 'top_up', NULL, -1000000, -1000000, NULL, '2026-11-21 18:50:07.528578+00'),
	(2, 3, 2, 'top_up', NULL, 5000, 5000, NULL, '2026-11-21 18:50:07.528578+00'),
	(6, 4, 2, 'top_up', NULL, -5000, -1005000, NULL, '2026-11-21 18:50:07.528578+00'),
	(3, 5, 3, 'top_up', NULL, 100000, 100000, NULL, '2026-11-21 18:50:07.528578+00'),
	(12, 6, 3, 'top_up', NULL, -100000, -100000, NULL, '2026-11-21 18:50:07.528578+00'),
	(1, 7, 4, 'order', 1, -3000, 997000, NULL, '2026-11-21 18:50:08.538688+00'),
	(5, 8, 4, 'order', 1, 3000, 3000, NULL, '2026-11-21 18:50:08.538688+00'),
	(1, 9, 5, 'order', 2, -6000, 991000, NULL, '2026-11-21 18:50:08.587577+00'),
	(5, 10, 5, 'order', 2, 6000, 9000, NULL, '2026-11-21 18:50:08.587577+00'),
	(1, 11, 6, 'order', 3, -2000, 989000, NULL, '2026-11-21 18:50:08.609719+00'),
	(5, 12, 6, 'order', 3, 2000, 11000, NULL, '2026-11-21 18:50:08.609719+00'),
	(1, 13, 7, 'order', 4, -3000, 986000, NULL, '2026-11-21 18:50:08.619858+00'),
	(5, 14, 7, 'order', 4, 3000, 14000, NULL, '2026-11-21 18:50:08.619858+00'),
	(1, 15, 8, 'order', 5, -3000, 983000, NULL, '2026-11-21 18:50:08.623909+00'),
	(5, 16, 8, 'order', 5, 3000, 17000, NULL, '2026-11-21 18:50:08.623909+00'),
	(1, 17, 9, 'refund', 5, 3000, 986000, NULL, '2026-11-21 18:50:08.627154+00'),
	(5, 18, 9, 'refund', 5, -3000, 14000, NULL, '2026-11-21 18:50:08.627154+00'),
	(1, 19, 10, 'order', 6, -2000, 984000, NULL, '2026-11-21 18:50:08.635865+00'),
	(5, 20, 10, 'order', 6, 2000, 16000, NULL, '2026-11-21 18:50:08.635865+00'),
	(1, 21, 11, 'order', 7, -3000, 981000, NULL, '2026-11-21 18:50:08.645111+00'),
	(5, 22, 11, 'order', 7, 3000, 19000, NULL, '2026-11-21 18:50:08.645111+00'),
	(1, 23, 12, 'order', 8, -3000, 978000, NULL, '2026-11-21 18:50:08.663692+00'),
	(5, 24, 12, 'order', 8, 3000, 22000, NULL, '2026-11-21 18:50:08.663692+00'),
	(1, 25, 13, 'order', 9, -15642, 962358, NULL, '2026-11-21 18:50:08.669079+00'),
	(5, 26, 13, 'order', 9, 15642, 37642, NULL, '2026-11-21 18:50:08.669079+00'),
	(19, 27, 14, 'order', 10, -1500, -1500, NULL, '2026-11-21 18:50:08.675452+00'),
	(20, 28, 14, 'order', 10, 1500, 1500, NULL, '2026-11-21 18:50:08.675452+00'),
	(3, 29, 15, 'order', 11, -1500, 98500, NULL, '2026-11-21 18:50:08.721776+00'),
	(11, 30, 15, 'order', 11, 1500, 1500, NULL, '2026-11-21 18:50:08.721776+00'),
	(2, 31, 16, 'top_up', NULL, 2500, 7500, 'top-1', '2026-11-21 18:50:10.902166+00'),
	(6, 32, 16, 'top_up', NULL, -2500, -1007500, NULL, '2026-11-21 18:50:10.902166+00'),
	(1, 33, 17, 'order', 12, -3000, 959358, NULL, '2026-11-21 18:50:16.197807+00'),
	(5, 34, 17, 'order', 12, 3000, 40642, NULL, '2026-11-21 18:50:16.197807+00');

INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1, 'production', 'order.created', '\x7b226964223a312c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a22463730324652365147384d5036423635535a4d54222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a2273656e74222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a2241636d65222c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a332c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3533383638385a227d', '2026-11-21 18:50:08.538688+00', '2026-11-21 18:50:08.547756+00'),
	(2, 2, 1, 'production', 'order.created', '\x7b226964223a322c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a224637303254315a3945345857384d42304a335243222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a226261746368222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a226d616e75616c222c226c696e65436f756e74223a362c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3538373537375a227d', '2026-11-21 18:50:08.587577+00', '2026-11-21 18:50:08.609638+00'),
	(3, 3, 1, 'production', 'order.created', '\x7b226964223a332c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a22463730324732304b383133315239524544324153222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a22626f756e636564222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a322c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3630393731395a227d', '2026-11-21 18:50:08.609719+00', '2026-11-21 18:50:08.657591+00'),
	(4, 4, 1, 'production', 'order.created', '\x7b226964223a342c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a2246373032463150535a414b593057584658355657222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a227363686564756c6564222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a332c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3631393835385a227d', '2026-11-21 18:50:08.619858+00', '2026-11-21 18:50:08.657591+00'),
	(5, 5, 1, 'production', 'order.created', '\x7b226964223a352c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a224637303251444434353535455a33483944593350222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a2263616e63656c6c6564222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a332c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3632333930395a227d', '2026-11-21 18:50:08.623909+00', '2026-11-21 18:50:08.657591+00'),
	(6, 6, 1, 'production', 'order.created', '\x7b226964223a362c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a2246373032465238454d424233585350305a303532222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a22747265617473222c226769667453656c656374696f6e54797065223a226769667473222c226769667450726f647563744964223a6e756c6c2c226769667473436f6c6c656374696f6e4964223a312c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a226d616e75616c222c226c696e65436f756e74223a322c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3633353836355a227d', '2026-11-21 18:50:08.635865+00', '2026-11-21 18:50:08.657591+00'),
	(7, 7, 1, 'production', 'order.created', '\x7b226964223a372c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a2246373032594e584e344d3443593431323030414b222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a227468616e6b73222c226769667453656c656374696f6e54797065223a226769667473222c226769667450726f647563744964223a6e756c6c2c226769667473436f6c6c656374696f6e4964223a322c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a332c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3634353131315a227d', '2026-11-21 18:50:08.645111+00', '2026-11-21 18:50:08.657591+00'),
	(8, 8, 1, 'production', 'order.created', '\x7b226964223a382c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a22463730324e52504535534841485331524a42504b222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a2274656d706c617465222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a22636f6e6665747469222c2266726f6d4e616d65223a2241636d65222c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a332c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3636333639325a227d', '2026-11-21 18:50:08.663692+00', '2026-11-21 18:50:08.711952+00'),
	(9, 9, 1, 'production', 'order.created', '\x7b226964223a392c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a2246373032333758373658505031425a534a365748222c22637573746f6d65724964223a312c2276616c7565223a33382e352c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a22626f78222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a332c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a226d616e75616c222c226c696e65436f756e74223a332c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3636393037395a227d', '2026-11-21 18:50:08.669079+00', '2026-11-21 18:50:08.711952+00'),
	(10, 10, 2, 'production', 'order.created', '\x7b226964223a31302c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a22463730325a525739365a513642444e364e484851222c22637573746f6d65724964223a322c2276616c7565223a352e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a22696e766f69636564222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a332c22637265617465644279223a332c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3637353435325a227d', '2026-11-21 18:50:08.675452+00', '2026-11-21 18:50:08.711952+00'),
	(11, 11, 1, 'staging', 'order.created', '\x7b226964223a31312c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a2246373032334a54544e5959443044333231424830222c22637573746f6d65724964223a312c2276616c7565223a352e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a2273746167696e67222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a332c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a30382e3732313737365a227d', '2026-11-21 18:50:08.721776+00', '2026-11-21 18:50:08.737159+00'),
	(12, 12, 1, 'production', 'order.created', '\x7b226964223a31322c226576656e74223a226f726465722e63726561746564222c227265666572656e6365223a22463730323058354b59374b5031374a3143595941222c22637573746f6d65724964223a312c2276616c7565223a31302e302c2263757272656e6379223a22474250222c22636f756e747279223a224742222c22736f7572636554797065223a22617069222c2265787465726e616c5265666572656e6365223a2277616974696e67222c226769667453656c656374696f6e54797065223a2267696674222c226769667450726f647563744964223a312c226769667473436f6c6c656374696f6e4964223a6e756c6c2c227772617070696e674b6579223a2264656661756c74222c2266726f6d4e616d65223a6e756c6c2c2264656c69766572794d6f6465223a2273656e64222c226c696e65436f756e74223a332c22637265617465644279223a312c226372656174696f6e44617465223a22323032362d31312d32315431383a35303a31362e3139373830375a227d', '2026-11-21 18:50:16.197807+00', NULL);

INSERT INTO public.line_events VALUES
	(5, 1, 'cancelled', '2026-11-21 18:50:08.627154+00'),
	(5, 2, 'cancelled', '2026-11-21 18:50:08.627154+00'),
	(5, 3, 'cancelled', '2026-11-21 18:50:08.627154+00'),
	(2, 1, 'opened', '2026-11-21 18:50:09.268961+00'),
	(2, 1, 'claimed', '2026-11-21 18:50:09.268961+00'),
	(2, 1, 'chosen', '2026-11-21 18:50:09.268961+00'),
	(2, 1, 'fulfilled', '2026-11-21 18:50:09.268961+00'),
	(2, 2, 'opened', '2026-11-21 18:50:09.338045+00'),
	(2, 2, 'claimed', '2026-11-21 18:50:09.338045+00'),
	(2, 2, 'chosen', '2026-11-21 18:50:09.338045+00'),
	(2, 2, 'fulfilled', '2026-11-21 18:50:09.338045+00'),
	(2, 3, 'opened', '2026-11-21 18:50:09.350498+00'),
	(2, 3, 'claimed', '2026-11-21 18:50:09.350498+00'),
	(2, 3, 'chosen', '2026-11-21 18:50:09.350498+00'),
	(6, 1, 'opened', '2026-11-21 18:50:09.37663+00'),
	(6, 1, 'claimed', '2026-11-21 18:50:09.37663+00'),
	(6, 1, 'chosen', '2026-11-21 18:50:09.385186+00'),
	(6, 2, 'opened', '2026-11-21 18:50:09.389707+00'),
	(6, 2, 'claimed', '2026-11-21 18:50:09.389707+00'),
	(9, 1, 'opened', '2026-11-21 18:50:09.395825+00'),
	(9, 1, 'claimed', '2026-11-21 18:50:09.395825+00'),
	(9, 1, 'chosen', '2026-11-21 18:50:09.395825+00'),
	(9, 1, 'fulfilled', '2026-11-21 18:50:10.351406+00'),
	(9, 2, 'opened', '2026-11-21 18:50:10.455453+00'),
	(9, 2, 'claimed', '2026-11-21 18:50:10.455453+00'),
	(9, 2, 'chosen', '2026-11-21 18:50:10.455453+00');

INSERT INTO public.line_states VALUES
	(5, 1, 'cancelled', NULL, NULL, NULL, NULL, NULL),
	(5, 2, 'cancelled', NULL, NULL, NULL, NULL, NULL),
	(5, 3, 'cancelled', NULL, NULL, NULL, NULL, NULL),
	(2, 1, 'fulfilled', '2026-11-21 18:50:09.268961+00', '2027-11-21 18:50:09.268961+00', 1, 'en', NULL),
	(2, 2, 'fulfilled', '2026-11-21 18:50:09.338045+00', '2027-11-21 18:50:09.338045+00', 1, 'en', NULL),
	(2, 3, 'chosen', '2026-11-21 18:50:09.350498+00', '2027-11-21 18:50:09.350498+00', 1, 'en', NULL),
	(6, 1, 'chosen', '2026-11-21 18:50:09.37663+00', '2027-11-21 18:50:09.37663+00', 2, 'en', NULL),
	(6, 2, 'claimed', '2026-11-21 18:50:09.389707+00', '2027-11-21 18:50:09.389707+00', NULL, 'en', NULL),
	(9, 1, 'fulfilled', '2026-11-21 18:50:09.395825+00', '2027-11-21 18:50:09.395825+00', 3, 'en', '\x0251023cf24b7f1b94d5a233de907f85d08ba7c10a3e0fc3600d74a95f7b5f7bcca0d932641f3a8528f813d8856cb430'),
	(9, 2, 'chosen', '2026-11-21 18:50:10.455453+00', '2027-11-21 18:50:10.455453+00', 3, 'en', '\x0251023ccc04b9f506105e06dd62d2f7bff6e253c4a91869e04980e87e2c9c8c44de0369f8567f39f815fc91d64556a4');

INSERT INTO public.lines VALUES
	(1, 1, 'ada@acme.example', 'Ada', -4006802147295732397, '\x0251023cee6f7c44ececede28e5f864c6e7646f27f576b3623cf6a7921180c82fcf83650f90b14333b9bdacfe5'),
	(1, 2, 'ben@acme.example', NULL, 1374049379396415047, '\x0251023c7ff03139f1bbf39e1fcd7480492015117bd636b306aa73f3d32fd3bc2d5681257c510186401c92e4b7'),
	(1, 3, 'ben@acme.example', NULL, -2294442171547514032, '\x0251023c6de19235412bf7e2accbee09c11d7640ba86c9b3be343015a2d7855f0be63d9d8a03bd7e897dd36c30'),
	(2, 1, NULL, NULL, -5322716444971692188, '\x0251023c4ef0de38c7ae48e80f5fc7604e2b01cb1cb03b5c31925f64bd39fb17aaf7c359a5039c8d4631f4daa7'),
	(2, 2, NULL, NULL, 6989248724893532017, '\x0251023c24ac56c1bced5794da09fcdfe837256bbc0cbbde1ede571714c2f74b625b21a906e93a38e0e40ecb30'),
	(2, 3, NULL, NULL, -6795544443023007146, '\x0251023c04269e61d74c019af4e6f57b70ee068cd6b06604349f2aaa13ae4379d2cbd1701299ac09b1a451a5ee'),
	(2, 4, NULL, NULL, -6639644005460558887, '\x0251023cb4d96c0c562ad22473b1953a84a520fd3df69d047e90307a2c8401c56c3de700066bd864c268d20000'),
	(2, 5, NULL, NULL, -7778086886080949537, '\x0251023c04592f1f924090b470599ffc68a7211871ac49b172eb442ab728013eb7899bc6166d620e1b6e545b2d'),
	(2, 6, NULL, NULL, 2637058783111415019, '\x0251023c4345f6f353aa8a34f0be2fe2cd098578e9a3cd5d4f492e26f76a6033b802b36c5bfa1de489660f4e3d'),
	(3, 1, 'bounced@acme.example', NULL, 2207437472007413688, '\x0251023c184f87d00789ab3190680046b39b7366c6101c1c93e1280b8decd876337c4ed726226d52cdf32527ff'),
	(3, 2, 'later@acme.example', NULL, -2627716981224968091, '\x0251023cc0eddb0024b7be6fea3e3f06b8b06e2f7224cdcb33d52e9cfa7ce712d0c3c9bb7c43047984ff094d0a'),
	(4, 1, 'ada@acme.example', 'Ada', 8248982677167968069, '\x0251023c420ce291bc803db9fb057c0baf9908546093c6e70951d7a904b7ae06e9abde1cb091d40bb5581247e0'),
	(4, 2, 'ben@acme.example', NULL, -2527616150828811947, '\x0251023c64c290041bdc834e7df8fd57b29beb0fa35ca4e7a918780ee6ae90dc49b57182a00f3288def8c3dd75'),
	(4, 3, 'ben@acme.example', NULL, 90379601318552098, '\x0251023c4907c481aa94792e3c5e336f3ddfacdafd64448db4dde97b758bf9f03d18fbf2596b386afe3827bf45'),
	(5, 1, 'ada@acme.example', 'Ada', 3569131594908029444, '\x0251023ce095a34df1433c2f69ff3aec909416043718e15c93d6673d7ca5155d415f20a11cc815599686d07bbf'),
	(5, 2, 'ben@acme.example', NULL, 3691969796068611004, '\x0251023c0e7804d883ff92860d4bd7bdbaa0e8f75b10569954f1f188bc2a9708350b1dfa543b6816f4df3d2732'),
	(5, 3, 'ben@acme.example', NULL, 1928447895933369130, '\x0251023c23ac5d7ad67138f23cf7d352643fddca87cc3495cef9fa7b2acbdf24db0b46a29775a53285778278ed'),
	(6, 1, NULL, NULL, 2592592371376660013, '\x0251023c8db996e3242afadf8375e1776ac0ef6ea778cac24b9da7d96912187173b82ce8f8be4515da234b86e0'),
	(6, 2, NULL, NULL, 7164996101785373142, '\x0251023cb169dc6bb42e6cb61aecaeefe70ceef7fcb1ec45ded97758e5a6ed57e5e194ba261557f1c41cef1bdf'),
	(7, 1, 'ada@acme.example', 'Ada', -3935311410683385954, '\x0251023cf55d70a3f2a556371e9f1561dec798f85fbb1a2b9d8b16edee4adba04597c2c367b22aece8386a9c44'),
	(7, 2, 'ben@acme.example', NULL, -6159109679609822975, '\x0251023c2dad34c19938d6711cecfa824b5fb4922b4487477bb142e699d37eff0f7fd91fc2e6801e84c5d02880'),
	(7, 3, 'ben@acme.example', NULL, -8007001622621176674, '\x0251023cc713e632e4bd8cb22590c9005eb7ee630235c98102f6a6cba0af0b8d7f99fa35440ec00497d9a6be03'),
	(8, 1, 'ada@acme.example', 'Ada', -1719596294078996064, '\x0251023c90ef7b22ca55aa2cb9b7635a0f56dbd44429e2941400aee72d5640f9e6c05f3f9e570d5bb89d4c1ff3'),
	(8, 2, 'ben@acme.example', NULL, 6312808639549084928, '\x0251023c5ce7e6f47a425c6501b4a4c4ca6a57f72a9d4e256de007b78839aa7fb765ec85461d3c8df0da3184f9'),
	(8, 3, 'ben@acme.example', NULL, 6931706203681450755, '\x0251023c8cb1a96e2c51d5c9f9cbd5328c387e2f335a550f3ff1fd45a3bfc3b6b071e929d7f1878caaaafe50cb'),
	(9, 1, NULL, NULL, -6420878350632046953, '\x0251023cf5d2f2b91e68ced29f313589c5b8359d37d6fb63e60453c6362206cf2f64af69c498570b3c2fdd546b'),
	(9, 2, NULL, NULL, -7468778941213997170, '\x0251023c8587143d5d19516f270886214b10aac20e5729584cbb1e5c30bebf02b39d70812ea99f737e5deafa36'),
	(9, 3, NULL, NULL, -5150590345786508175, '\x0251023c14409bc25bad8866985566576603f31d7d2fd8939b5e2f078c1ccdaf5d444c4b36af93855dd5fdbdad'),
	(10, 1, 'ada@acme.example', 'Ada', -4148413379013359396, '\x0251023ca69ad6ba0e9b771c42bf698a90a455da77bcbb2abd8540962aac2ef1999dd0929bf4ad290ee94a8469'),
	(10, 2, 'ben@acme.example', NULL, -7948499388675401691, '\x0251023cd8c6b759a71d43d10717151d92ef4ba8f85586b5aab9467a6b96ec43f9897c8da7d53ad99fa30874c6'),
	(10, 3, 'ben@acme.example', NULL, 5386078910882383865, '\x0251023c645c54f4fcc5f493448ef0369cd1b97ff92a670f5e2e6177e20055f67054227606dbccfa4f80cbef40'),
	(11, 1, 'ada@acme.example', 'Ada', 827198045361407012, '\x0251023c960867fee3c77ed23b3ea3aaa1c7e26798f53e0e7de1bec35da20e8293877912c5aac1d7c4478a3124'),
	(11, 2, 'ben@acme.example', NULL, -9089360656857816616, '\x0251023c8926d20d9ce0fb970bb66bffea9458207f4e13d40583df49e74efa8fb34a140c3c4f187f85e2fe140d'),
	(11, 3, 'ben@acme.example', NULL, 3000392807863912843, '\x0251023c2e39c05795aa02c4ec9af1e26db8bb4f5a5b8ce519a5f641d59fbf2d47ae57a5c3dc841f1ce7d17610'),
	(12, 1, 'ada@acme.example', 'Ada', -6055913666296714622, '\x0251023c6dc361acbd2b4cde36933187f2081eb0978ee27cf7b80bc88b9aaeb10e72568ae4a1f80d66f64b7eba'),
	(12, 2, 'ben@acme.example', NULL, 8818310946183795005, '\x0251023c003f3eed0fd99c5c4a65b07e9440612fe426a1041bdd7e34c7d7201f52a5e698e79398419dd5777ce0'),
	(12, 3, 'ben@acme.example', NULL, 3331331024753612123, '\x0251023c2980ff0f361a2c3dddf556d4988ba4e325d8c6b8d9dc207f7beab0d0cc7bfe629e3f46c8742bf44804');

INSERT INTO public.mail_jobs VALUES
	(1, 'production', '2026-11-21 18:50:08.538688+00', '2026-11-21 18:50:08.548746+00'),
	(4, 'production', '2099-12-24 08:00:00+00', NULL),
	(5, 'production', '2099-12-24 08:00:00+00', '2026-11-21 18:50:08.627154+00'),
	(3, 'production', '2026-11-21 18:50:08.609719+00', '2026-11-21 18:50:08.657641+00'),
	(7, 'production', '2026-11-21 18:50:08.645111+00', '2026-11-21 18:50:08.657641+00'),
	(8, 'production', '2026-11-21 18:50:08.663692+00', '2026-11-21 18:50:08.673325+00'),
	(10, 'production', '2026-11-21 18:50:08.675452+00', '2026-11-21 18:50:08.680063+00'),
	(11, 'staging', '2026-11-21 18:50:08.721776+00', '2026-11-21 18:50:08.737011+00'),
	(12, 'production', '2026-11-21 18:50:16.197807+00', NULL);

INSERT INTO public.messages OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'production', 0, 'ada@acme.example', 'Ada', '{1}', 'sent', 1, '2026-11-21 18:50:08.538688+00', '2026-11-21 18:50:08.538688+00', '-infinity', 1, '2026-11-21 18:50:08.548746+00', '2026-11-21 18:50:08.677167+00', NULL, 'gift'),
	(2, 1, 'production', 0, 'ben@acme.example', NULL, '{2,3}', 'sent', 1, '2026-11-21 18:50:08.538688+00', '2026-11-21 18:50:08.538688+00', '-infinity', 1, '2026-11-21 18:50:08.548746+00', '2026-11-21 18:50:08.677167+00', NULL, 'gift'),
	(7, 8, 'production', 0, 'ada@acme.example', 'Ada', '{1}', 'sent', 1, '2026-11-21 18:50:08.663692+00', '2026-11-21 18:50:08.663692+00', '-infinity', 1, '2026-11-21 18:50:08.673325+00', '2026-11-21 18:50:08.730335+00', NULL, 'gift'),
	(8, 8, 'production', 0, 'ben@acme.example', NULL, '{2,3}', 'sent', 1, '2026-11-21 18:50:08.663692+00', '2026-11-21 18:50:08.663692+00', '-infinity', 1, '2026-11-21 18:50:08.673325+00', '2026-11-21 18:50:08.730335+00', NULL, 'gift'),
	(3, 3, 'production', 0, 'bounced@acme.example', NULL, '{1}', 'bounced', 1, '2026-11-21 18:50:08.609719+00', '2026-11-21 18:50:08.609719+00', '-infinity', 1, '2026-11-21 18:50:08.657641+00', '2026-11-21 18:50:08.724904+00', '550 5.1.1 no such user', 'gift'),
	(4, 3, 'production', 0, 'later@acme.example', NULL, '{2}', 'pending', 1, '2026-11-21 18:50:40.634978+00', '2026-11-21 18:50:40.634978+00', '-infinity', 1, '2026-11-21 18:50:08.657641+00', NULL, '451 4.2.0 try later', 'gift'),
	(5, 7, 'production', 0, 'ada@acme.example', 'Ada', '{1}', 'sent', 1, '2026-11-21 18:50:08.645111+00', '2026-11-21 18:50:08.645111+00', '-infinity', 1, '2026-11-21 18:50:08.657641+00', '2026-11-21 18:50:08.724904+00', NULL, 'gift'),
	(9, 10, 'production', 0, 'ada@acme.example', 'Ada', '{1}', 'sent', 1, '2026-11-21 18:50:08.675452+00', '2026-11-21 18:50:08.675452+00', '-infinity', 1, '2026-11-21 18:50:08.680063+00', '2026-11-21 18:50:08.730371+00', NULL, 'gift'),
	(10, 10, 'production', 0, 'ben@acme.example', NULL, '{2,3}', 'sent', 1, '2026-11-21 18:50:08.675452+00', '2026-11-21 18:50:08.675452+00', '-infinity', 1, '2026-11-21 18:50:08.680063+00', '2026-11-21 18:50:08.730371+00', NULL, 'gift'),
	(6, 7, 'production', 0, 'ben@acme.example', NULL, '{2,3}', 'sent', 1, '2026-11-21 18:50:08.645111+00', '2026-11-21 18:50:08.645111+00', '-infinity', 1, '2026-11-21 18:50:08.657641+00', '2026-11-21 18:50:08.767025+00', NULL, 'gift'),
	(11, 11, 'staging', 0, 'ada@acme.example', 'Ada', '{1}', 'captured', 1, '2026-11-21 18:50:08.721776+00', '2026-11-21 18:50:08.721776+00', '-infinity', 1, '2026-11-21 18:50:08.737011+00', '2026-11-21 18:50:08.787152+00', NULL, 'gift'),
	(12, 11, 'staging', 0, 'ben@acme.example', NULL, '{2,3}', 'captured', 1, '2026-11-21 18:50:08.721776+00', '2026-11-21 18:50:08.721776+00', '-infinity', 1, '2026-11-21 18:50:08.737011+00', '2026-11-21 18:50:08.787152+00', NULL, 'gift'),
	(13, 9, 'production', 1, 'sam@acme.example', NULL, '{1}', 'sent', 1, '2026-11-21 18:50:10.351406+00', '2026-11-21 18:50:10.351406+00', '-infinity', 1, '2026-11-21 18:50:10.351406+00', '2026-11-21 18:50:10.413981+00', NULL, 'shipped');

INSERT INTO public.orders VALUES
	(1, 'F702FR6QG8MP6B65SZMT', 1, 'production', 1, 'api', 'sent', 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 3000, 3, 2, 'send', 'default', 'Acme', 'Thanks!', NULL, NULL, 1, '2026-11-21 18:50:08.538688+00'),
	(2, 'F702T1Z9E4XW8MB0J3RC', 1, 'production', 1, 'api', 'batch', 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 6000, 6, 0, 'manual', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-21 18:50:08.587577+00'),
	(3, 'F702G20K8131R9RED2AS', 1, 'production', 1, 'api', 'bounced', 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 2000, 2, 2, 'send', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-21 18:50:08.609719+00'),
	(4, 'F702F1PSZAKY0WXFX5VW', 1, 'production', 1, 'api', 'scheduled', 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 3000, 3, 2, 'send', 'default', NULL, NULL, '2099-12-24 08:00:00+00', NULL, 1, '2026-11-21 18:50:08.619858+00'),
	(5, 'F702QDD4555EZ3H9DY3P', 1, 'production', 1, 'api', 'cancelled', 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 3000, 3, 2, 'send', 'default', NULL, NULL, '2099-12-24 08:00:00+00', NULL, 1, '2026-11-21 18:50:08.623909+00'),
	(6, 'F702FR8EMBB3XSP0Z052', 1, 'production', 1, 'api', 'treats', 'gifts', NULL, 1, NULL, 'GB', 'GBP', 1000, 2000, 2, 0, 'manual', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-21 18:50:08.635865+00'),
	(7, 'F702YNXN4M4CY41200AK', 1, 'production', 1, 'api', 'thanks', 'gifts', NULL, 2, NULL, 'GB', 'GBP', 1000, 3000, 3, 2, 'send', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-21 18:50:08.645111+00'),
	(8, 'F702NRPE5SHAHS1RJBPK', 1, 'production', 1, 'api', 'template', 'gift', 1, NULL, 1, 'GB', 'GBP', 1000, 3000, 3, 2, 'send', 'confetti', 'Acme', 'Welcome!', NULL, 90, 1, '2026-11-21 18:50:08.663692+00'),
	(9, 'F70237X76XPP1BZSJ6WH', 1, 'production', 1, 'api', 'box', 'gift', 3, NULL, NULL, 'GB', 'GBP', 3850, 15642, 3, 0, 'manual', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-21 18:50:08.669079+00'),
	(10, 'F702ZRW96ZQ6BDN6NHHQ', 2, 'production', 3, 'api', 'invoiced', 'gift', 1, NULL, NULL, 'GB', 'GBP', 500, 1500, 3, 2, 'send', 'default', NULL, NULL, NULL, NULL, NULL, '2026-11-21 18:50:08.675452+00'),
	(11, 'F7023JTTNYYD0D321BH0', 1, 'staging', 1, 'api', 'staging', 'gift', 1, NULL, NULL, 'GB', 'GBP', 500, 1500, 3, 2, 'send', 'default', NULL, NULL, NULL, NULL, 3, '2026-11-21 18:50:08.721776+00'),
	(12, 'F7020X5KY7KP17J1CYYA', 1, 'production', 1, 'api', 'waiting', 'gift', 1, NULL, NULL, 'GB', 'GBP', 1000, 3000, 3, 2, 'send', 'default', NULL, NULL, NULL, NULL, 1, '2026-11-21 18:50:16.197807+00');

INSERT INTO public.pin_failures VALUES
	(false, -7778086886080949537, 3, 0, '2000-01-01 00:00:00+00', '2026-11-21 18:50:09.370796+00');

INSERT INTO public.products OVERRIDING SYSTEM VALUE VALUES
	(1, 'coffee', 'Coffee House', true, 'GBP', '{GB}', '{500,1000,2500}', NULL, NULL, NULL, NULL, '{}', '{}', NULL, true),
	(2, 'cinema', 'Cinema', true, 'GBP', '{GB}', '{1000}', NULL, NULL, NULL, NULL, '{}', '{}', NULL, true),
	(3, 'hamper', 'Hamper', false, 'GBP', '{}', '{}', NULL, NULL, 3500, 10, '{"GB": 495}', '{"GB": 20.0}', NULL, true);

INSERT INTO public.service_accounts OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'hr-bot', 'HR bot', true, '2026-11-21 18:50:07.528578+00'),
	(2, 1, 'idle', 'Idle bot', false, '2026-11-21 18:50:07.528578+00'),
	(3, 2, 'rewards', 'Rewards', true, '2026-11-21 18:50:07.528578+00');

INSERT INTO public.shipments OVERRIDING SYSTEM VALUE VALUES
	(1, 9, 1, 'production', 3, 'GB', '\x0251023cd51481d8414b6eef97d1cb478ff4f1f18cdb7d991b64132292ed6669f63cb1c101d24b7d1b7943da6863f1c19436e52685051c53fbc6750c19e5d58f190506dd3f2ec4047e5b89c2c9ee300c7aeb88a3230b62b92cf80dd0528b8e92e5bd20939652a8643dd5dab22fda8968a8d63e933224a8eecd8843feac9bdf20f10e8337c4e2830c909157e90c8423f0f76ab73669fb531de19ec774ae763346', '2026-11-21 18:50:09.406087+00', '2026-11-21 18:50:09.837871+00', '2026-11-21 18:50:10.351406+00', 'Post', 'AB1'),
	(2, 9, 2, 'production', 3, 'GB', '\x0251023c2f8022b505f3e3ff029d15963e087cbbcf4fe55c2157afa87225f8c45369472407c82ea4dd25eaf3f17fe2ff3fe1ba6b8828a05c52c143fd0b8ad491130520d65dfc32f180eb9ac77bee8e4116318eff774733027f6063522cf57e838acad40809d4b9c69564edcc20379bde775678a7eeb9325500be7718ba41a9a592b2b26e46b0d0b2e684525088f0d8a18fda8964f433a43246aebdce3d974561', '2026-11-21 18:50:10.46591+00', NULL, NULL, NULL, NULL);

INSERT INTO public.templates OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'welcome', 'Welcome', 1, NULL, 'Coffee House', 1000, 'GBP', 'GB', 'confetti', 'Acme', 'Welcome!', 90, '2026-11-21 18:50:07.528578+00');

INSERT INTO public.users OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'ada@acme.example', 'Ada', 'admin', true, '2026-11-21 18:50:07.528578+00', NULL),
	(2, 1, 'bob@acme.example', 'Bob', 'member', false, '2026-11-21 18:50:07.528578+00', NULL);

INSERT INTO public.voucher_waits OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 1000, 2, 3, '2026-11-21 18:50:09.350498+00'),
	(2, 2, 1000, 6, 1, '2026-11-21 18:50:09.385186+00');

INSERT INTO public.vouchers OVERRIDING SYSTEM VALUE VALUES
	(3, 1, 500, 7794461129975461519, '\x0251023c04574ef26bd943f3b288fb11ee419022939088672264b52eaf64df3cbf0cc525bf4e10b2a4529c0c882b85838e02fda3677c', false, '2026-11-21 18:50:09.181263+00', NULL, NULL, NULL),
	(1, 1, 1000, 2632534360985251814, '\x0251023c8ad97088fdb0049280d035e71351219ad008da5e3793160c7b3f40b0cd9cb19a7e57eb90c0e56358610f9181b0c5bde83b3c', false, '2026-11-21 18:50:09.181263+00', 2, 1, '2026-11-21 18:50:09.268961+00'),
	(2, 1, 1000, -2245287169229865613, '\x0251023cfbbf0c8ca19f46451fae249909e234ac7be1ca0e65ec5195a06f142b13d00192dbc698cd94ae2080836b296b8bad81b0976d', false, '2026-11-21 18:50:09.181263+00', 2, 2, '2026-11-21 18:50:09.338045+00');

INSERT INTO public.webhook_lanes VALUES
	('38bf5f38-e788-4e18-ba37-4c3bce7788dc', 'infinity', false, '-infinity', 3),
	('e4b4753a-e95c-4be1-9e23-2b5b236269dc', 'infinity', false, '-infinity', 3),
	('8b338798-93f2-41ea-99eb-5dd31e06a57b', '2026-11-21 18:50:12.131292+00', true, '-infinity', 3);

INSERT INTO public.webhook_subscriptions VALUES
	('38bf5f38-e788-4e18-ba37-4c3bce7788dc', 1, 'production', 'order.created', 'http://127.0.0.1:34713/200', '\x0251023cf0bcc93c1c7341337740f370d3617193b87ed44a0110c7fb9e54326799625e32effe04b69ee65618667e27a3c7fbb1b9aa39ff57bbbda1b11151cf04d9520e482cab81c1e41c269b22e16a34e4', 1, '2026-11-21 18:50:08.512091+00'),
	('8b338798-93f2-41ea-99eb-5dd31e06a57b', 1, 'production', 'order.created', 'http://127.0.0.1:34713/500', '\x0251023c9d110e9e2c068fa7687c9243ef6404fd893eb259aef322a8d49dcd184b96f43539fcda413cbb303c0e2098e43ac4040fbdcbfdf1e3b38995f5074d29c05bfaef97ad3aba1175673f05f23975bf', 1, '2026-11-21 18:50:08.520512+00'),
	('e4b4753a-e95c-4be1-9e23-2b5b236269dc', 1, 'production', 'order.created', 'http://127.0.0.1:34713/404', '\x0251023cd4bafa006d6d81f815a43c47a5f33ead7658f222718339d598751b44aeb083944e5834cb564b4543b584158b4d6e1a97834963d8f0f365b200016e6e68f43e51ef1edfad7f8c921628fb6728f7', 1, '2026-11-21 18:50:08.5232+00');

SELECT pg_catalog.setval('public.accounts_id_seq', 27, true);

SELECT pg_catalog.setval('public.api_keys_id_seq', 3, true);

SELECT pg_catalog.setval('public.captured_mail_id_seq', 2, true);

SELECT pg_catalog.setval('public.code_readings_id_seq', 1, false);

SELECT pg_catalog.setval('public.collections_id_seq', 2, true);

SELECT pg_catalog.setval('public.customers_id_seq', 2, true);

SELECT pg_catalog.setval('public.deliveries_id_seq', 29, true);

SELECT pg_catalog.setval('public.entries_id_seq', 34, true);

SELECT pg_catalog.setval('public.events_id_seq', 12, true);

SELECT pg_catalog.setval('public.messages_id_seq', 13, true);

SELECT pg_catalog.setval('public.movements_id_seq', 17, true);

SELECT pg_catalog.setval('public.orders_id_seq', 12, true);

SELECT pg_catalog.setval('public.products_id_seq', 3, true);

SELECT pg_catalog.setval('public.service_accounts_id_seq', 3, true);

SELECT pg_catalog.setval('public.shipments_id_seq', 2, true);

SELECT pg_catalog.setval('public.templates_id_seq', 1, true);

SELECT pg_catalog.setval('public.users_id_seq', 2, true);

SELECT pg_catalog.setval('public.voucher_waits_id_seq', 2, true);

SELECT pg_catalog.setval('public.vouchers_id_seq', 3, true);

ALTER TABLE ONLY public.account_service_accounts
    ADD CONSTRAINT account_service_accounts_pkey PRIMARY KEY (account_id, service_account_id);

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_customer_id_key_key UNIQUE (customer_id, key);

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_customer_id_key_key UNIQUE (customer_id, key);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.captured_mail
    ADD CONSTRAINT captured_mail_message_id_key UNIQUE (message_id);

ALTER TABLE ONLY public.captured_mail
    ADD CONSTRAINT captured_mail_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.catalogue_version
    ADD CONSTRAINT catalogue_version_pkey PRIMARY KEY (one);

ALTER TABLE ONLY public.claim_addresses
    ADD CONSTRAINT claim_addresses_pkey PRIMARY KEY (address);

ALTER TABLE ONLY public.clock
    ADD CONSTRAINT clock_pkey PRIMARY KEY (one);

ALTER TABLE ONLY public.code_readings
    ADD CONSTRAINT code_readings_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.collections
    ADD CONSTRAINT collections_key_key UNIQUE (key);

ALTER TABLE ONLY public.collections
    ADD CONSTRAINT collections_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.currencies
    ADD CONSTRAINT currencies_code_key UNIQUE (code);

ALTER TABLE ONLY public.currencies
    ADD CONSTRAINT currencies_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.customers
    ADD CONSTRAINT customers_key_key UNIQUE (key);

ALTER TABLE ONLY public.customers
    ADD CONSTRAINT customers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.delivery_attempts
    ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (delivery_id, number);

ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (account_id, id);

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.line_events
    ADD CONSTRAINT line_events_pkey PRIMARY KEY (order_id, number, event);

ALTER TABLE ONLY public.line_states
    ADD CONSTRAINT line_states_pkey PRIMARY KEY (order_id, number);

ALTER TABLE ONLY public.lines
    ADD CONSTRAINT lines_pkey PRIMARY KEY (order_id, number);

ALTER TABLE ONLY public.mail_jobs
    ADD CONSTRAINT mail_jobs_pkey PRIMARY KEY (order_id);

ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_once UNIQUE (order_id, email, kind, edition);

ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.pin_failures
    ADD CONSTRAINT pin_failures_pkey PRIMARY KEY (decoy, key);

ALTER TABLE ONLY public.products
    ADD CONSTRAINT products_key_key UNIQUE (key);

ALTER TABLE ONLY public.products
    ADD CONSTRAINT products_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.service_accounts
    ADD CONSTRAINT service_accounts_customer_id_key_key UNIQUE (customer_id, key);

ALTER TABLE ONLY public.service_accounts
    ADD CONSTRAINT service_accounts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.shipments
    ADD CONSTRAINT shipments_order_id_number_key UNIQUE (order_id, number);

ALTER TABLE ONLY public.shipments
    ADD CONSTRAINT shipments_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_customer_id_key_key UNIQUE (customer_id, key);

ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.voucher_waits
    ADD CONSTRAINT voucher_waits_order_id_number_key UNIQUE (order_id, number);

ALTER TABLE ONLY public.voucher_waits
    ADD CONSTRAINT voucher_waits_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.vouchers
    ADD CONSTRAINT vouchers_lookup_key UNIQUE (lookup);

ALTER TABLE ONLY public.vouchers
    ADD CONSTRAINT vouchers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhook_lanes
    ADD CONSTRAINT webhook_lanes_pkey PRIMARY KEY (subscription_id);

ALTER TABLE ONLY public.webhook_subscriptions
    ADD CONSTRAINT webhook_subscriptions_pkey PRIMARY KEY (id);

CREATE UNIQUE INDEX accounts_own ON public.accounts USING btree (customer_id, environment, currency, kind) WHERE (kind <> 'funding'::text);

CREATE INDEX captured_mail_newest ON public.captured_mail USING btree (environment, id);

CREATE INDEX captured_mail_old ON public.captured_mail USING brin (captured_at) WITH (autosummarize='on');

CREATE INDEX code_readings_order ON public.code_readings USING btree (order_id);

CREATE INDEX deliveries_newest ON public.deliveries USING btree (subscription_id, id);

CREATE INDEX deliveries_old ON public.deliveries USING brin (created_at) WITH (autosummarize='on');

CREATE INDEX deliveries_pending ON public.deliveries USING btree (subscription_id, due_at) WHERE (state = 'pending'::text);

CREATE INDEX delivery_attempts_old ON public.delivery_attempts USING brin (started_at) WITH (autosummarize='on');

CREATE UNIQUE INDEX entries_reference ON public.entries USING btree (account_id, reference) WHERE (reference IS NOT NULL);

CREATE INDEX events_old ON public.events USING brin (created_at) WITH (autosummarize='on');

CREATE INDEX events_waiting ON public.events USING btree (id) WHERE (fanned_out_at IS NULL);

CREATE INDEX line_states_expiring ON public.line_states USING btree (expires_at) WHERE ((state = ANY (ARRAY['claimed'::text, 'chosen'::text])) AND (expires_at IS NOT NULL));

CREATE UNIQUE INDEX lines_code_lookup ON public.lines USING btree (code_lookup);

CREATE INDEX mail_jobs_waiting ON public.mail_jobs USING btree (due_at) WHERE (fanned_out_at IS NULL);

CREATE INDEX messages_pending ON public.messages USING btree (rank_at) WHERE (state = 'pending'::text);

CREATE UNIQUE INDEX orders_external_reference ON public.orders USING btree (external_reference, customer_id, environment) WHERE (external_reference IS NOT NULL);

CREATE INDEX orders_newest ON public.orders USING btree (((customer_id + 0)), environment, ((id + 0)));

CREATE UNIQUE INDEX orders_reference ON public.orders USING btree (reference);

CREATE INDEX shipments_open ON public.shipments USING btree (environment, id) WHERE (shipped_at IS NULL);

CREATE INDEX templates_newest ON public.templates USING btree (customer_id, id);

CREATE UNIQUE INDEX users_email ON public.users USING btree (customer_id, lower(email));

CREATE INDEX voucher_waits_next ON public.voucher_waits USING btree (product_id, value_minor, since, id);

CREATE INDEX vouchers_free ON public.vouchers USING btree (product_id, value_minor, id) WHERE (order_id IS NULL);

CREATE UNIQUE INDEX vouchers_line ON public.vouchers USING btree (order_id, number) WHERE (order_id IS NOT NULL);

CREATE INDEX webhook_lanes_due ON public.webhook_lanes USING btree (failing, due_at) WHERE (due_at < 'infinity'::timestamp with time zone);

CREATE INDEX webhook_subscriptions_customer ON public.webhook_subscriptions USING btree (customer_id, environment, created_at);

CREATE TRIGGER catalogue_changed AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.collections FOR EACH STATEMENT EXECUTE FUNCTION public.catalogue_changed();

CREATE TRIGGER catalogue_changed AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.products FOR EACH STATEMENT EXECUTE FUNCTION public.catalogue_changed();

CREATE TRIGGER entries_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.entries FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change();

CREATE TRIGGER line_states_forwards BEFORE DELETE OR UPDATE OF state ON public.line_states FOR EACH ROW EXECUTE FUNCTION public.refuse_backwards();

ALTER TABLE ONLY public.account_service_accounts
    ADD CONSTRAINT account_service_accounts_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id);

ALTER TABLE ONLY public.account_service_accounts
    ADD CONSTRAINT account_service_accounts_service_account_id_fkey FOREIGN KEY (service_account_id) REFERENCES public.service_accounts(id);

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_currency_fkey FOREIGN KEY (currency) REFERENCES public.currencies(code);

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_service_account_id_fkey FOREIGN KEY (service_account_id) REFERENCES public.service_accounts(id);

ALTER TABLE ONLY public.collections
    ADD CONSTRAINT collections_currency_fkey FOREIGN KEY (currency) REFERENCES public.currencies(code);

ALTER TABLE ONLY public.collections
    ADD CONSTRAINT collections_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id);

ALTER TABLE ONLY public.products
    ADD CONSTRAINT products_currency_fkey FOREIGN KEY (currency) REFERENCES public.currencies(code);

ALTER TABLE ONLY public.service_accounts
    ADD CONSTRAINT service_accounts_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id);

ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_currency_fkey FOREIGN KEY (currency) REFERENCES public.currencies(code);

ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id);

ALTER TABLE ONLY public.vouchers
    ADD CONSTRAINT vouchers_product_id_fkey FOREIGN KEY (product_id) REFERENCES public.products(id);

ALTER TABLE ONLY public.webhook_lanes
    ADD CONSTRAINT webhook_lanes_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES public.webhook_subscriptions(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhook_subscriptions
    ADD CONSTRAINT webhook_subscriptions_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES public.customers(id);

ALTER TABLE ONLY public.webhook_subscriptions
    ADD CONSTRAINT webhook_subscriptions_service_account_id_fkey FOREIGN KEY (service_account_id) REFERENCES public.service_accounts(id);
