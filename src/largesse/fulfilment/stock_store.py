"""The SQL of the stock: how many numbers are left, how many recipients wait, warnings, and which lines got numbers."""

from largesse.db.fragments import Fragment, compose

_TODAY = Fragment("(SELECT (clock_now() AT TIME ZONE 'UTC')::date)")
MOST_COUNTED = 10_000  # numbers of a product and value, and recipients who wait for one: there may be millions


def _free(condition: Fragment, most: Fragment) -> Fragment:
    """Returns SQL that counts numbers in stock of the product `p` at the value `level.value_minor`, up to `most`."""
    return compose(
        """
        (SELECT count(*)::int FROM (
            SELECT FROM vouchers WHERE product_id = p.id AND value_minor = level.value_minor AND order_id IS NULL AND {condition}
            LIMIT {most}) AS few)
    """,
        condition=condition,
        most=most,
    )


_UNEXPIRED = compose("use_by >= {today}", today=_TODAY)


# Counts the recipients who wait for the product `p` at the value `level.value_minor`.
_COUNT_WAITS = compose(
    """
    (SELECT count(*)::int FROM (
        SELECT FROM voucher_waits WHERE product_id = p.id AND value_minor = level.value_minor AND NOT is_test
        LIMIT {most} + 1) AS few)
""",
    most=MOST_COUNTED,
)

# Counts the next $5 rows of an index by product and value, after the row $1 to $4. Each line has where to go on. Many products have few numbers:
# looking each product and value up would read several blocks for each.
_COUNT_NEXT = """
    WITH read AS MATERIALIZED (
        SELECT product_id, value_minor, {since} AS since, id FROM {rows} AND (product_id, value_minor, {since}, id) > ($1, $2, $3, $4)
        ORDER BY product_id, value_minor, {since}, id LIMIT $5),
    last AS (SELECT since, id FROM read ORDER BY product_id DESC, value_minor DESC, read.since DESC, id DESC LIMIT 1)
    SELECT product_id, value_minor, count(*) FILTER (WHERE {counts})::int AS counted, count(*)::int AS read, {next} AS since, last.id
    FROM read CROSS JOIN last GROUP BY product_id, value_minor, last.since, last.id ORDER BY product_id, value_minor
"""
COUNT_FREE = compose(
    _COUNT_NEXT,
    rows=Fragment("vouchers WHERE order_id IS NULL"),
    since=Fragment("use_by"),
    counts=compose("read.since >= {today}", today=_TODAY),
    next=compose("greatest(last.since, {today} - 1)", today=_TODAY),  # past the expired numbers of a value
)
COUNT_WAITING = compose(
    _COUNT_NEXT,
    rows=Fragment("voucher_waits WHERE NOT is_test"),
    since=Fragment("since"),
    counts=Fragment("true"),
    next=Fragment("last.since"),
)
PRODUCTS = "SELECT id, key, currency FROM products WHERE id = ANY($1::int[])"
# Enough to tell whether fewer are left than the warning says.
_ENOUGH = compose("greatest({most} + 1, p.below)", most=MOST_COUNTED)


# The values at which the product `p` is in stock, and those at which it is sold.
_LEVELS = Fragment("""
    WITH RECURSIVE stocked AS (
        (SELECT value_minor FROM vouchers WHERE product_id = p.id AND order_id IS NULL ORDER BY value_minor LIMIT 1)
        UNION ALL
        SELECT next.value_minor FROM stocked CROSS JOIN LATERAL (
            SELECT value_minor FROM vouchers
            WHERE product_id = p.id AND order_id IS NULL AND value_minor > stocked.value_minor ORDER BY value_minor LIMIT 1) AS next)
    SELECT value_minor FROM stocked
    UNION SELECT unnest(CASE WHEN cardinality(p.denominations_minor) > 0 THEN p.denominations_minor ELSE '{0}' END)
""")

