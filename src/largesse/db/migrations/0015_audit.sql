-- The keys of chains. Only a process with the master key can make a mark with one. Each is random and stored encrypted, so that
-- replacing the master key leaves every chain as it is. Each mark begins with the `number` of its key.
CREATE TABLE chain_keys (
    number  smallint PRIMARY KEY CHECK (number BETWEEN 1 AND 255),
    sealed  bytea NOT NULL,
    made_at timestamptz NOT NULL
);

-- The audit log: who did what to what, written in the transaction of the act and never changed. `customer_id` is 0 for the
-- installation's own entries. No foreign keys: an entry outlives the rows that it names.
--   actor      a `person` (`actor_id` is of `users`), a `key` (of `api_keys`), a `command` or the `worker`; `actor_name` for people
--   act        what was done, as largesse.audit.acts lists it; `subject` what to
--   before, after  what of it changed, as the JSON text that the mark was made of; never a secret
--   mac        the mark: of the row and of the one before it of its customer (docs/decisions/0030-chains.md)
CREATE SEQUENCE audit_events_id_seq;
CREATE TABLE audit_events (
    customer_id integer NOT NULL,
    id          bigint NOT NULL DEFAULT nextval('audit_events_id_seq'),
    at          timestamptz NOT NULL,
    environment text CHECK (environment IN ('production', 'staging')),
    actor       text NOT NULL CHECK (actor IN ('person', 'key', 'command', 'worker')),
    actor_id    integer,
    actor_name  text NOT NULL,
    address     text,
    request_id  text,
    act         text NOT NULL,
    subject     text NOT NULL,
    before      json,
    after       json,
    mac         bytea NOT NULL,
    PRIMARY KEY (customer_id, id),
    CHECK ((actor IN ('person', 'key')) = (actor_id IS NOT NULL))
);
CREATE INDEX audit_events_of_customer ON audit_events (customer_id, at, id);
CREATE INDEX audit_events_at ON audit_events (at, id);
CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Where the log of a customer ends: what the next mark is made of beside its row, and what no row tells.
CREATE TABLE audit_heads (
    customer_id integer PRIMARY KEY,
    head        bytea NOT NULL
) WITH (fillfactor = 50);
