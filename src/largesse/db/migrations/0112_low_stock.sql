-- The stocks that a worker last found below the warnings of their products. Pages of the back office count these alone.
--   value_minor  0 for a product with a range of amounts, which has one stock
CREATE TABLE low_stock (
    product_id  integer REFERENCES stock_warnings ON DELETE CASCADE,
    value_minor bigint,
    free        integer NOT NULL,
    PRIMARY KEY (product_id, value_minor)
);
CREATE INDEX low_stock_fewest ON low_stock (free, product_id, value_minor);
