-- Pictures of products, named by their content. None is ever deleted: mail that was sent names it.
CREATE TABLE pictures (
    name    text PRIMARY KEY CHECK (name ~ '^[0-9a-f]{32}\.(png|jpg|webp)$'),
    content bytea NOT NULL CHECK (length(content) BETWEEN 1 AND 262144)
);
-- It is compressed already.
ALTER TABLE pictures ALTER COLUMN content SET STORAGE EXTERNAL;

-- What pages show of a product, in the one language that its name is in.
ALTER TABLE products
    ADD COLUMN picture text REFERENCES pictures,
    ADD COLUMN description text,
    ADD COLUMN how_to_redeem text,
    ADD COLUMN terms text;