# The product $1, or products after the product $3 by key, with the words $2 in key or name. A product with a range of amounts has one level.
STOCKED = compose(
    """
    WITH page AS MATERIALIZED (
        SELECT p.id, p.key, p.name, p.currency, p.active, w.below, p.denominations_minor
        FROM products p LEFT JOIN stock_warnings w ON w.product_id = p.id
        WHERE p.is_digital AND ($1::int IS NULL OR p.id = $1) AND p.key > coalesce((SELECT key FROM products WHERE id = $3), '')
          AND ($2 = '' OR position($2 IN lower(p.key)) > 0 OR position($2 IN lower(p.name)) > 0)
        ORDER BY p.key LIMIT $4)
    SELECT p.id, p.key, p.name, p.currency, p.active, p.below, level.*
    FROM page AS p CROSS JOIN LATERAL (
        SELECT CASE WHEN cardinality(p.denominations_minor) > 0 THEN level.value_minor END AS value_minor,
               sum({free})::int AS free, sum({expiring})::int AS expiring, sum({expired})::int AS expired, sum({waiting})::int AS waiting
        FROM ({values} UNION (
            WITH RECURSIVE waited AS (
                (SELECT value_minor FROM voucher_waits WHERE product_id = p.id AND NOT is_test ORDER BY value_minor LIMIT 1)
                UNION ALL
                SELECT next.value_minor FROM waited CROSS JOIN LATERAL (
                    SELECT value_minor FROM voucher_waits
                    WHERE product_id = p.id AND NOT is_test AND value_minor > waited.value_minor ORDER BY value_minor LIMIT 1) AS next)
            SELECT value_minor FROM waited)) AS level
        GROUP BY 1) AS level
    ORDER BY p.key, level.value_minor
""",
    values=_LEVELS,
    free=_free(_UNEXPIRED, _ENOUGH),
    expiring=_free(compose("use_by >= {today} AND use_by < {today} + $5::int", today=_TODAY), _ENOUGH),
    expired=_free(compose("use_by < {today}", today=_TODAY), _ENOUGH),
    waiting=_COUNT_WAITS,
)
COUNT_TAKEN = """
    SELECT count(*)::int FROM (
        SELECT FROM vouchers
        WHERE product_id = $1 AND order_id IS NOT NULL AND NOT is_test AND handed_at > (SELECT clock_now()) - $2::int * interval '1 day'
        ORDER BY handed_at DESC LIMIT $3) AS counted
"""
TAKEN = """
    SELECT v.id, v.value_minor, c.name AS customer, v.customer_id, v.order_id, v.number, v.handed_at, v.added_at
    FROM vouchers v JOIN customers c ON c.id = v.customer_id
    WHERE v.product_id = $1 AND v.order_id IS NOT NULL AND NOT v.is_test
      AND ($2::bigint IS NULL OR (v.handed_at, v.id) < (SELECT handed_at, id FROM vouchers WHERE id = $2))
    ORDER BY v.handed_at DESC, v.id DESC LIMIT $3
"""
# What writes `low_stock` waits for its turn, as two that lock the same rows in another order would stop each other.
_TURN = Fragment("turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtext('largesse.low_stock')))")
# Notes in `low_stock` which stocks are below the warnings of the next $2 products after the product $1. Returns the last product.
NOTE_LOW = compose(
    """
    WITH {turn},
    page AS MATERIALIZED (
        SELECT w.product_id, w.below FROM turn CROSS JOIN stock_warnings w WHERE w.product_id > $1 ORDER BY w.product_id LIMIT $2),
    low AS MATERIALIZED (
        SELECT p.id, low.value_minor, low.free FROM page w JOIN products p ON p.id = w.product_id
        CROSS JOIN LATERAL (
            SELECT CASE WHEN cardinality(p.denominations_minor) > 0 THEN level.value_minor ELSE 0 END AS value_minor, sum({free})::int AS free
            FROM ({values}) AS level GROUP BY 1) AS low
        WHERE p.active AND low.free < w.below),
    ended AS (
        DELETE FROM low_stock s USING page WHERE s.product_id = page.product_id
            AND NOT EXISTS (SELECT FROM low WHERE low.id = s.product_id AND low.value_minor = s.value_minor)),
    noted AS (
        INSERT INTO low_stock (product_id, value_minor, free) SELECT id, value_minor, free FROM low
        ON CONFLICT (product_id, value_minor) DO UPDATE SET free = excluded.free WHERE low_stock.free <> excluded.free)
    SELECT max(product_id) FROM page
""",
    turn=_TURN,
    free=_free(_UNEXPIRED, Fragment("w.below")),
    values=_LEVELS,
)
# Counts again what was noted, as numbers may have been added since.
LOW = compose(
    """
    WITH noted AS MATERIALIZED (SELECT product_id, value_minor FROM low_stock ORDER BY free, product_id, value_minor LIMIT $1)
    SELECT p.key, p.name, p.currency, nullif(noted.value_minor, 0) AS value_minor, low.free, w.below
    FROM noted JOIN stock_warnings w ON w.product_id = noted.product_id JOIN products p ON p.id = noted.product_id
    CROSS JOIN LATERAL (
        SELECT coalesce(sum({free}), 0)::int AS free FROM (
            SELECT noted.value_minor WHERE noted.value_minor > 0
            UNION ALL SELECT value_minor FROM ({values}) AS any_value WHERE noted.value_minor = 0) AS level) AS low
    WHERE p.active AND low.free < w.below ORDER BY low.free, p.key, noted.value_minor
""",
    free=_free(_UNEXPIRED, Fragment("w.below")),
    values=_LEVELS,
)
SET_WARNING = """
    INSERT INTO stock_warnings (product_id, below) VALUES ($1, $2) ON CONFLICT (product_id) DO UPDATE SET below = excluded.below
"""
END_WARNING = compose("WITH {turn} DELETE FROM stock_warnings USING turn WHERE product_id = $1", turn=_TURN)
