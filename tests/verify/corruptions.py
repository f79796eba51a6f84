"""What is broken on purpose, one row at a time, and which check must find it."""

from __future__ import annotations

from dataclasses import dataclass, field

# Orders 1 to 7, in this order.
DIGITAL, BATCH, COLLECTION, INVOICED, PHYSICAL, ACCENTED, TEMPLATE = range(1, 8)


@dataclass(frozen=True)
class Corruption:
    """What is done to the database, the check that must see it with these ids, and others that see it as well."""

    sql: str
    check: str
    ids: tuple[str, ...] | None  # None: whatever they are
    too: frozenset[str] = field(default=frozenset())

    def __str__(self) -> str:
        return f"{self.check}: {' '.join(self.sql.split())[:60]}"


def _c(check: str, ids: tuple[str, ...] | None, sql: str, *too: str) -> Corruption:
    return Corruption(sql, check, ids, frozenset(too))


FLOAT = "(SELECT id FROM accounts WHERE key = 'acme-gbp')"
BESIDE = """(SELECT s.id FROM accounts s JOIN accounts f USING (customer_id, environment, currency)
             WHERE f.key = 'acme-gbp' AND s.kind = '{}')"""
SALES, DEPOSITS = BESIDE.format("sales"), BESIDE.format("deposits")
ORDER_CORRUPTIONS = (
    _c(
        "entries-have-accounts",
        None,
        """INSERT INTO entries (account_id, movement_id, kind, amount_minor, balance_minor, created_at)
           VALUES (9999, 9999, 'top_up', 5, 5, now())""",
    ),
    _c(
        "movements-balance",
        ("9999",),
        f"""INSERT INTO entries (account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
            SELECT id, 9999, 'refund', {DIGITAL}, -1, balance_minor - 1, now() FROM accounts WHERE id = {SALES};
            UPDATE accounts SET balance_minor = balance_minor - 1 WHERE id = {SALES}""",
        "currencies-balance",
        "refunds-fit-cancellations",
    ),
    # From one customer to another: zero in all, and yet wrong.
    _c(
        "movements-balance",
        ("9999",),
        f"""INSERT INTO entries (account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
            SELECT id, 9999, 'refund', {DIGITAL}, amount, balance_minor + amount, now()
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
    _c(
        "orders-are-charged-once",
        (str(DIGITAL),),
        f"UPDATE orders SET account_id = NULL WHERE id = {DIGITAL}",
    ),
    _c(
        "orders-are-charged-once",
        (str(INVOICED),),
        f"UPDATE orders SET account_id = {FLOAT} WHERE id = {INVOICED}",
    ),
    _c(
        "orders-are-charged-once",
        (str(PHYSICAL),),
        # A physical total may be any that is enough, so the ledger alone knows.
        f"UPDATE orders SET total_minor = total_minor + code_count WHERE id = {PHYSICAL}",
    ),
    _c(
        "totals-fit", (str(DIGITAL),), f"UPDATE orders SET value_minor = value_minor + 1 WHERE id = {DIGITAL}"
    ),
    _c(
        "totals-fit",
        (str(COLLECTION),),
        f"UPDATE orders SET value_minor = value_minor - 1 WHERE id = {COLLECTION}",
    ),
    _c("totals-fit", (str(PHYSICAL),), f"UPDATE orders SET value_minor = total_minor WHERE id = {PHYSICAL}"),
    _c("lines-are-numbered", (str(BATCH),), f"DELETE FROM lines WHERE order_id = {BATCH} AND number = 3"),
    _c("lines-are-numbered", (str(BATCH),), f"DELETE FROM lines WHERE order_id = {BATCH} AND number = 2"),
    _c("lines-are-numbered", (str(BATCH),), f"DELETE FROM lines WHERE order_id = {BATCH}"),
    _c(
        "lines-are-numbered",
        (str(BATCH),),
        f"""INSERT INTO lines SELECT order_id, 4, recipient_email, recipient_name, code_lookup + 1, sealed
            FROM lines WHERE order_id = {BATCH} AND number = 3""",
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
    _c(
        "orders-have-events",
        (str(DIGITAL),),
        f"UPDATE events SET environment = 'staging' WHERE order_id = {DIGITAL}",
    ),
    _c("orders-have-mail-jobs", (str(DIGITAL),), f"DELETE FROM mail_jobs WHERE order_id = {DIGITAL}"),
    _c(
        "orders-have-mail-jobs",
        (str(BATCH),),
        f"INSERT INTO mail_jobs (order_id, environment, due_at) VALUES ({BATCH}, 'production', now())",
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
        "INSERT INTO lines (order_id, number, code_lookup, sealed) VALUES (9999, 1, 1, '')",
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
        "mail-jobs-have-orders",
        ("9999",),
        "INSERT INTO mail_jobs (order_id, environment, due_at) VALUES (9999, 'production', now())",
    ),
    _c(
        "code-readings-have-orders",
        None,
        "INSERT INTO code_readings (order_id, service_account_id) VALUES (9999, 1)",
    ),
    _c(
        "order-acts-have-orders",
        None,
        """INSERT INTO order_acts (order_id, act, service_account_id, api_key_id, acted_at)
           VALUES (9999, 'cancel', 1, 1, now())""",
    ),
    _c(
        "orders-have-keys",
        (str(DIGITAL),),
        f"UPDATE orders SET api_key_id = 9999 WHERE id = {DIGITAL}",
    ),
    _c(
        "orders-have-customers",
        (str(DIGITAL),),
        f"UPDATE orders SET service_account_id = 9999 WHERE id = {DIGITAL}",
    ),
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
    ),
    _c("orders-have-gifts", (str(PHYSICAL),), f"UPDATE orders SET product_id = 9999 WHERE id = {PHYSICAL}"),
    _c(
        "orders-have-gifts",
        (str(COLLECTION),),
        f"UPDATE orders SET collection_id = 9999 WHERE id = {COLLECTION}",
    ),
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
    _c(
        "codes-open", (f"{BATCH}/1",), f"UPDATE lines SET sealed = '' WHERE order_id = {BATCH} AND number = 1"
    ),
    _c(
        "code-lookups-fit",
        (f"{BATCH}/1",),
        f"UPDATE lines SET code_lookup = code_lookup # 1 WHERE order_id = {BATCH} AND number = 1",
    ),
)


def _claimed(order: int, number: int, state: str, *moves: str, product: str | None = None) -> str:
    """SQL that leaves a line in `state` with these moves recorded."""
    product_id = f"(SELECT id FROM products WHERE key = '{product}')" if product else "NULL"
    events = ", ".join(f"({order}, {number}, '{move}', now())" for move in moves)
    return f"""
        INSERT INTO line_states (order_id, number, state, claimed_at, product_id)
        VALUES ({order}, {number}, '{state}', {"NULL" if state == "cancelled" else "now()"}, {product_id});
    """ + (f"INSERT INTO line_events (order_id, number, event, at) VALUES {events};" if moves else "")


CHOSEN = _claimed(DIGITAL, 1, "chosen", "claimed", "chosen", product="coffee-house")
FULFILLED = _claimed(DIGITAL, 1, "fulfilled", "claimed", "chosen", "fulfilled", product="coffee-house")
PARCEL = _claimed(PHYSICAL, 1, "fulfilled", "claimed", "chosen", "fulfilled", product="newborn-box")
CLAIM_CORRUPTIONS = (
    _c("states-have-lines", (f"{DIGITAL}/99",), _claimed(DIGITAL, 99, "claimed", "claimed")),
    _c(
        "states-have-lines",
        ("9999/1",),
        "INSERT INTO line_events (order_id, number, event, at) VALUES (9999, 1, 'opened', now())",
    ),
    _c("states-follow-events", (f"{BATCH}/2",), _claimed(BATCH, 2, "claimed")),
    _c("states-follow-events", (f"{BATCH}/2",), _claimed(BATCH, 2, "expired", "claimed")),
    _c(
        "states-follow-events",
        (f"{BATCH}/2",),
        f"INSERT INTO line_events (order_id, number, event, at) VALUES ({BATCH}, 2, 'claimed', now())",
    ),
    _c("refunds-fit-cancellations", (str(BATCH),), _claimed(BATCH, 1, "cancelled", "cancelled")),
    _c(
        "refunds-fit-cancellations",
        (str(BATCH),),
        f"""INSERT INTO entries (account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
            SELECT id, 9999, 'refund', {BATCH}, sign * 1000, balance_minor + sign * 1000, now()
            FROM accounts, (VALUES (1), (-1)) AS signs (sign)
            WHERE id = CASE sign WHEN 1 THEN {FLOAT} ELSE {SALES} END;
            UPDATE accounts SET balance_minor = balance_minor + 1000 WHERE id = {FLOAT};
            UPDATE accounts SET balance_minor = balance_minor - 1000 WHERE id = {SALES}""",
    ),
    _c("vouchers-fit", (f"{DIGITAL}/1",), FULFILLED),
    _c(
        "vouchers-fit",
        (f"{DIGITAL}/1",),
        FULFILLED
        + f"""INSERT INTO vouchers (product_id, value_minor, lookup, sealed, added_at, order_id, number, handed_at)
              SELECT product_id, 500, 1, '', now(), id, 1, now() FROM orders WHERE id = {DIGITAL}""",
    ),
    _c("waits-fit", (f"{DIGITAL}/1",), CHOSEN),
    _c(
        "waits-fit",
        (f"{DIGITAL}/2",),
        f"""INSERT INTO voucher_waits (product_id, value_minor, order_id, number, since)
            SELECT product_id, value_minor, id, 2, now() FROM orders WHERE id = {DIGITAL}""",
    ),
    _c("shipments-fit", (f"{PHYSICAL}/1",), PARCEL),
    _c(
        "shipments-fit",
        (f"{PHYSICAL}/1",),
        PARCEL
        + f"""INSERT INTO shipments (order_id, number, environment, product_id, country, sealed_address, requested_at)
              SELECT id, 1, environment, product_id, country, '', now() FROM orders WHERE id = {PHYSICAL}""",
    ),
)
CORRUPTIONS = (*ORDER_CORRUPTIONS, *CLAIM_CORRUPTIONS)
