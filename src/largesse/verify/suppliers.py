"""Checks of supplier orders: each matches its line, its voucher is the voucher of the line, and costs add up."""

from largesse.verify.check import Check

SUPPLIERS = (
    Check(
        "supplier-orders-fit",
        "A supplier order is for a line of its product and value in production that was settled, and a line that a supplier served got its "
        "voucher in that moment.",
        """
        SELECT s.supplier_order_id FROM supplier_orders s
        LEFT JOIN orders o ON o.customer_id = s.customer_id AND o.id = s.order_id
        LEFT JOIN line_states l ON l.customer_id = s.customer_id AND l.order_id = s.order_id AND l.number = s.number
        LEFT JOIN vouchers v ON v.customer_id = s.customer_id AND v.order_id = s.order_id AND v.number = s.number
        WHERE ((o.environment, o.value_minor, l.product_id) = ('production', s.value_minor, s.product_id)
               AND (s.state <> 'delivered' OR v.handed_at = s.ended_at)) IS NOT TRUE
        """,
        of="supplier order",
    ),
    Check(
        "supplier-attempts-follow",
        "Attempts at a supplier for a line count from 1, and only the last supplier order of a line is open or delivered.",
        """
        SELECT supplier_order_id FROM (
            SELECT supplier_order_id, attempt, state, id,
                   row_number() OVER (PARTITION BY customer_id, order_id, number, supplier ORDER BY id) AS nth,
                   max(id) OVER (PARTITION BY customer_id, order_id, number) AS last
            FROM supplier_orders) AS tried
        WHERE attempt <> nth OR id <> last AND state IN ('new', 'asked', 'pending', 'cancelling', 'delivered')
        """,
        of="supplier order",
    ),
    Check(
        "supplier-costs-add-up",
        "What was bought of a product from a supplier on a day, and its cost, is what its supplier orders say.",
        """
        SELECT coalesce(c.supplier, s.supplier) || ' ' || coalesce(c.product_id, s.product_id) || ' ' || coalesce(c.day, s.day)
        FROM supplier_costs c FULL JOIN (
            SELECT supplier, product_id, coalesce(cost_currency, '') AS currency, (ended_at AT TIME ZONE 'UTC')::date AS day,
                   count(*) FILTER (WHERE state = 'delivered') AS bought, count(*) FILTER (WHERE state = 'kept') AS kept,
                   coalesce(sum(value_minor) FILTER (WHERE state = 'delivered'), 0) AS value_minor,
                   coalesce(sum(cost_minor), 0) AS cost_minor
            FROM supplier_orders WHERE state IN ('delivered', 'kept') GROUP BY 1, 2, 3, 4
        ) AS s USING (supplier, product_id, currency, day)
        WHERE ((c.bought, c.kept, c.value_minor, c.cost_minor) = (s.bought, s.kept, s.value_minor, s.cost_minor)) IS NOT TRUE
        """,
    ),
)
