-- Numbers what is saved of products and collections in the office, so that of two people who change one the second is told. `edition` is the publication
-- that stands; 0: none was made in the office.
CREATE SEQUENCE catalogue_editions;
ALTER TABLE products ADD COLUMN edition bigint NOT NULL DEFAULT 0;
ALTER TABLE collections ADD COLUMN edition bigint NOT NULL DEFAULT 0;

-- Changes of a product or a collection that are not published. `content` is all of it as it will be, not what differs. A draft was begun when `based_on` was
-- the edition that was published. With `publish_at` a worker publishes it then; where it cannot, `failed` says why and `publish_at` is null again.
CREATE TABLE catalogue_drafts (
    kind       text NOT NULL CHECK (kind IN ('product', 'collection')),
    object_id  integer NOT NULL,
    content    jsonb NOT NULL,
    edition    bigint NOT NULL,
    based_on   bigint NOT NULL,
    author     text NOT NULL,
    saved_at   timestamptz NOT NULL,
    publish_at timestamptz,
    failed     text,
    PRIMARY KEY (kind, object_id)
);
CREATE INDEX catalogue_drafts_due ON catalogue_drafts (publish_at) WHERE publish_at IS NOT NULL;

-- What was published of a product or a collection, the newest 20 of each. The one before the first publication of the office is kept too, with the edition
-- it had then.
CREATE TABLE catalogue_versions (
    kind         text NOT NULL CHECK (kind IN ('product', 'collection')),
    object_id    integer NOT NULL,
    edition      bigint NOT NULL,
    content      jsonb NOT NULL,
    published_at timestamptz NOT NULL,
    published_by text NOT NULL,
    PRIMARY KEY (kind, object_id, edition)
);

-- Of pages: products and collections by words of their keys and names, and what a change of one does to templates and collections.
CREATE INDEX products_words ON products USING gin (to_tsvector('simple', key || ' ' || name));
CREATE INDEX collections_of_product ON collections USING gin (product_ids) WHERE active;
CREATE INDEX templates_of_product ON templates (product_id) WHERE removed_at IS NULL AND product_id IS NOT NULL;
CREATE INDEX templates_of_collection ON templates (collection_id) WHERE removed_at IS NULL AND collection_id IS NOT NULL;
CREATE INDEX products_inactive ON products (key) WHERE NOT active;
CREATE INDEX products_of_file ON products (key) WHERE managed = 'file';
