"""Checks of the ledger: balanced transfers, unbroken chains of entries, and balances that follow from the entries."""

from largesse.verify.check import Check

LEDGER = (
    Check(
        "entries-have-accounts",
        "Every entry is on an account that exists.",
        """
        SELECT e.account_id || '/' || e.id FROM entries e
        WHERE NOT EXISTS (SELECT FROM accounts a WHERE a.customer_id = e.customer_id AND a.id = e.account_id)
        """,
        of="account/entry",
    ),
    Check(
        "movements-balance",
        "The entries of a transfer add up to zero, within one customer, environment and currency.",
        """
        SELECT DISTINCT movement_id FROM (
            SELECT e.movement_id FROM entries e JOIN accounts a ON a.customer_id = e.customer_id AND a.id = e.account_id
            GROUP BY e.movement_id, a.customer_id, a.environment, a.currency
            HAVING sum(e.amount_minor) <> 0
        ) AS unbalanced
        """,
        of="transfer",
    ),
    Check(
        "entries-chain",
        "Each entry's balance is the one before it on its account, plus its amount; the first begins at zero.",
        """
        SELECT account_id || '/' || id FROM (
            SELECT account_id, id, balance_minor - amount_minor AS before_minor,
                   lag(balance_minor, 1, 0::bigint) OVER (PARTITION BY customer_id, account_id ORDER BY id) AS left_minor
            FROM entries
        ) AS chain
        WHERE before_minor <> left_minor
        """,
        of="account/entry",
    ),
    Check(
        "balances-follow-entries",
        "An account stands at the balance its last entry left, and at zero without entries.",
        """
        SELECT a.id FROM accounts a
        LEFT JOIN LATERAL (
            SELECT balance_minor FROM entries WHERE customer_id = a.customer_id AND account_id = a.id
            ORDER BY id DESC LIMIT 1
        ) AS last ON true
        WHERE a.balance_minor <> coalesce(last.balance_minor, 0)
        """,
        of="account",
    ),
    Check(
        "currencies-balance",
        "The balances of all accounts in a currency add up to zero, for each customer and environment too.",
        """
        SELECT 'customer ' || customer_id || ' ' || environment || ' ' || currency FROM accounts
        GROUP BY customer_id, environment, currency
        HAVING sum(balance_minor) <> 0
        """,
    ),
    Check(
        "no-overdraft",
        "No funding account is below zero.",
        "SELECT id FROM accounts WHERE kind = 'funding' AND balance_minor < 0",
        of="account",
    ),
    Check(
        "top-ups-are-whole",
        "A top-up is one credit of a funding account from its customer's deposits, and belongs to no order.",
        """
        SELECT e.movement_id FROM entries e
        JOIN accounts a ON a.customer_id = e.customer_id AND a.id = e.account_id
        WHERE e.kind = 'top_up'
        GROUP BY e.movement_id
        HAVING (count(*) = 2 AND count(e.order_id) = 0
                AND count(*) FILTER (WHERE a.kind = 'funding' AND e.amount_minor > 0) = 1
                AND count(*) FILTER (WHERE a.kind = 'deposits' AND e.amount_minor < 0) = 1) IS NOT TRUE
        """,
        of="transfer",
    ),
    Check(
        "top-ups-are-credited",
        "The account of a top-up that is confirmed was credited with what came, under its reference.",
        """
        WITH paid AS MATERIALIZED (
            SELECT customer_id, account_id, reference, amount_minor FROM entries WHERE reference IS NOT NULL)
        SELECT t.reference FROM top_ups t
        WHERE t.state = 'confirmed' AND NOT EXISTS (
            SELECT FROM paid e
            WHERE e.customer_id = t.customer_id AND e.account_id = t.account_id AND e.reference = t.reference
              AND e.amount_minor = t.credited_minor)
        """,
    ),
    Check(
        "transfers-are-whole",
        "A transfer is one debit and one credit of two funding accounts, as its row says, and belongs to no order.",
        """
        SELECT coalesce(t.id, moved.movement_id) FROM transfers t
        FULL JOIN (
            SELECT e.customer_id, e.movement_id, count(*) AS entries, count(e.order_id) AS of_orders,
                   count(*) FILTER (WHERE a.kind = 'funding') AS funding,
                   min(e.account_id) FILTER (WHERE e.amount_minor < 0) AS from_id,
                   min(e.account_id) FILTER (WHERE e.amount_minor > 0) AS to_id,
                   max(e.amount_minor) AS minor
            FROM entries e JOIN accounts a ON a.customer_id = e.customer_id AND a.id = e.account_id
            WHERE e.kind = 'transfer' GROUP BY e.customer_id, e.movement_id
        ) AS moved ON moved.customer_id = t.customer_id AND moved.movement_id = t.id
        WHERE (moved.entries = 2 AND moved.of_orders = 0 AND moved.funding = 2 AND moved.from_id = t.from_account_id
               AND moved.to_id = t.to_account_id AND moved.minor = t.amount_minor) IS NOT TRUE
        """,
        of="transfer",
    ),
    Check(
        "settlements-are-whole",
        "A settlement is one credit of a receivable from its customer's deposits, and belongs to no order.",
        """
        SELECT e.movement_id FROM entries e
        JOIN accounts a ON a.customer_id = e.customer_id AND a.id = e.account_id
        WHERE e.kind = 'settlement'
        GROUP BY e.movement_id
        HAVING (count(*) = 2 AND count(e.order_id) = 0
                AND count(*) FILTER (WHERE a.kind = 'receivable' AND e.amount_minor > 0) = 1
                AND count(*) FILTER (WHERE a.kind = 'deposits' AND e.amount_minor < 0) = 1) IS NOT TRUE
        """,
        of="transfer",
    ),
)

