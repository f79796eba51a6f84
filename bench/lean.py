"""A reference that no release changes: the least tables that an order needs, and one SQL function that writes to them.

The tables of the product's own reference (bench/reference.py) grow with the product's, so that the ratio to it hides what an order has come
to cost. These stay as they are: whole numbers and texts, a primary key each, the look-ups that an order cannot do without, and no
checks, policies, marks or triggers. An order writes an order, two lines with sealed codes, two entries, two balances, an event and a mail job.
"""

from functools import partial

from bench import reference
from bench.installation import Installation
from bench.results import Sample
from bench.suite import watched

DATABASE = "lean"
_CLIENTS = 32
# Never change these: results of all releases are compared with them.
_SCHEMA = """
CREATE TABLE accounts (id integer PRIMARY KEY, balance_minor bigint NOT NULL) WITH (fillfactor = 20);
CREATE TABLE orders (
    id integer PRIMARY KEY, reference text NOT NULL UNIQUE, customer_id integer NOT NULL, external_reference text NOT NULL,
    account_id integer NOT NULL, product_id integer NOT NULL, currency text NOT NULL, value_minor bigint NOT NULL,
    total_minor bigint NOT NULL, from_name text NOT NULL, message text NOT NULL, created_at timestamptz NOT NULL,
    UNIQUE (customer_id, external_reference));
CREATE TABLE lines (
    order_id integer, number integer, recipient_email text NOT NULL, recipient_name text NOT NULL,
    code_lookup bigint NOT NULL UNIQUE, sealed bytea NOT NULL, PRIMARY KEY (order_id, number));
CREATE TABLE entries (
    account_id integer, id bigint GENERATED ALWAYS AS IDENTITY, order_id integer NOT NULL, amount_minor bigint NOT NULL,
    balance_minor bigint NOT NULL, created_at timestamptz NOT NULL, PRIMARY KEY (account_id, id));
CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_id integer NOT NULL, order_id integer NOT NULL, body text NOT NULL);
CREATE TABLE mail_jobs (order_id integer PRIMARY KEY, due_at timestamptz NOT NULL);
CREATE SEQUENCE orders_id_seq AS integer;
CREATE FUNCTION place_order(customer integer, payer integer, sales integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    new_id integer := nextval('orders_id_seq');
    paid bigint;
    sold bigint;
BEGIN
    INSERT INTO orders VALUES (
        new_id, upper(left(replace(gen_random_uuid()::text, '-', ''), 20)), customer, 'bench000-' || lpad(new_id::text, 11, '0'), payer, 1, 'GBP',
        1000, 2000, 'Acme People Team', 'Thank you for a wonderful year!', now());
    INSERT INTO lines SELECT
        new_id, number, 'ada.lovelace@example.com', 'Ada Lovelace', random(-9223372036854775808, 9223372036854775807),
        uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) FROM generate_series(1, 2) AS number;
    INSERT INTO events (customer_id, order_id, body) VALUES (customer, new_id, repeat('{"member": "of an event"}', 20));
    INSERT INTO mail_jobs VALUES (new_id, now());
    UPDATE accounts SET balance_minor = balance_minor - 2000 WHERE id = payer RETURNING balance_minor INTO STRICT paid;
    UPDATE accounts SET balance_minor = balance_minor + 2000 WHERE id = sales RETURNING balance_minor INTO STRICT sold;
    INSERT INTO entries (account_id, order_id, amount_minor, balance_minor, created_at)
    VALUES (payer, new_id, -2000, paid, now()), (sales, new_id, 2000, sold, now());
    RETURN new_id;
END $$;
"""


def prepare(made: Installation, *, customers: int = 1, accounts: int = 1) -> str:
    """Makes the database with so many accounts of each customer; returns what pgbench runs."""
    made.sql(f'CREATE DATABASE "{DATABASE}"')
    made.connected(lambda connection: connection.execute(_SCHEMA), made.url_of(DATABASE))
    payers = customers * accounts
    fill = "INSERT INTO accounts SELECT n, 1000000000000 FROM generate_series(0, $1::int - 1) AS n"
    made.sql(fill, payers + customers, url=made.url_of(DATABASE))
    return (
        f"\\set payer random(0, {payers - 1})\n\\set customer :payer / {accounts}\n\\set sales {payers} + :customer\n"
        "SELECT place_order(:customer, :payer, :sales);\n"
    )


def commit(made: Installation, script: str, seconds: float) -> Sample:
    """Orders from pgbench, one a commit."""
    run = partial(reference.run, made, clients=_CLIENTS, seconds=seconds, database=DATABASE, script=script)
    return watched(made, None, lambda: run().rate, database=DATABASE)
