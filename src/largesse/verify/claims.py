"""Checks of lines: states, refunds, vouchers, supplier orders and parcels, and that every code decrypts."""

from collections.abc import Iterator, Sequence

from largesse.db.fragments import compose, names
from largesse.db.pool import Connection, Row, read_in_parts
from largesse.encryption.vault import DecryptionFailed, Vault
from largesse.events.kinds import GIFT_EVENTS
from largesse.ledger.payment_sources import is_payer
from largesse.lines.codes import open_code
from largesse.verify.check import Check, Finding, Progress, Tally
from largesse.verify.orders import EVENTS_KEPT_DAYS

_APART = names(event.name for event in GIFT_EVENTS if not event.follows_line)

CLAIMS = (
    Check(
        "states-have-lines",
        "Every state and every event of a line belongs to a line that exists.",
        """
        SELECT DISTINCT order_id || '/' || number FROM (
            SELECT customer_id, order_id, number FROM line_states
            UNION SELECT customer_id, order_id, number FROM line_events
        ) AS recorded
        WHERE NOT EXISTS (
            SELECT FROM lines l
            WHERE (l.customer_id, l.order_id, l.number) = (recorded.customer_id, recorded.order_id, recorded.number))
        """,
        of="order/code",
    ),
    Check(
        "states-follow-events",
        "A line is where its recorded moves lead, each once: claimed and then chosen, fulfilled or expired, or "
        "cancelled and never claimed. It was claimed when the move says.",
        """
        SELECT coalesce(s.order_id, e.order_id) || '/' || coalesce(s.number, e.number)
        FROM line_states s FULL JOIN (
            SELECT customer_id, order_id, number, array_agg(event ORDER BY event) AS moves,
                   max(at) FILTER (WHERE event = 'claimed') AS claimed_at
            FROM line_events WHERE event <> 'opened' GROUP BY customer_id, order_id, number
        ) AS e USING (customer_id, order_id, number)
        WHERE CASE s.state
              WHEN 'claimed' THEN moves = '{claimed}'
              WHEN 'chosen' THEN moves = '{chosen,claimed}'
              WHEN 'fulfilled' THEN moves = '{chosen,claimed,fulfilled}'
              WHEN 'expired' THEN moves = '{claimed,expired}' OR moves = '{chosen,claimed,expired}'
              WHEN 'cancelled' THEN moves = '{cancelled}' OR moves = '{cancelled,lapsed}'
              END IS NOT TRUE OR s.claimed_at IS DISTINCT FROM e.claimed_at
        """,
        of="order/code",
    ),
    Check(
        "notes-thank-for-gifts",
        "Every thank-you note is about a gift that was claimed, by the person who sent its order or by none.",
        """
        SELECT 'note ' || n.id FROM thank_you_notes n
        LEFT JOIN orders o ON o.customer_id = n.customer_id AND o.id = n.order_id
        LEFT JOIN line_states s ON s.customer_id = n.customer_id AND s.order_id = n.order_id AND s.number = n.number
        WHERE s.claimed_at IS NULL OR n.user_id IS DISTINCT FROM o.user_id OR n.environment IS DISTINCT FROM o.environment
        """,
    ),
    Check(
        "gift-events-happened",
        "Every event of a gift, such as gift.claimed, says what is recorded of its line, and is recorded once.",
        compose(
            """
        SELECT 'event ' || told.id FROM events told
        WHERE told.line_number IS NOT NULL AND told.event <> ALL('{{apart}}') AND NOT EXISTS (
            SELECT FROM line_events e
            WHERE e.customer_id = told.customer_id AND e.order_id = told.order_id AND e.number = told.line_number
              AND told.event = 'gift.' || CASE e.event WHEN 'lapsed' THEN 'expired' ELSE e.event END)
        UNION ALL
        SELECT 'event ' || max(id) FROM events WHERE line_number IS NOT NULL
        GROUP BY customer_id, order_id, line_number, convert_from(body, 'UTF8')::json ->> 'id' HAVING count(*) > 1
        """,
            apart=_APART,
        ),
    ),
    Check(
        "gift-events-are-there",
        f"What happened to a line has its event, such as gift.claimed (none once pruned, after {EVENTS_KEPT_DAYS} days).",
        compose(
            """
        SELECT order_id || '/' || number || ' ' || event FROM (
            SELECT customer_id, order_id, number, 'gift.' || CASE event WHEN 'lapsed' THEN 'expired' ELSE event END AS event
            FROM line_events
            WHERE event IN ('opened', 'claimed', 'fulfilled', 'cancelled', 'expired', 'lapsed')
              AND at > (SELECT clock_now()) - interval '{events_kept_days} days'
              -- Releases before 0.2.0 wrote no events of gifts.
              AND at > (SELECT min(created_at) FROM events WHERE line_number IS NOT NULL)
            EXCEPT SELECT customer_id, order_id, line_number, event FROM events WHERE line_number IS NOT NULL) AS missing
        """,
            events_kept_days=EVENTS_KEPT_DAYS,
        ),
    ),
    Check(
        "line-events-are-marked",
        "What became of a line is what the worker marked, and all of it is marked, unless it waits for that.",
        """
        WITH different AS (
            SELECT customer_id, order_id, number, event, m.at IS NOT NULL AS is_marked
            FROM (SELECT customer_id, order_id, number, event, at FROM line_events WHERE event <> 'opened') AS e
            FULL JOIN (SELECT customer_id, order_id, line AS number, event, at FROM line_event_marks) AS m
                USING (customer_id, order_id, number, event)
            WHERE e.at IS DISTINCT FROM m.at)
        SELECT order_id || '/' || number || ' ' || event FROM different WHERE is_marked
        UNION ALL
        SELECT order_id || '/' || number || ' ' || event FROM different AS d
        WHERE NOT is_marked AND NOT EXISTS (
            SELECT FROM order_changes c WHERE c.customer_id = d.customer_id AND c.order_id = d.order_id AND NOT c.texts)
        """,
    ),
    Check(
        "expiries-fit",
        "A claimed gift of production whose order says how long it lasts expires that long after the claim.",
        """
        SELECT s.order_id || '/' || s.number FROM line_states s JOIN orders o ON o.customer_id = s.customer_id AND o.id = s.order_id
        WHERE s.claimed_at IS NOT NULL AND o.expiry_after_days IS NOT NULL AND o.environment = 'production'
          AND s.expires_at IS DISTINCT FROM s.claimed_at + nullif(o.expiry_after_days, 0) * interval '24 hours'
        """,
        of="order/code",
    ),
    Check(
        "refunds-fit-cancellations",
        "What an order gave back is what its cancelled lines cost: from the customer's sales to the account it was "
        "paid from, or off the receivable one.",
        compose(
            """
        SELECT o.id FROM orders o
        JOIN (
            SELECT customer_id, order_id FROM line_states WHERE state = 'cancelled'
            UNION SELECT customer_id, order_id FROM entries WHERE kind = 'refund'
        ) AS touched ON touched.customer_id = o.customer_id AND touched.order_id = o.id
        LEFT JOIN LATERAL (
            SELECT count(*) AS cancelled FROM line_states s
            WHERE s.customer_id = o.customer_id AND s.order_id = o.id AND s.state = 'cancelled'
        ) AS c ON true
        LEFT JOIN (
            SELECT e.customer_id, e.order_id, sum(e.amount_minor) FILTER (WHERE e.amount_minor > 0) AS back_minor,
                   sum(e.amount_minor) FILTER (WHERE e.amount_minor < 0) AS taken_minor,
                   bool_and(CASE WHEN e.amount_minor < 0 THEN a.kind = 'sales'
                                 ELSE {is_payer} END
                            AND (a.customer_id, a.environment, a.currency) = (r.customer_id, r.environment, r.currency)
                           ) AS accounts_fit
            FROM entries e JOIN accounts a ON a.customer_id = e.customer_id AND a.id = e.account_id
            JOIN orders r ON r.customer_id = e.customer_id AND r.id = e.order_id
            WHERE e.kind = 'refund' GROUP BY e.customer_id, e.order_id
        ) AS b ON b.customer_id = o.customer_id AND b.order_id = o.id
        WHERE (coalesce(b.back_minor, 0) = o.total_minor / o.code_count * c.cancelled
               AND coalesce(b.taken_minor, 0) = -coalesce(b.back_minor, 0)
               AND coalesce(b.accounts_fit, true)) IS NOT TRUE
        """,
            is_payer=is_payer("a", "r"),
        ),
        of="order",
    ),
    Check(
        "lapses-fit",
        "What lapsed was unclaimed when its order's claim-by date had passed. After that nothing of the order is left unclaimed, unless "
        "the worker has still to look at it.",
        """
        SELECT e.order_id || '/' || e.number FROM line_events e
        LEFT JOIN follow_ups f ON f.customer_id = e.customer_id AND f.order_id = e.order_id
        WHERE e.event = 'lapsed' AND (f.claim_by <= e.at) IS NOT TRUE
        UNION ALL
        SELECT f.order_id || '/' || l.number FROM follow_ups f
        JOIN lines l ON l.customer_id = f.customer_id AND l.order_id = f.order_id
        WHERE f.due_at IS NULL AND f.claim_by IS NOT NULL AND NOT EXISTS (
            SELECT FROM line_states s WHERE s.customer_id = l.customer_id AND s.order_id = l.order_id AND s.number = l.number)
        """,
        of="order/code",
    ),
    Check(
        "reminders-fit",
        "A reminder that has not left is of an order that is followed up, about gifts that nobody has claimed or cancelled, to somebody who wants it.",
        """
        WITH reminders AS MATERIALIZED (
            SELECT m.id, m.customer_id, m.order_id, line.number
            FROM messages m LEFT JOIN LATERAL unnest(m.line_numbers) AS line (number) ON true
            WHERE m.kind LIKE 'reminder%' AND m.state IN ('pending', 'held'))
        SELECT 'message ' || id FROM (
            (SELECT id FROM reminders EXCEPT SELECT id FROM reminders JOIN follow_ups USING (customer_id, order_id))
            UNION SELECT id FROM reminders JOIN line_states USING (customer_id, order_id, number)
            UNION SELECT id FROM reminders JOIN reminder_stops USING (customer_id, order_id, number)) AS unfit
        """,
    ),
    Check(
        "vouchers-fit",
        "A fulfilled line of a digital gift has one voucher, of its product and its order's value; no other line has any.",
        """
        SELECT coalesce(s.order_id, v.order_id) || '/' || coalesce(s.number, v.number)
        FROM (
            SELECT s.customer_id, s.order_id, s.number, s.product_id, o.value_minor
            FROM line_states s JOIN products p ON p.id = s.product_id
            JOIN orders o ON o.customer_id = s.customer_id AND o.id = s.order_id
            WHERE s.state = 'fulfilled' AND p.is_digital
        ) AS s
        FULL JOIN (SELECT * FROM vouchers WHERE order_id IS NOT NULL) AS v USING (customer_id, order_id, number)
        WHERE ((s.product_id, s.value_minor) = (v.product_id, v.value_minor)) IS NOT TRUE
        """,
        of="order/code",
    ),
    Check(
        "waits-fit",
        "Every line whose digital gift is settled and not there yet waits for a voucher of it, from the stock or a supplier, and one of staging as a test; "
        "no other line does.",
        """
        SELECT coalesce(s.order_id, w.order_id) || '/' || coalesce(s.number, w.number)
        FROM (
            SELECT s.customer_id, s.order_id, s.number, s.product_id, o.value_minor, o.environment = 'staging' AS is_test
            FROM line_states s JOIN products p ON p.id = s.product_id
            JOIN orders o ON o.customer_id = s.customer_id AND o.id = s.order_id
            WHERE s.state = 'chosen' AND p.is_digital
        ) AS s
        FULL JOIN (
            SELECT customer_id, order_id, number, product_id, value_minor, is_test FROM voucher_waits
            UNION ALL SELECT customer_id, order_id, number, product_id, value_minor, false FROM supplier_orders
                      WHERE state IN ('new', 'asked', 'pending', 'cancelling')) AS w USING (customer_id, order_id, number)
        WHERE ((s.product_id, s.value_minor, s.is_test) = (w.product_id, w.value_minor, w.is_test)) IS NOT TRUE
        """,
        of="order/code",
    ),
    Check(
        "shipments-fit",
        "A parcel belongs to a line of its physical gift and environment, fulfilled once it is shipped, or expired if its address was erased "
        "before; a fulfilled line of a physical gift has one.",
        """
        SELECT coalesce(s.order_id, h.order_id) || '/' || coalesce(s.number, h.number)
        FROM (
            SELECT s.customer_id, s.order_id, s.number, s.product_id, s.state, o.environment
            FROM line_states s JOIN products p ON p.id = s.product_id
            JOIN orders o ON o.customer_id = s.customer_id AND o.id = s.order_id
            WHERE NOT p.is_digital AND s.state IN ('chosen', 'fulfilled', 'expired')
        ) AS s
        FULL JOIN shipments h USING (customer_id, order_id, number)
        WHERE CASE WHEN h.id IS NULL THEN s.state <> 'fulfilled'
                   ELSE (s.product_id, s.environment) = (h.product_id, h.environment)
                        AND CASE s.state WHEN 'expired' THEN h.sealed_address IS NULL
                            ELSE (s.state = 'fulfilled') = (h.shipped_at IS NOT NULL) END END IS NOT TRUE
        """,
        of="order/code",
    ),
)

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