CORRECTIONS = (
    Check(
        "corrections-are-whole",
        "An approved correction is one transfer, as it says: between its account and the customer's deposits, or sales for a refund. No other "
        "transfer is of this kind.",
        """
        SELECT coalesce('correction ' || n.id, 'transfer ' || p.movement_id) FROM (SELECT * FROM corrections WHERE state = 'approved') n
        FULL JOIN (
            SELECT e.customer_id, e.movement_id, count(*) AS entries,
                   min(e.account_id) FILTER (WHERE a.kind IN ('funding', 'receivable')) AS account_id,
                   min(e.amount_minor) FILTER (WHERE a.kind IN ('funding', 'receivable')) AS minor,
                   min(a.kind) FILTER (WHERE a.kind IN ('deposits', 'sales')) AS other_kind,
                   min(a.environment) AS environment, min(o.reference) AS order_reference, count(e.order_id) AS of_orders
            FROM entries e JOIN accounts a ON a.customer_id = e.customer_id AND a.id = e.account_id
            LEFT JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id
            WHERE e.kind = 'correction' GROUP BY e.customer_id, e.movement_id
        ) AS p ON p.customer_id = n.customer_id AND p.movement_id = n.transfer_id
        WHERE ((p.entries, p.account_id, p.environment) = (2, n.account_id, n.environment)
               AND p.minor = CASE n.kind WHEN 'debit' THEN -n.amount_minor ELSE n.amount_minor END
               AND p.other_kind = CASE n.kind WHEN 'refund' THEN 'sales' ELSE 'deposits' END
               AND p.of_orders = CASE n.kind WHEN 'refund' THEN 2 ELSE 0 END
               AND p.order_reference IS NOT DISTINCT FROM n.order_reference) IS NOT TRUE
        """,
    ),
    Check(
        "corrections-are-by-two",
        "The audit log says that an approved correction was proposed by one member of staff and approved by another.",
        """
        SELECT n.id FROM corrections n
        WHERE n.state = 'approved' AND NOT EXISTS (
            SELECT FROM audit_events proposed JOIN audit_events approved USING (customer_id, subject, actor)
            WHERE customer_id = n.customer_id AND subject = 'correction ' || n.id AND actor = 'staff'
              AND proposed.act = 'correction.proposed' AND proposed.actor_id = n.proposed_by
              AND approved.act = 'correction.approved' AND approved.actor_id = n.decided_by
              AND n.proposed_by <> n.decided_by)
        """,
        of="correction",
    ),
)
