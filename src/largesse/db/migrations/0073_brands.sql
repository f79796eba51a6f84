-- How a customer's mail and claim pages look. Each column is null for what is the service's own.
CREATE TABLE brands (
    customer_id integer PRIMARY KEY REFERENCES customers (id),
    colour      text CHECK (colour ~ '^#[0-9a-f]{6}$'),
    logo        text,
    sender_name text CHECK (length(sender_name) BETWEEN 1 AND 60),
    reply_to    text,
    subject     text CHECK (length(subject) BETWEEN 1 AND 100),
    footer      text CHECK (length(footer) BETWEEN 1 AND 600)
);

-- Wrappings of a customer's own. Orders name them by their key; `picture` is printed on the paper instead of the pattern.
CREATE TABLE own_wrappings (
    customer_id integer NOT NULL REFERENCES brands (customer_id),
    key         text NOT NULL CHECK (length(key) BETWEEN 1 AND 64),
    name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 40),
    pattern     text NOT NULL,
    paper       text NOT NULL CHECK (paper ~ '^#[0-9a-f]{6}$'),
    ribbon      text NOT NULL CHECK (ribbon ~ '^#[0-9a-f]{6}$'),
    picture     text,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (customer_id, key)
);

-- Their pictures. The name is made of the content, and is all that is needed to see one: it stands in mail and on claim pages.
CREATE TABLE brand_pictures (
    customer_id integer NOT NULL REFERENCES customers (id),
    name        text NOT NULL,
    content     bytea NOT NULL CHECK (length(content) BETWEEN 1 AND 262144),
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (customer_id, name)
);
CREATE INDEX brand_pictures_by_name ON brand_pictures (name);

-- A picture by its name. Anybody with the name may see it, because the pages and mails that show it are not signed in.
CREATE FUNCTION brand_picture(of_name text) RETURNS bytea
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN (SELECT content FROM brand_pictures WHERE name = of_name LIMIT 1);
END $$;
