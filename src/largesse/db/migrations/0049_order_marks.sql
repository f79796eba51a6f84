-- Orders that were changed since they were placed, as recipients were erased or an address corrected (docs/decisions/0031-marks-of-orders-and-lines.md):
-- the digest of the order as it was placed, which the mark of its entry covers, and a mark of that together with how the order is now.
ALTER TABLE orders ADD COLUMN placed_digest bytea, ADD COLUMN mac bytea;
