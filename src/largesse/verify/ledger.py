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
