-- The views of the list of orders that a person has saved: `query` holds the filters and the order as parameters of an address. What was
-- searched for is not saved, as it may be a recipient's name or address.
CREATE SEQUENCE saved_views_id_seq AS integer;
CREATE TABLE saved_views (
    customer_id integer NOT NULL,
    id          integer NOT NULL DEFAULT nextval('saved_views_id_seq'),
    environment text NOT NULL,
    user_id     integer NOT NULL,
    name        text NOT NULL,
    query       text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_now(),
    PRIMARY KEY (customer_id, id),
    UNIQUE (customer_id, environment, user_id, name)
);
