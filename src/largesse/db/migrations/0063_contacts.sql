-- People whom a customer sends to, with what it keeps about each. `email_key` is the address in small letters: one contact an address.
-- `sought` is the name and the address without letter case and accents: what lists are sorted and searched by. A birthday is the month times
-- 100 and the day, without a year. `left_at` is when somebody was marked as having left: they get nothing any more, and are deleted later.
CREATE SEQUENCE contacts_id_seq AS integer;
CREATE TABLE contacts (
    customer_id    integer NOT NULL,
    environment    text NOT NULL,
    id             integer NOT NULL DEFAULT nextval('contacts_id_seq'),
    email          text NOT NULL,
    email_key      text NOT NULL,
    name           text NOT NULL,
    sought         text COLLATE "C" NOT NULL,
    language       text,
    country        text,
    sealed_address bytea,
    birthday       smallint CHECK (birthday > 100 AND birthday < 1232 AND birthday % 100 > 0 AND birthday % 100 < 32),
    start_date     date,
    external_id    text,
    own_fields     jsonb NOT NULL DEFAULT '{}',
    left_at        timestamptz,
    created_at     timestamptz NOT NULL DEFAULT clock_now(),
    changed_at     timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (customer_id, id),
    UNIQUE (customer_id, environment, email_key),
    UNIQUE (customer_id, environment, external_id)
);
CREATE INDEX contacts_by_name ON contacts (customer_id, environment, sought, id);
CREATE INDEX contacts_left ON contacts (left_at) WHERE left_at IS NOT NULL;

-- Groups of contacts, by name.
CREATE SEQUENCE contact_groups_id_seq AS integer;
CREATE TABLE contact_groups (
    customer_id integer NOT NULL,
    environment text NOT NULL,
    id          integer NOT NULL DEFAULT nextval('contact_groups_id_seq'),
    name        text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (customer_id, id)
);
CREATE UNIQUE INDEX contact_groups_by_name ON contact_groups (customer_id, environment, lower(name));

-- Who is in which group, and since which day.
CREATE TABLE contact_members (
    customer_id integer NOT NULL,
    environment text NOT NULL,
    group_id    integer NOT NULL,
    contact_id  integer NOT NULL,
    joined_on   date NOT NULL,
    PRIMARY KEY (customer_id, group_id, contact_id),
    FOREIGN KEY (customer_id, group_id) REFERENCES contact_groups ON DELETE CASCADE,
    FOREIGN KEY (customer_id, contact_id) REFERENCES contacts ON DELETE CASCADE
);
CREATE INDEX contact_members_of ON contact_members (customer_id, contact_id);

-- The fields that a customer defines for its contacts, at most ten. `key` is the member of `own_fields`, and what messages name it by.
CREATE TABLE contact_fields (
    customer_id integer NOT NULL,
    environment text NOT NULL,
    key         text NOT NULL,
    name        text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (customer_id, environment, key)
);

-- How many contacts an erasure deleted.
ALTER TABLE erasures ADD COLUMN contacts integer NOT NULL DEFAULT 0;

-- Keys may be narrowed to contacts.
ALTER TABLE api_keys DROP CONSTRAINT api_keys_scopes_check;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_scopes_check
    CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read', 'send', 'codes', 'webhooks', 'contacts']);
