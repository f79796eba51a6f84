"""What is broken on purpose, one row at a time, and which check must find it."""

from tests.verify.claim_corruptions import CLAIM_CORRUPTIONS
from tests.verify.corruption import ACCENTED, BATCH, COLLECTION, DEPOSITS, DIGITAL, FLOAT, INVOICED, PHYSICAL, SALES
from tests.verify.corruption import corruption as _c
from tests.verify.room_corruptions import ROOM_CORRUPTIONS

ORDER_CORRUPTIONS = (
    _c(
        "entries-have-accounts",
        None,
        """INSERT INTO entries (customer_id, account_id, movement_id, kind, amount_minor, balance_minor, created_at)
           VALUES (1, 9999, 9999, 'top_up', 5, 5, now())""",
    ),
    _c(
        "movements-balance",
        ("9999",),
        f"""INSERT INTO entries (customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
            SELECT customer_id, id, 9999, 'refund', {DIGITAL}, -1, balance_minor - 1, now() FROM accounts WHERE id = {SALES};
            UPDATE accounts SET balance_minor = balance_minor - 1 WHERE id = {SALES}""",
        "currencies-balance",
        "refunds-fit-cancellations",
    ),
    # From one customer to another: zero in all, and yet wrong.
    _c(
        "movements-balance",
        ("9999",),
        f"""INSERT INTO entries (customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
            SELECT customer_id, id, 9999, 'refund', {DIGITAL}, amount, balance_minor + amount, now()
            FROM accounts JOIN (VALUES ('acme-gbp', 7), ('acme-staging-gbp', -7)) AS v (key, amount) USING (key);
            UPDATE accounts SET balance_minor = balance_minor + 7 WHERE key = 'acme-gbp';
            UPDATE accounts SET balance_minor = balance_minor - 7 WHERE key = 'acme-staging-gbp'""",
        "currencies-balance",
        "refunds-fit-cancellations",
    ),
    _c(
        "entries-chain",
        None,
        f"UPDATE entries SET balance_minor = balance_minor + 1 WHERE order_id = {DIGITAL} AND amount_minor < 0",
    ),
    _c(
        "entries-chain",
        None,
        # The first entry of an account begins at zero.
        "UPDATE entries SET balance_minor = balance_minor + 1 WHERE id = (SELECT min(id) FROM entries)",
    ),
    _c(
        "balances-follow-entries",
        None,
        f"""UPDATE accounts SET balance_minor = balance_minor + 1 WHERE id = {FLOAT};
            UPDATE accounts SET balance_minor = balance_minor - 1 WHERE id = {DEPOSITS}""",
    ),
    _c(
        "balances-follow-entries",
        None,
        """INSERT INTO accounts (customer_id, environment, kind, currency, balance_minor)
           SELECT id, 'production', kind, 'SEK', amount
           FROM customers, (VALUES ('sales', 1), ('deposits', -1)) AS v (kind, amount) WHERE key = 'acme'""",
    ),
    _c(
        "currencies-balance",
        ("customer 1 production GBP",),
        f"UPDATE accounts SET balance_minor = balance_minor + 1 WHERE id = {FLOAT}",
        "balances-follow-entries",
    ),
    _c(
        "no-overdraft",
        None,
        f"""ALTER TABLE accounts DROP CONSTRAINT accounts_not_overdrawn;
            UPDATE accounts SET balance_minor = -1 WHERE id = {FLOAT}""",
        "balances-follow-entries",
        "currencies-balance",
    ),
    _c(
        "top-ups-are-whole",
        None,
        f"UPDATE entries SET order_id = {DIGITAL} WHERE kind = 'top_up' AND account_id = {FLOAT}",
    ),
    _c(
        "top-ups-are-whole",
        None,
        """DROP INDEX accounts_own;
           UPDATE accounts SET kind = 'receivable' WHERE id = (
               SELECT d.id FROM accounts d JOIN accounts f USING (customer_id, environment, currency)
               WHERE f.key = 'acme-jpy' AND d.kind = 'deposits')""",
    ),
    _c(
        "top-ups-are-credited",
        ("RF18539007547034",),
        f"""INSERT INTO top_ups (customer_id, reference, environment, account_id, amount_minor, credited_minor, state,
                requested_at, expires_at, ended_at)
            SELECT customer_id, 'RF18539007547034', environment, id, 5, 5, 'confirmed', now(), now(), now()
            FROM accounts WHERE id = {FLOAT}""",
    ),
    _c(
        "transfers-are-whole",
        ("77",),
        f"""INSERT INTO transfers (customer_id, id, environment, from_account_id, to_account_id, amount_minor, made_at)
            SELECT customer_id, 77, a.environment, a.id, b.id, 5, now()
            FROM accounts a JOIN accounts b USING (customer_id) WHERE a.id = {FLOAT} AND b.key = 'people-team'""",
    ),
    _c(
        "transfers-are-whole",
        None,
        f"""UPDATE entries SET kind = 'transfer'
            WHERE kind = 'top_up' AND movement_id = (
                SELECT min(movement_id) FROM entries WHERE kind = 'top_up' AND account_id = {FLOAT})""",
    ),
    _c(
        "settlements-are-whole",
        None,
        f"""UPDATE entries SET kind = 'settlement'
            WHERE kind = 'top_up' AND movement_id = (
                SELECT min(movement_id) FROM entries WHERE kind = 'top_up' AND account_id = {FLOAT})""",
    ),
    _c(
        "orders-are-charged-once",
        (str(DIGITAL), str(BATCH)),
        f"UPDATE entries SET order_id = {BATCH} WHERE order_id = {DIGITAL}",
    ),
    _c(
        "orders-are-charged-once",
        (str(DIGITAL),),
        f"UPDATE entries SET kind = 'refund' WHERE order_id = {DIGITAL}",
        "refunds-fit-cancellations",
    ),
    _c(
        "orders-are-charged-once",
        (str(DIGITAL),),
        f"UPDATE entries SET movement_id = 9999 WHERE order_id = {DIGITAL} AND amount_minor > 0",
        "movements-balance",
    ),
    _c(
        "orders-are-charged-once",
        (str(DIGITAL),),
        f"UPDATE orders SET account_id = (SELECT id FROM accounts WHERE key = 'people-team') WHERE id = {DIGITAL}",
    ),
    _c("orders-are-charged-once", (str(DIGITAL),), f"UPDATE orders SET account_id = NULL WHERE id = {DIGITAL}"),
    _c("orders-are-charged-once", (str(INVOICED),), f"UPDATE orders SET account_id = {FLOAT} WHERE id = {INVOICED}"),
    _c(
        "orders-are-charged-once",
        (str(PHYSICAL),),
        # A physical total may be any that is enough, so the ledger alone knows.
        f"UPDATE orders SET total_minor = total_minor + code_count WHERE id = {PHYSICAL}",
    ),
    _c("totals-fit", (str(DIGITAL),), f"UPDATE orders SET value_minor = value_minor + 1 WHERE id = {DIGITAL}"),
    _c("totals-fit", (str(COLLECTION),), f"UPDATE orders SET value_minor = value_minor - 1 WHERE id = {COLLECTION}"),
    _c("totals-fit", (str(PHYSICAL),), f"UPDATE orders SET value_minor = total_minor WHERE id = {PHYSICAL}"),
    _c("lines-are-numbered", (str(BATCH),), f"DELETE FROM lines WHERE order_id = {BATCH} AND number = 3"),
    _c("lines-are-numbered", (str(BATCH),), f"DELETE FROM lines WHERE order_id = {BATCH} AND number = 2"),
    _c("lines-are-numbered", (str(BATCH),), f"DELETE FROM lines WHERE order_id = {BATCH}"),
    _c(
        "lines-are-numbered",
        (str(BATCH),),
        f"""INSERT INTO lines (customer_id, order_id, number, recipient_email, recipient_name, code_lookup, sealed)
            SELECT customer_id, order_id, 4, recipient_email, recipient_name, code_lookup + 1, sealed FROM lines WHERE order_id = {BATCH} AND number = 3""",
        "codes-open",
    ),
    _c(
        "recipients-fit",
        (str(DIGITAL),),
        f"UPDATE lines SET recipient_email = 'new@acme.example' WHERE order_id = {DIGITAL} AND number = 3",
    ),
    _c(
        "recipients-fit",
        (str(DIGITAL),),
        f"UPDATE lines SET recipient_email = NULL WHERE order_id = {DIGITAL} AND number = 3",
    ),
    _c(
        "recipients-fit",
        (str(BATCH),),
        f"UPDATE lines SET recipient_email = 'new@acme.example' WHERE order_id = {BATCH} AND number = 3",
    ),
    _c("recipients-fit", (str(BATCH),), f"UPDATE orders SET recipient_count = 1 WHERE id = {BATCH}"),
    _c("recipients-fit", (str(ACCENTED),), f"UPDATE orders SET recipient_count = 3 WHERE id = {ACCENTED}"),
    _c(
        "orders-have-events",
        (str(DIGITAL),),
        f"DELETE FROM events WHERE order_id = {DIGITAL}",
        # Nobody ever hears of the order.
        "orders-are-reported",
        "recipients-are-found",
    ),
    _c(
        "orders-have-events",
        (str(DIGITAL),),
        f"""INSERT INTO events (order_id, customer_id, environment, event, body, created_at)
            SELECT order_id, customer_id, environment, event, body, created_at FROM events
            WHERE order_id = {DIGITAL}""",
    ),
    _c("orders-have-events", (str(DIGITAL),), f"UPDATE events SET environment = 'staging' WHERE order_id = {DIGITAL}"),
    _c("orders-have-mail-jobs", (str(DIGITAL),), f"DELETE FROM mail_jobs WHERE order_id = {DIGITAL}"),
    _c(
        "orders-have-mail-jobs",
        (str(BATCH),),
        f"INSERT INTO mail_jobs (customer_id, order_id, environment, due_at) VALUES (1, {BATCH}, 'production', now())",
    ),
    _c(
        "orders-have-mail-jobs",
        (str(DIGITAL),),
        f"UPDATE mail_jobs SET environment = 'staging' WHERE order_id = {DIGITAL}",
    ),
    _c(
        "external-references-are-unique",
        (f"{DIGITAL}+{BATCH}",),
        f"""DROP INDEX orders_external_reference;
            UPDATE orders SET external_reference = 'sent' WHERE id = {BATCH}""",
    ),
    _c(
        "references-are-unique",
        (f"{DIGITAL}+{BATCH}",),
        f"""DROP INDEX orders_reference;
            UPDATE orders SET reference = (SELECT reference FROM orders WHERE id = {DIGITAL}) WHERE id = {BATCH}""",
        "codes-open",
    ),
    _c(
        "entries-have-orders",
        None,
        f"UPDATE entries SET kind = 'refund', order_id = 9999 WHERE order_id = {DIGITAL}",
        "orders-are-charged-once",
    ),
    _c(
        "lines-have-orders",
        ("9999/1",),
        "INSERT INTO lines (customer_id, order_id, number, code_lookup, sealed) VALUES (1, 9999, 1, 1, '')",
    ),
    _c(
        "events-have-orders",
        None,
        """INSERT INTO events (order_id, customer_id, environment, event, body, created_at)
           VALUES (9999, 1, 'production', 'order.created', '', now())""",
    ),
    _c(
        "events-are-known",
        None,
        f"UPDATE events SET event = 'order.lost' WHERE order_id = {DIGITAL}",
        "orders-have-events",
    ),
    _c(
        "events-are-known",
        ("subscription 7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a",),
        """INSERT INTO webhook_subscriptions
               (id, customer_id, environment, event, target_url, sealed_secret, service_account_id)
           SELECT '7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a', customer_id, 'production', 'order.lost', 'https://hooks.example/', '', id
           FROM service_accounts LIMIT 1""",
    ),
    _c(
        "events-are-known",
        ("subscription 7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6b",),
        """INSERT INTO webhook_subscriptions
               (id, customer_id, environment, events, target_url, sealed_secret, service_account_id)
           SELECT '7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6b', customer_id, 'production', '{gift.sent,order.lost}', 'https://hooks.example/', '', id
           FROM service_accounts LIMIT 1""",
    ),
    _c(
        "rows-have-customers",
        ("messages of 0",),
        """INSERT INTO messages (customer_id, order_id, environment, email, line_numbers, due_at, rank_at, created_at)
           VALUES (0, 1, 'production', 'a@acme.example', '{1}', now(), now(), now())""",
    ),
    _c(
        "mail-jobs-have-orders",
        ("9999",),
        "INSERT INTO mail_jobs (customer_id, order_id, environment, due_at) VALUES (1, 9999, 'production', now())",
    ),
    _c(
        "code-readings-have-orders",
        None,
        "INSERT INTO code_readings (customer_id, order_id, service_account_id) VALUES (1, 9999, 1)",
    ),
    _c(
        "order-acts-have-orders",
        None,
        """INSERT INTO order_acts (customer_id, order_id, act, service_account_id, api_key_id, acted_at)
           VALUES (1, 9999, 'cancel', 1, 1, now())""",
    ),
    _c(
        "line-messages-have-orders",
        ("9999/1",),
        "INSERT INTO line_messages (customer_id, order_id, number, message) VALUES (1, 9999, 1, 'Dear Ada')",
    ),
    _c(
        "follow-ups-have-orders",
        ("9999",),
        "INSERT INTO follow_ups (customer_id, order_id, environment, sent_at) VALUES (1, 9999, 'production', now())",
    ),
    _c(
        "reminder-stops-have-orders",
        ("9999/1",),
        "INSERT INTO reminder_stops (customer_id, order_id, number, stopped_at) VALUES (1, 9999, 1, now())",
    ),
    _c("orders-have-keys", (str(DIGITAL),), f"UPDATE orders SET api_key_id = 9999 WHERE id = {DIGITAL}"),
    _c("orders-have-customers", (str(DIGITAL),), f"UPDATE orders SET service_account_id = 9999 WHERE id = {DIGITAL}"),
    _c(
        "orders-have-customers",
        (str(DIGITAL),),
        # Another customer's service account.
        f"""UPDATE orders SET service_account_id = (SELECT id FROM service_accounts WHERE key = 'rewards')
            WHERE id = {DIGITAL}""",
    ),
    _c(
        "orders-have-customers",
        (str(DIGITAL),),
        f"UPDATE orders SET customer_id = 9999 WHERE id = {DIGITAL}",
        "orders-are-charged-once",
        "orders-have-events",
        "orders-have-mail-jobs",
        *[
            "lines-are-numbered",
            "entries-have-orders",
            "events-have-orders",
            "lines-have-orders",
            "mail-jobs-have-orders",
        ],
    ),
    _c("orders-have-gifts", (str(PHYSICAL),), f"UPDATE orders SET product_id = 9999 WHERE id = {PHYSICAL}"),
    _c("orders-have-gifts", (str(COLLECTION),), f"UPDATE orders SET collection_id = 9999 WHERE id = {COLLECTION}"),
    _c("orders-have-gifts", (str(COLLECTION),), f"UPDATE orders SET product_id = 1 WHERE id = {COLLECTION}"),
    _c(
        "codes-open",
        (f"{BATCH}/1",),
        f"UPDATE lines SET sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1) WHERE order_id = {BATCH} AND number = 1",
    ),
    _c(
        "codes-open",
        (f"{BATCH}/1",),
        f"""UPDATE lines SET sealed = (SELECT sealed FROM lines WHERE order_id = {BATCH} AND number = 2)
            WHERE order_id = {BATCH} AND number = 1""",
    ),
    _c("codes-open", (f"{BATCH}/1",), f"UPDATE lines SET sealed = '' WHERE order_id = {BATCH} AND number = 1"),
    _c(
        "code-lookups-fit",
        (f"{BATCH}/1",),
        f"UPDATE lines SET code_lookup = code_lookup # 1 WHERE order_id = {BATCH} AND number = 1",
    ),
)


CORRUPTIONS = (*ORDER_CORRUPTIONS, *CLAIM_CORRUPTIONS, *ROOM_CORRUPTIONS)
