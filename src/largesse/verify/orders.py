"""Checks of orders: each one whole, charged once, and announced once."""

from largesse.base.email import ERASED_DOMAIN
from largesse.db.fragments import compose, each, identifier, names
from largesse.events.kinds import EVENTS, ORDER_CREATED
from largesse.events.tasks import OLD
from largesse.ledger.payment_sources import is_payer
from largesse.orders.options import PERSONAL
from largesse.verify.check import Check

EVENTS_KEPT_DAYS = OLD.days  # older ones may have been pruned
_KNOWN = names(EVENTS)

ORDERS = (
    Check(
        "orders-are-charged-once",
        "An order has one transfer, of its total, from its funding account (or, invoiced, from the customer's "
        "receivable) to the customer's sales in its currency and environment.",
        compose(
            """
        SELECT o.id FROM orders o
        LEFT JOIN (
            SELECT customer_id, order_id, count(*) AS entries,
                   min(movement_id) = max(movement_id) AS one_movement,
                   min(account_id) FILTER (WHERE amount_minor < 0) AS payer_id, min(amount_minor) AS paid_minor,
                   min(account_id) FILTER (WHERE amount_minor > 0) AS sales_id, max(amount_minor) AS sold_minor
            FROM entries WHERE kind = 'order' GROUP BY customer_id, order_id
        ) AS m ON m.customer_id = o.customer_id AND m.order_id = o.id
        LEFT JOIN accounts payer ON payer.customer_id = m.customer_id AND payer.id = m.payer_id
        LEFT JOIN accounts sales ON sales.customer_id = m.customer_id AND sales.id = m.sales_id
        WHERE (m.entries = 2 AND m.one_movement
               AND m.paid_minor = -o.total_minor AND m.sold_minor = o.total_minor
               AND {is_payer}
               AND sales.kind = 'sales'
               AND (payer.customer_id, payer.environment, payer.currency) = (o.customer_id, o.environment, o.currency)
               AND (sales.customer_id, sales.environment, sales.currency) = (o.customer_id, o.environment, o.currency)
              ) IS NOT TRUE
        """,
            is_payer=is_payer("payer", "o"),
        ),
        of="order",
    ),
    Check(
        "totals-fit",
        "An order's total is a whole cost for each code: the value where the gift is digital or a collection, "
        "and at least the value where it is physical.",
        """
        SELECT o.id FROM orders o LEFT JOIN products p ON p.id = o.product_id
        WHERE CASE WHEN o.collection_id IS NOT NULL OR p.is_digital
                   THEN o.total_minor <> o.value_minor * o.code_count
                   ELSE o.total_minor % o.code_count <> 0 OR o.total_minor < o.value_minor * o.code_count END
        """,
        of="order",
    ),
    Check(
        "lines-are-numbered",
        "An order has one line for each of its codes, numbered from 1.",
        """
        SELECT o.id FROM orders o
        LEFT JOIN (
            SELECT customer_id, order_id, count(*) AS lines, min(number) AS first, max(number) AS last
            FROM lines GROUP BY customer_id, order_id
        ) AS l ON l.customer_id = o.customer_id AND l.order_id = o.id
        WHERE (l.lines = o.code_count AND l.first = 1 AND l.last = o.code_count) IS NOT TRUE
        """,
        of="order",
    ),
    # Recipients are counted in any letter case. Databases differ beyond ASCII, where only the bounds of the count are checked.
    Check(
        "recipients-fit",
        "The lines of a sent order name as many addresses as it has recipients; those of a batch name nobody, or of a campaign its visitors.",
        """
        SELECT o.id FROM orders o JOIN (
            SELECT customer_id, order_id, count(*) AS lines, count(recipient_email) AS named, count(recipient_name) AS with_name,
                   count(DISTINCT lower(recipient_email COLLATE "C")) AS addresses,
                   coalesce(bool_and(recipient_email ~ '^[[:ascii:]]*$'), true) AS plain
            FROM lines GROUP BY customer_id, order_id
        ) AS l ON l.customer_id = o.customer_id AND l.order_id = o.id
        WHERE CASE o.delivery_mode
              WHEN 'manual' THEN l.with_name + o.recipient_count <> 0
                   OR (l.named <> 0 AND NOT (o.source = 'campaign' AND o.user_id IS NOT NULL))
              ELSE l.named <> l.lines OR o.recipient_count NOT BETWEEN 1 AND l.addresses
                   OR (l.plain AND o.recipient_count <> l.addresses) END
        """,
        of="order",
    ),
    Check(
        "erased-orders-name-nobody",
        "An order that is marked as erased has no personal texts, and its lines no recipients.",
        compose(
            """
        SELECT o.id FROM orders o
        WHERE o.erased_at IS NOT NULL AND (
            num_nonnulls({personal}) > 0
            OR EXISTS (
                SELECT FROM lines l WHERE l.customer_id = o.customer_id AND l.order_id = o.id
                AND (l.recipient_name IS NOT NULL OR l.recipient_email NOT LIKE '%@{erased_domain}')))
        """,
            personal=each("o.{name}", PERSONAL),
            erased_domain=identifier(ERASED_DOMAIN),
        ),
        of="order",
    ),
    Check(
        "orders-have-events",
        f"An order has one {ORDER_CREATED.name} event, of its customer and environment (none once pruned, after "
        f"{EVENTS_KEPT_DAYS} days).",
        compose(
            """
        SELECT o.id FROM orders o
        LEFT JOIN (
            SELECT order_id, count(*) AS events, min(customer_id) AS customer_id, min(environment) AS environment
            FROM events WHERE event = '{order_created_name}' GROUP BY order_id
        ) AS e ON e.order_id = o.id
        WHERE CASE WHEN e.events IS NULL THEN o.created_at > (SELECT clock_now()) - interval '{events_kept_days} days'
                   ELSE (e.events, e.customer_id, e.environment) <> (1, o.customer_id, o.environment) END
        """,
            order_created_name=identifier(ORDER_CREATED.name),
            events_kept_days=EVENTS_KEPT_DAYS,
        ),
        of="order",
    ),
    Check(
        "events-are-known",
        "Every event, and every subscription to one, is of a type that is sent.",
        compose(
            """
        SELECT 'event ' || id FROM events WHERE event <> ALL('{{known}}')
        UNION ALL SELECT 'subscription ' || id FROM webhook_subscriptions
        WHERE event <> ALL('{{known}}') OR NOT events <@ '{{known}}'
        """,
            known=_KNOWN,
        ),
    ),
    Check(
        "orders-have-mail-jobs",
        "An order has a mail job, of its environment, exactly when it is sent to recipients.",
        """
        SELECT o.id FROM orders o LEFT JOIN mail_jobs m ON m.customer_id = o.customer_id AND m.order_id = o.id
        WHERE (m.order_id IS NOT NULL) <> (o.delivery_mode = 'send') OR m.environment <> o.environment
        """,
        of="order",
    ),
    Check(
        "external-references-are-unique",
        "No two orders of a customer and environment hold the same external reference.",
        """
        SELECT string_agg(id::text, '+' ORDER BY id) FROM orders WHERE external_reference IS NOT NULL
        GROUP BY customer_id, environment, external_reference HAVING count(*) > 1
        """,
        of="orders",
    ),
    Check(
        "references-are-unique",
        "No two orders have the same reference.",
        "SELECT string_agg(id::text, '+' ORDER BY id) FROM orders GROUP BY reference HAVING count(*) > 1",
        of="orders",
    ),
)
