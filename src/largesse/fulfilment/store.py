"""The SQL of fulfilment: vouchers and the lines that wait for them, parcels, and gifts whose time is over. The SQL of the stock is in `stock_store`."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from largesse.db.fragments import Fragment, compose, grouped
from largesse.db.pool import Connection, Row

WAIT = """
    INSERT INTO voucher_waits (product_id, value_minor, customer_id, order_id, number, since, is_test, ask_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
STOCKED_WAITS = """
    SELECT product_id, value_minor FROM (SELECT DISTINCT product_id, value_minor FROM voucher_waits WHERE NOT is_test) AS wanted
    WHERE EXISTS (SELECT FROM vouchers v WHERE v.product_id = wanted.product_id
                  AND v.value_minor = wanted.value_minor AND v.order_id IS NULL
                  AND v.use_by >= (SELECT (clock_now() AT TIME ZONE 'UTC')::date))
"""
CAN_SERVE = """
    SELECT EXISTS (SELECT FROM voucher_waits WHERE product_id = $1 AND value_minor = $2 AND NOT is_test)
       AND EXISTS (SELECT FROM vouchers WHERE product_id = $1 AND value_minor = $2 AND order_id IS NULL
                   AND use_by >= (SELECT (clock_now() AT TIME ZONE 'UTC')::date))
"""
LOCK_PRODUCT = "SELECT pg_advisory_xact_lock(hashtextextended('serve_waiting', $1))"
WAITING_LINES = "SELECT * FROM waiting_lines($1, $2, $3)"
LOCK_FREE = """
    SELECT id FROM vouchers WHERE product_id = $1 AND value_minor = $2 AND order_id IS NULL
        AND use_by >= (SELECT (clock_now() AT TIME ZONE 'UTC')::date)
    ORDER BY use_by, id LIMIT $3 FOR UPDATE
"""
LOCK_LINE = "SELECT FROM lines WHERE customer_id = $1 AND order_id = $2 AND number = $3 FOR UPDATE"
HAND_OUT = "UPDATE vouchers SET customer_id = $2, order_id = $3, number = $4, handed_at = $5 WHERE id = $1"
DELETE_WAIT = "DELETE FROM voucher_waits WHERE customer_id = $1 AND id = $2"

# The products that a gift can be exchanged for.
_PRODUCT = """
    SELECT id, name, is_digital, currency, countries, denominations_minor, min_amount_minor, max_amount_minor,
           cost_minor, markup_percent, postage_minor, vat_percent, customer_ids, picture, suppliers
    FROM products
"""
ACTIVE_PRODUCTS = _PRODUCT + "WHERE active AND id = ANY($1::int[])"
CHOSEN_PRODUCT = _PRODUCT + "WHERE id = $1"
CHOICES = "SELECT product_ids FROM collections WHERE id = $1"

# The inventory of vouchers.
PRODUCT = """
    SELECT id, key, name, currency, denominations_minor, is_digital,
           ARRAY(SELECT DISTINCT value_minor FROM voucher_waits WHERE product_id = products.id AND NOT is_test) AS waited_minor
    FROM products WHERE key = $1 OR id::text = $1 ORDER BY key = $1 DESC LIMIT 1
"""
LEVELS = """
    WITH levels AS (
        SELECT product_id, value_minor,
               count(*) FILTER (WHERE order_id IS NULL AND use_by >= (SELECT (clock_now() AT TIME ZONE 'UTC')::date)) AS free,
               count(*) FILTER (WHERE order_id IS NOT NULL) AS handed_out
        FROM vouchers WHERE NOT is_test GROUP BY product_id, value_minor),
    waits AS (SELECT product_id, value_minor, count(*) AS waiting FROM voucher_waits
              WHERE NOT is_test GROUP BY product_id, value_minor)
    SELECT p.key, p.name, p.currency, value_minor, coalesce(free, 0), coalesce(handed_out, 0), coalesce(waiting, 0)
    FROM levels FULL JOIN waits USING (product_id, value_minor) JOIN products p ON p.id = product_id
    ORDER BY waiting DESC NULLS LAST, p.key, value_minor
"""
# Imports of one product's numbers wait for each other: with the same numbers in another order, they would deadlock.
LOCK_IMPORT = "SELECT pg_advisory_xact_lock(hashtextextended('import_vouchers', $1))"
ADD_VOUCHERS = """
    INSERT INTO vouchers (product_id, value_minor, lookup, sealed, use_by, added_at)
    SELECT $1, value_minor, lookup, sealed, use_by, (SELECT clock_now())
    FROM unnest($2::bigint[], $3::bigint[], $4::bytea[], $5::date[])
        WITH ORDINALITY AS new (value_minor, lookup, sealed, use_by, place)
    ORDER BY place
    ON CONFLICT (lookup) DO NOTHING RETURNING id, lookup
"""
KNOWN = "SELECT lookup, order_id IS NOT NULL AS is_sold FROM vouchers WHERE lookup = ANY($1::bigint[])"

# The address of the recipient who is notified.
ADDRESSEE = """
    SELECT l.recipient_email, l.recipient_name, o.environment, s.sealed_email
    FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
    JOIN line_states s ON s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number
    WHERE l.customer_id = $1 AND l.order_id = $2 AND l.number = $3
"""

# Vouchers that are handed out as they are claimed.
ALLOCATE = """
    UPDATE vouchers SET customer_id = $3, order_id = $4, number = $5, handed_at = $6
    WHERE id = (
        SELECT id FROM vouchers WHERE product_id = $1 AND value_minor = $2 AND order_id IS NULL
        AND use_by >= (SELECT (clock_now() AT TIME ZONE 'UTC')::date) AND NOT EXISTS (SELECT FROM waiting_lines($1, $2, 1))
        ORDER BY use_by, id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id
"""
INSERT_TEST_VOUCHER = """
    INSERT INTO vouchers
        (product_id, value_minor, lookup, sealed, is_test, added_at, customer_id, order_id, number, handed_at)
    VALUES ($1, $2, $3, $4, true, $8, $5, $6, $7, $8)
"""
IS_STOCKED = "SELECT EXISTS (SELECT FROM vouchers WHERE product_id = $1 AND NOT is_test)"

# Parcels.
INSERT_SHIPMENT = """
    INSERT INTO shipments
        (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
# A parcel that came back is at a person's desk until it is packed again: until then, its recipient can correct the address.
SHIPMENT = """
    SELECT requested_at, shipped_at, carrier, tracking_number, coalesce(returned_at >= shipped_at, false) AS is_back,
           again_at IS NOT NULL AS goes_again, coalesce(requested_at > returned_at, false) AS is_corrected,
           coalesce(returned_at >= shipped_at AND (again_at IS NULL OR exported_at IS NULL), false) AS may_correct
    FROM shipments WHERE customer_id = $1 AND order_id = $2 AND number = $3
"""
CORRECT_ADDRESS = """
    UPDATE shipments SET sealed_address = $4, requested_at = $5
    WHERE customer_id = $1 AND order_id = $2 AND number = $3 AND sealed_address IS NOT NULL
        AND returned_at >= shipped_at AND (again_at IS NULL OR exported_at IS NULL) RETURNING id
"""
# The parcels of an order that came back, and are not sent again.
BACK = """
    SELECT number, returned_at, return_reason FROM shipments
    WHERE customer_id = $1 AND order_id = $2 AND returned_at >= shipped_at AND again_at IS NULL
"""
# The orders with such parcels, by the newest return. $3 limits them to those of a person.
BACK_OF = """
    SELECT o.reference, max(s.returned_at) AS returned_at FROM shipments s JOIN orders o ON o.customer_id = s.customer_id AND o.id = s.order_id
    WHERE s.customer_id = $1 AND s.environment = $2 AND s.returned_at >= s.shipped_at AND s.again_at IS NULL
        AND s.returned_at > (SELECT clock_now()) - $4::interval AND ($3::int IS NULL OR o.user_id = $3)
    GROUP BY o.reference ORDER BY 2 DESC LIMIT $5
"""
SEALED_ADDRESS = "SELECT sealed_address FROM shipments WHERE customer_id = $1 AND order_id = $2 AND number = $3"
SHIPMENTS_TO_EXPORT = """
    SELECT s.id, s.customer_id, s.order_id, s.number, p.key, p.name, s.sealed_address, s.requested_at
    FROM shipments s JOIN products p ON p.id = s.product_id
    WHERE s.environment = $1 AND (s.shipped_at IS NULL OR s.again_at IS NOT NULL) AND s.sealed_address IS NOT NULL
      AND s.id > $2 AND ($3 OR s.exported_at IS NULL) AND ($5::bigint[] IS NULL OR s.id = ANY($5))
    ORDER BY s.id LIMIT $4 FOR UPDATE OF s
"""
MARK_EXPORTED = """
    UPDATE shipments SET exported_at = clock_now()
    FROM unnest($1::int[], $2::bigint[]) AS exported (customer_id, id)
    WHERE shipments.customer_id = exported.customer_id AND shipments.id = exported.id
"""
_REFERENCES = """
    SELECT customer_id, id, reference
    FROM unnest($1::int[], $2::int[]) AS wanted (customer_id, id) JOIN orders USING (customer_id, id)
"""
# Texts for the packing slips of parcels, by customers $1, orders $2 and lines $3. A message with placeholders was filled in for each line.
PACKING_SLIPS = """
    SELECT o.customer_id, o.id AS order_id, wanted.number, o.reference, coalesce(o.from_name, c.name) AS sender,
           CASE WHEN position('{' IN o.message) > 0 THEN coalesce(own.message, o.message) ELSE o.message END AS message
    FROM unnest($1::int[], $2::int[], $3::int[]) AS wanted (customer_id, id, number)
    JOIN orders o ON o.customer_id = wanted.customer_id AND o.id = wanted.id JOIN customers c ON c.id = o.customer_id
    LEFT JOIN line_messages own ON own.customer_id = o.customer_id AND own.order_id = o.id AND own.number = wanted.number
"""
LINES_OF_SHIPMENTS = (
    "SELECT id, customer_id, order_id, number FROM shipments WHERE id = ANY($1::bigint[]) AND environment = $2"
)
WAS_SHIPPED = """
    SELECT shipped_at IS NOT NULL AS was_shipped, again_at IS NOT NULL AS is_again, carrier, tracking_number
    FROM shipments WHERE customer_id = $1 AND id = $2
"""
MARK_SHIPPED = """
    UPDATE shipments SET shipped_at = $4, carrier = $5, tracking_number = $6, again_at = NULL, sendings = sendings + 1
    WHERE customer_id = $1 AND order_id = $2 AND number = $3 RETURNING sendings
"""

# Gifts whose time is over, and addresses that are erased.
ERASE_ADDRESSES = """
    UPDATE shipments SET sealed_address = NULL
    WHERE customer_id = $1 AND order_id = $2 AND number = ANY($3::int[]) AND sealed_address IS NOT NULL
    RETURNING number, shipped_at IS NULL AS is_unsent
"""
STILL_THERE = grouped(
    """
    SELECT customer_id, order_id, number
    FROM unnest($1::int[], $2::int[], $3::int[]) AS late (customer_id, order_id, number)
    JOIN line_states s USING (customer_id, order_id, number)
    WHERE s.state IN ('claimed', 'chosen') {within s.customer_id}
    """,
    "$4",
)


def _late(condition: Fragment) -> Fragment:
    """Returns SQL for the first $1 lines whose recipient is late, locked."""
    return compose(
        """
    SELECT l.customer_id, l.order_id, l.number FROM line_states s JOIN lines l USING (customer_id, order_id, number)
    WHERE s.state IN ('claimed', 'chosen') AND s.expires_at <= (SELECT clock_now()) AND {condition}
    ORDER BY s.expires_at LIMIT $1 FOR UPDATE OF l SKIP LOCKED
""",
        condition=condition,
    )


LATE = _late(
    Fragment("""
        NOT EXISTS (SELECT FROM voucher_waits AS w
                    WHERE w.customer_id = s.customer_id AND w.order_id = s.order_id AND w.number = s.number)
        AND NOT EXISTS (SELECT FROM supplier_orders AS w
                        WHERE w.customer_id = s.customer_id AND w.order_id = s.order_id AND w.number = s.number
                          AND w.state IN ('new', 'asked', 'pending', 'cancelling'))
        AND NOT EXISTS (SELECT FROM shipments AS w
                        WHERE w.customer_id = s.customer_id AND w.order_id = s.order_id AND w.number = s.number
                          AND w.sealed_address IS NOT NULL)
    """)
)
# For a cluster: a node has no table of the lines that wait. They are passed as $2 to $4, and the customers of the node as $5.
LATE_BUT = _late(
    Fragment("""
        NOT EXISTS (SELECT FROM unnest($2::int[], $3::int[], $4::int[]) AS w (customer_id, order_id, number)
                    WHERE w.customer_id = s.customer_id AND w.order_id = s.order_id AND w.number = s.number)
        AND s.customer_id = ANY($5::int[]) AND l.customer_id = ANY($5::int[])
    """)
)
WAITING_OF = """
    SELECT customer_id, order_id, number FROM voucher_waits WHERE customer_id = ANY($1::int[])
    UNION ALL SELECT customer_id, order_id, number FROM supplier_orders
              WHERE customer_id = ANY($1::int[]) AND state IN ('new', 'asked', 'pending', 'cancelling')
    UNION ALL SELECT customer_id, order_id, number FROM shipments
              WHERE customer_id = ANY($1::int[]) AND shipped_at IS NULL AND sealed_address IS NOT NULL
"""
WAITING_AMONG = """
    SELECT customer_id, order_id, number
    FROM unnest($1::int[], $2::int[], $3::int[]) AS late (customer_id, order_id, number)
    WHERE EXISTS (SELECT FROM voucher_waits w WHERE (w.customer_id, w.order_id, w.number) = (late.customer_id, late.order_id, late.number))
       OR EXISTS (SELECT FROM supplier_orders w WHERE (w.customer_id, w.order_id, w.number) = (late.customer_id, late.order_id, late.number)
                  AND w.state IN ('new', 'asked', 'pending', 'cancelling'))
       OR EXISTS (SELECT FROM shipments w WHERE (w.customer_id, w.order_id, w.number) = (late.customer_id, late.order_id, late.number)
                  AND w.sealed_address IS NOT NULL)
"""
# The customers among $1 with late gifts.
CUSTOMERS_LATE = """
    SELECT DISTINCT customer_id FROM line_states
    WHERE state IN ('claimed', 'chosen') AND expires_at <= (SELECT clock_now()) AND customer_id = ANY($1::int[])
"""

# The voucher that was handed out to a line.
HANDED_OUT = """
    SELECT product_id, sealed, is_test, handed_at FROM vouchers
    WHERE customer_id = $1 AND order_id = $2 AND number = $3
"""


_SELECT = Fragment("""
    SELECT s.id, s.customer_id, s.order_id, s.number AS line, p.key AS product, p.name AS product_name, s.country, s.requested_at,
           s.exported_at, s.shipped_at, s.carrier, s.tracking_number, s.returned_at, s.return_reason, s.again_at,
           s.sendings, s.sealed_address IS NULL AS is_erased
    FROM shipments s JOIN products p ON p.id = s.product_id
""")
# After the parcel $2, if given.
LISTED: Mapping[str, str] = MappingProxyType(
    {
        "waiting": compose(
            """
            {select} WHERE s.environment = $1 AND (s.shipped_at IS NULL OR s.again_at IS NOT NULL) AND s.sealed_address IS NOT NULL
                AND s.id > coalesce($2, 0) ORDER BY s.id LIMIT $3
            """,
            select=_SELECT,
        ),
        "sent": compose(
            """
            {select} WHERE s.environment = $1 AND s.shipped_at IS NOT NULL AND s.again_at IS NULL
                AND (s.returned_at IS NULL OR s.returned_at < s.shipped_at)
                AND ($2::bigint IS NULL OR (s.shipped_at, s.id) < (SELECT shipped_at, id FROM shipments WHERE id = $2))
            ORDER BY s.shipped_at DESC, s.id DESC LIMIT $3
            """,
            select=_SELECT,
        ),
        "back": compose(
            """
            {select} WHERE s.environment = $1 AND s.returned_at >= s.shipped_at AND s.again_at IS NULL
                AND ($2::bigint IS NULL OR (s.returned_at, s.id) < (SELECT returned_at, id FROM shipments WHERE id = $2))
            ORDER BY s.returned_at DESC, s.id DESC LIMIT $3
            """,
            select=_SELECT,
        ),
    }
)
PARCEL = compose("{select} WHERE s.id = $1 AND s.environment = $2", select=_SELECT)
TRACKED = compose(
    "{select} WHERE s.tracking_number = ANY($1::text[]) AND s.environment = $2 ORDER BY s.id DESC LIMIT 50",
    select=_SELECT,
)
TO_PICK = """
    SELECT p.key, p.name, count(*)::int FROM shipments s JOIN products p ON p.id = s.product_id
    WHERE s.environment = $1 AND (s.shipped_at IS NULL OR s.again_at IS NOT NULL) AND s.sealed_address IS NOT NULL
    GROUP BY 1, 2 ORDER BY 3 DESC, 1 LIMIT 200
"""
COUNTS = """
    SELECT (SELECT count(*) FROM (
                SELECT FROM shipments WHERE environment = $1 AND (shipped_at IS NULL OR again_at IS NOT NULL) AND sealed_address IS NOT NULL
                LIMIT 1000) AS counted)::int AS waiting,
           (SELECT count(*) FROM (
                SELECT FROM shipments WHERE environment = $1 AND returned_at >= shipped_at AND again_at IS NULL LIMIT 1000) AS counted)::int AS back
"""
LOCK = "SELECT FROM shipments WHERE id = $1 AND environment = $2 FOR UPDATE"
NOTE_RETURN = """
    UPDATE shipments SET returned_at = clock_now(), return_reason = $3 WHERE customer_id = $1 AND id = $2
"""
CORRECT_NUMBER = "UPDATE shipments SET carrier = $3, tracking_number = $4 WHERE customer_id = $1 AND id = $2"
SEND_AGAIN = "UPDATE shipments SET again_at = clock_now(), exported_at = NULL WHERE customer_id = $1 AND id = $2"


async def read_references(connection: Connection, rows: Sequence[Row]) -> dict[tuple[int, int], str]:
    """Returns the references of the orders of `rows`, by customer and order id. A separate statement: orders may be on nodes, parcels are not."""
    keys = [row["customer_id"] for row in rows], [row["order_id"] for row in rows]
    found = await connection.fetch(_REFERENCES, *keys) if rows else []
    return {(row["customer_id"], row["id"]): row["reference"] for row in found}
