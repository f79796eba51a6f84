"""The SQL of the stock for the people who look after it."""

from __future__ import annotations

from largesse.db.fragments import Fragment, compose

_TODAY = Fragment("(SELECT (clock_now() AT TIME ZONE 'UTC')::date)")
# The product $1, or products after the product $3 by key, with the words $2 in key or name. A product with a range of amounts has one level.
STOCKED = compose(
    """
    WITH page AS MATERIALIZED (
        SELECT p.id, p.key, p.name, p.currency, p.active, w.below, p.denominations_minor
        FROM products p LEFT JOIN stock_warnings w ON w.product_id = p.id
        WHERE p.is_digital AND ($1::int IS NULL OR p.id = $1) AND ($3::int IS NULL OR p.key > (SELECT key FROM products WHERE id = $3))
          AND ($2 = '' OR position($2 IN lower(p.key)) > 0 OR position($2 IN lower(p.name)) > 0)
        ORDER BY p.key LIMIT $4)
    SELECT page.id, page.key, page.name, page.currency, page.active, page.below, level.*
    FROM page CROSS JOIN LATERAL (
        SELECT CASE WHEN cardinality(page.denominations_minor) > 0 THEN value_minor END AS value_minor,
               sum(free)::int AS free, sum(expiring)::int AS expiring, sum(expired)::int AS expired, sum(waiting)::int AS waiting
        FROM (
            SELECT value_minor, count(*) FILTER (WHERE use_by >= {today}) AS free,
                   count(*) FILTER (WHERE use_by >= {today} AND use_by < {today} + $5::int) AS expiring,
                   count(*) FILTER (WHERE use_by < {today}) AS expired, 0 AS waiting
            FROM vouchers WHERE product_id = page.id AND order_id IS NULL GROUP BY value_minor
            UNION ALL
            SELECT value_minor, 0, 0, 0, count(*) FROM voucher_waits WHERE product_id = page.id GROUP BY value_minor
            UNION ALL
            SELECT unnest(CASE WHEN cardinality(page.denominations_minor) > 0 THEN page.denominations_minor ELSE '{0}' END), 0, 0, 0, 0) AS counted
        GROUP BY 1) AS level
    ORDER BY page.key, level.value_minor
""",
    today=_TODAY,
)
COUNT_TAKEN = """
    SELECT count(*)::int FROM (
        SELECT FROM vouchers WHERE product_id = $1 AND order_id IS NOT NULL AND handed_at > clock_now() - $2::int * interval '1 day'
        LIMIT 100000) AS counted
"""
TAKEN = """
    SELECT v.id, v.value_minor, c.key AS customer, v.customer_id, v.order_id, v.number, v.handed_at, v.added_at
    FROM vouchers v JOIN customers c ON c.id = v.customer_id
    WHERE v.product_id = $1 AND v.order_id IS NOT NULL
      AND ($2::bigint IS NULL OR (v.handed_at, v.id) < (SELECT handed_at, id FROM vouchers WHERE id = $2))
    ORDER BY v.handed_at DESC, v.id DESC LIMIT $3
"""
LOW = compose(
    """
    SELECT p.key, p.name, p.currency, level.value_minor, level.free, w.below
    FROM stock_warnings w JOIN products p ON p.id = w.product_id
    CROSS JOIN LATERAL (
        SELECT CASE WHEN cardinality(p.denominations_minor) > 0 THEN value_minor END AS value_minor, sum(free)::int AS free
        FROM (
            SELECT value_minor, count(*) AS free FROM vouchers
            WHERE product_id = p.id AND order_id IS NULL AND use_by >= {today} GROUP BY value_minor
            UNION ALL
            SELECT unnest(CASE WHEN cardinality(p.denominations_minor) > 0 THEN p.denominations_minor ELSE '{0}' END), 0) AS counted
        GROUP BY 1) AS level
    WHERE p.active AND level.free < w.below ORDER BY level.free, p.key, level.value_minor LIMIT $1
""",
    today=_TODAY,
)
SET_WARNING = """
    INSERT INTO stock_warnings (product_id, below) VALUES ($1, $2) ON CONFLICT (product_id) DO UPDATE SET below = excluded.below
"""
END_WARNING = "DELETE FROM stock_warnings WHERE product_id = $1"