CODES_OPEN = "codes-open"
LOOKUPS_FIT = "code-lookups-fit"
RULES = {
    CODES_OPEN: "The sealed code and PIN of every line open under the master keys, for that line and no other.",
    LOOKUPS_FIT: "The number by which a code is found belongs to the code.",
}

_LINES_AT_ONCE = 2_000
_CODES = """
    SELECT l.order_id, l.number, o.reference, l.code_lookup, l.sealed
    FROM lines l JOIN orders o ON o.customer_id = l.customer_id AND o.id = l.order_id
"""


async def check_codes(connection: Connection, vault: Vault, progress: Progress, timeout_s: float) -> list[Finding]:
    """Decrypts the code of every line whose order exists. Call it inside a transaction. Memory is bounded."""
    broken = {check: Tally(check, rule, "order/code") for check, rule in RULES.items()}
    async for rows in read_in_parts(connection, _CODES, _LINES_AT_ONCE, timeout_s=timeout_s):
        for check, line in _disagreements(rows, vault):
            broken[check].add(line)
        progress.add(len(rows))
    return [tally.finding() for tally in broken.values() if tally.count]


def _disagreements(rows: Sequence[Row], vault: Vault) -> Iterator[tuple[str, str]]:
    for order_id, number, reference, code_lookup, sealed in rows:
        try:
            code = open_code(vault, sealed, reference, number)
        except DecryptionFailed:
            yield CODES_OPEN, f"{order_id}/{number}"
            continue
        if code_lookup not in vault.codes.lookups(code.code):
            yield LOOKUPS_FIT, f"{order_id}/{number}"
