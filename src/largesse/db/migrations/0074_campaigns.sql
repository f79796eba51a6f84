-- One link for so many gifts until a date. The money is reserved as an order of so many codes, of which each visitor gets one.
--   user_id          who reserved it
--   token            names the campaign in its link
--   order_reference  the order of its gifts, and before that the draft that becomes the order
--   gifts            how many
--   given_through    the codes up to this number are given, or were cancelled
--   greeting         what visitors read on its page
--   domains          addresses of these may take part; none: those in `campaign_people`
--   paused_at        visitors get nothing for now
--   due_at           when the worker looks whether it is over
--   ended_at         its rest was refunded, or it was never reserved and its time has long been over
CREATE SEQUENCE campaigns_id_seq AS integer;
CREATE TABLE campaigns (
    customer_id     integer NOT NULL,
    id              integer NOT NULL DEFAULT nextval('campaigns_id_seq'),
    environment     text NOT NULL CHECK (environment IN ('production', 'staging')),
    name            text NOT NULL,
    user_id         integer NOT NULL,
    token           text COLLATE "C" NOT NULL UNIQUE,
    order_reference text COLLATE "C" NOT NULL,
    gifts           integer NOT NULL CHECK (gifts BETWEEN 1 AND 5000),
    given_through   integer NOT NULL DEFAULT 0 CHECK (given_through >= 0),
    greeting        text,
    domains         text[] NOT NULL,
    opens_at        timestamptz NOT NULL,
    closes_at       timestamptz NOT NULL,
    paused_at       timestamptz,
    due_at          timestamptz NOT NULL,
    ended_at        timestamptz,
    created_at      timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (customer_id, id),
    UNIQUE (customer_id, order_reference)
);
CREATE INDEX campaigns_to_end ON campaigns (due_at) WHERE ended_at IS NULL;

-- Mailboxes that may take part in a campaign without domains, and those that have a gift of any campaign. `number` is the gift's line; null: it has none yet.
CREATE TABLE campaign_people (
    customer_id integer NOT NULL,
    environment text NOT NULL,
    campaign_id integer NOT NULL,
    mailbox     text COLLATE "C" NOT NULL,
    number      integer,
    taken_at    timestamptz,
    PRIMARY KEY (customer_id, campaign_id, mailbox),
    UNIQUE (customer_id, campaign_id, number),
    CHECK ((number IS NULL) = (taken_at IS NULL))
);

-- What visitors asked codes for: any address, whether it may take part or not. The states:
--   new      the worker has still to decide
--   mailed   a code was mailed, and is worth a gift until it expires
--   ignored  the address may not take part, or was mailed often enough
CREATE SEQUENCE campaign_asks_id_seq AS integer;
CREATE TABLE campaign_asks (
    customer_id integer NOT NULL,
    id          integer NOT NULL DEFAULT nextval('campaign_asks_id_seq'),
    environment text NOT NULL,
    campaign_id integer NOT NULL,
    mailbox     text COLLATE "C" NOT NULL,
    email       text NOT NULL,
    language    text NOT NULL,
    state       text NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'mailed', 'ignored')),
    asked_at    timestamptz NOT NULL,
    PRIMARY KEY (customer_id, id)
);
CREATE INDEX campaign_asks_new ON campaign_asks (asked_at) WHERE state = 'new';
CREATE INDEX campaign_asks_of_mailbox ON campaign_asks (customer_id, campaign_id, mailbox, id);
CREATE INDEX campaign_asks_mailed ON campaign_asks (customer_id, campaign_id, asked_at) WHERE state = 'mailed';
CREATE INDEX campaign_asks_old ON campaign_asks (asked_at);

-- A visitor's code is a message of its own kind. It is about no line: its line number is the number of what was asked, below zero.
ALTER TABLE messages
    DROP CONSTRAINT messages_kind_check,
    ADD CONSTRAINT messages_kind_check CHECK (
        kind IN ('gift', 'voucher_ready', 'shipped', 'reminder_1', 'reminder_2', 'reminder_3', 'reminder_last', 'campaign_code'));

ALTER TABLE erasures ADD COLUMN campaigns integer NOT NULL DEFAULT 0;

-- The campaign of a link. Anybody with the link may see it.
CREATE FUNCTION campaign_of_token(wanted text, wanted_environment text) RETURNS TABLE (customer_id integer, id integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT customer_id, id FROM campaigns WHERE token = wanted AND environment = wanted_environment;
END $$;
