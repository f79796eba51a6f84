-- The shop's own date of a voucher number: it is handed out until that day (UTC) is over, and the numbers whose day comes first go first.
-- `infinity`: the shop named none, or the number was added before there was this column.
ALTER TABLE vouchers ADD COLUMN use_by date NOT NULL DEFAULT 'infinity';
DROP INDEX vouchers_free;
CREATE INDEX vouchers_free ON vouchers (product_id, value_minor, use_by, id) WHERE order_id IS NULL;
CREATE INDEX vouchers_taken ON vouchers (product_id, handed_at, id) WHERE order_id IS NOT NULL;

-- Products of which somebody is told when fewer numbers than `below` are left at one of their values.
CREATE TABLE stock_warnings (
    product_id integer PRIMARY KEY REFERENCES products,
    below      integer NOT NULL CHECK (below BETWEEN 1 AND 100000)
);

-- A parcel that came back keeps when it was sent. `again_at`: it is to be sent again, and waits as at first. It is back
-- as long as it was not sent after `returned_at`.
ALTER TABLE shipments
    ADD COLUMN returned_at timestamptz,
    ADD COLUMN return_reason text CHECK (return_reason IN ('address', 'absent', 'refused', 'damaged', 'other')),
    ADD COLUMN again_at timestamptz,
    ADD CONSTRAINT shipments_returned CHECK ((returned_at IS NULL) = (return_reason IS NULL)
        AND (returned_at IS NULL OR shipped_at IS NOT NULL) AND (again_at IS NULL OR returned_at IS NOT NULL));
DROP INDEX shipments_open;
CREATE INDEX shipments_open ON shipments (environment, id) WHERE shipped_at IS NULL OR again_at IS NOT NULL;
CREATE INDEX shipments_back ON shipments (environment, returned_at, id) WHERE returned_at >= shipped_at AND again_at IS NULL;
CREATE INDEX shipments_sent ON shipments (environment, shipped_at, id) WHERE shipped_at IS NOT NULL;
