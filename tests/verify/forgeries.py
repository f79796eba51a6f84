"""What is forged on purpose, as whoever has all of the database could, but not the master key; and where `verify` must see it."""

from tests.verify.corruption import Corruption


def _f(check: str, ids: tuple[str, ...], sql: str, *too: str) -> Corruption:
    return Corruption(sql, check, ids, frozenset(too))


# Of acme, each account with the ids of its entries: acme-gbp 1, 17, 19, 21, 25, 27, 29; acme-jpy 7; sales-team 11; the deposits of
# pounds 2, 10, 12, those of yen 8. Where nothing else is said, the forger has put balances right, so that all else agrees.
DEPOSITS = """(SELECT s.id FROM accounts s JOIN accounts f USING (customer_id, environment, currency)
               WHERE f.key = 'acme-{}' AND s.kind = 'deposits')"""
POUNDS, YEN = DEPOSITS.format("gbp"), DEPOSITS.format("jpy")


def _entered(entry: int, account: str, amount: int) -> str:
    """SQL of a top-up's entry at the end of an account, with the mark of the one before."""
    return f"""
        INSERT INTO entries (id, customer_id, account_id, movement_id, kind, amount_minor, balance_minor, created_at, mac)
        OVERRIDING SYSTEM VALUE
        SELECT {entry}, customer_id, id, 9999, 'top_up', {amount}, balance_minor + {amount}, now(),
               (SELECT mac FROM entries WHERE account_id = {account} ORDER BY id DESC LIMIT 1)
        FROM accounts WHERE id = {account};
        UPDATE accounts SET balance_minor = balance_minor + {amount} WHERE id = {account};
    """


TOP_UP = _entered(901, "1", 5000) + _entered(902, POUNDS, -5000)
WITHOUT_THE_LAST = f"""
    UPDATE accounts SET balance_minor = 0 WHERE key = 'sales-team';
    UPDATE accounts SET balance_minor = balance_minor - (SELECT amount_minor FROM entries WHERE id = 12) WHERE id = {POUNDS};
    DELETE FROM entries WHERE id IN (11, 12);
"""
LEDGER_FORGERIES = (
    _f("entries-are-chained", ("acme/acme-gbp entry 901", "acme/deposits GBP production entry 902"), TOP_UP),
    _f(
        "entries-are-chained",
        ("acme/acme-gbp entry 901", "acme/deposits GBP production entry 902"),
        TOP_UP
        + "UPDATE accounts SET chain_head = substring((SELECT mac FROM entries WHERE id = 901) FROM 2) WHERE id = 1",
        "accounts-are-whole",
    ),
    # A changed amount.
    _f(
        "entries-are-chained",
        ("acme/acme-jpy entry 7", "acme/deposits JPY production entry 8"),
        f"""UPDATE entries SET amount_minor = amount_minor + sign * 5, balance_minor = balance_minor + sign * 5
            FROM (VALUES (7, 1), (8, -1)) AS forged (entry, sign) WHERE id = entry;
            UPDATE accounts SET balance_minor = balance_minor + 5 WHERE key = 'acme-jpy';
            UPDATE accounts SET balance_minor = balance_minor - 5 WHERE id = {YEN}""",
    ),
    _f(
        "entries-are-chained",
        ("acme/acme-gbp entry 19",),
        "UPDATE entries SET created_at = (created_at AT TIME ZONE 'UTC' - interval '1 microsecond') AT TIME ZONE 'UTC' WHERE id = 19",
    ),
    _f("entries-are-chained", ("acme/acme-gbp entry 1",), "UPDATE entries SET reference = 'paid' WHERE id = 1"),
    # A transfer removed from the midst.
    _f(
        "entries-are-chained",
        ("acme/deposits GBP production entry 12",),
        f"""UPDATE entries SET balance_minor = balance_minor - (SELECT amount_minor FROM entries WHERE id = 10) WHERE id = 12;
            UPDATE accounts SET balance_minor = balance_minor - (SELECT amount_minor FROM entries WHERE id = 10)
            WHERE id = {POUNDS};
            UPDATE accounts SET balance_minor = 0 WHERE key = 'people-team';
            DELETE FROM entries WHERE id IN (9, 10)""",
        "accounts-are-whole",
    ),
    # The last removed, with a head that is gone, made up, or made of what is there.
    *(
        _f(
            "accounts-are-whole",
            ("acme/deposits GBP production", "acme/sales-team"),
            WITHOUT_THE_LAST + f"UPDATE accounts SET chain_head = {head} WHERE id = {POUNDS}",
        )
        for head in ("chain_head", "DEFAULT", "'\\x01'", "substring((SELECT mac FROM entries WHERE id = 10) FROM 2)")
    ),
    # Two orders of one price, in another order.
    _f(
        "entries-are-chained",
        ("acme/acme-gbp entry 17", "acme/acme-gbp entry 19"),
        """UPDATE entries SET movement_id = other.movement_id, order_id = other.order_id, created_at = other.created_at
           FROM entries other WHERE other.account_id = 1 AND other.id IN (17, 19)
               AND entries.account_id = 1 AND entries.id = 36 - other.id""",
    ),
    # Marks taken away, and an opening put in their place.
    _f(
        "entries-are-chained",
        ("acme/acme-gbp entry 19", "acme/acme-gbp entry 21"),
        "UPDATE entries SET mac = NULL WHERE id = 19",
    ),
    _f(
        "entries-are-chained",
        ("acme/acme-gbp entries up to 21",),
        """INSERT INTO chain_openings SELECT 1, 1, id, mac, now() FROM entries WHERE id = 21;
           UPDATE entries SET mac = NULL WHERE account_id = 1 AND id <= 21;
           UPDATE entries SET created_at = (created_at AT TIME ZONE 'UTC' - interval '1 hour') AT TIME ZONE 'UTC' WHERE id = 17""",
    ),
    _f("accounts-are-whole", ("acme/acme-gbp",), "UPDATE accounts SET chain_head = DEFAULT WHERE id = 1"),
)
# What a placed order was is under the mark of the entry that pays it: what was ordered, by whom, when and for whom.
ORDER_FORGERIES = tuple(
    _f("entries-are-chained", (f"acme/acme-gbp entry {entry}",), sql)
    for entry, sql in (
        (17, "UPDATE orders SET product_id = (SELECT max(id) FROM products WHERE is_digital) WHERE id = 1"),
        (17, "UPDATE orders SET service_account_id = NULL, user_id = 1 WHERE id = 1"),
        (17, "UPDATE orders SET api_key_id = (SELECT max(id) FROM api_keys) WHERE id = 1"),
        (17, "UPDATE orders SET message = 'Yours' WHERE id = 1"),
        (19, "UPDATE orders SET expiry_after_days = 9999 WHERE id = 2"),
        (
            19,
            "UPDATE orders SET created_at = (created_at AT TIME ZONE 'UTC' - interval '1 microsecond') AT TIME ZONE 'UTC' WHERE id = 2",
        ),
        (17, "UPDATE lines SET recipient_email = 'eve@acme.example' WHERE order_id = 1 AND number = 1"),
        (17, "UPDATE lines SET recipient_name = 'Eve' WHERE order_id = 1 AND number = 1"),
        # As if it had been corrected, with what the database can tell.
        (
            17,
            """UPDATE lines SET recipient_email = 'eve@acme.example' WHERE order_id = 1 AND number = 1;
               UPDATE orders SET placed_digest = decode(repeat('ab', 16), 'hex'),
                   mac = (SELECT mac FROM entries WHERE id = 17) WHERE id = 1""",
        ),
        # As if a recipient had been erased.
        (
            21,
            "UPDATE lines SET recipient_email = 'erased-1@erased.invalid', recipient_name = NULL WHERE order_id = 3 AND number = 1",
        ),
    )
)
# The log of acme has the events 1 to 5.
AUDIT_FORGERIES = (
    _f("audit-events-are-chained", ("acme event 2",), "UPDATE audit_events SET after = '{}' WHERE id = 2"),
    _f("audit-events-are-chained", ("acme event 3",), "UPDATE audit_events SET actor_name = 'eve' WHERE id = 3"),
    _f(
        "audit-events-are-chained",
        ("acme event 1",),
        "UPDATE audit_events SET at = (at AT TIME ZONE 'UTC' - interval '1 microsecond') AT TIME ZONE 'UTC' WHERE id = 1",
    ),
    _f("audit-events-are-chained", ("acme event 3",), "DELETE FROM audit_events WHERE id = 2"),
    _f(
        "audit-events-are-chained",
        ("acme event 2", "acme event 3", "acme event 4"),
        """UPDATE audit_events SET id = 9 WHERE id = 2; UPDATE audit_events SET id = 2 WHERE id = 3;
           UPDATE audit_events SET id = 3 WHERE id = 9""",
    ),
    # One made of another, with its mark.
    _f(
        "audit-events-are-chained",
        ("acme event 9",),
        """INSERT INTO audit_events (id, customer_id, at, actor, actor_name, act, subject, after, mac)
           SELECT 9, customer_id, at, actor, actor_name, act, subject, after, mac FROM audit_events WHERE id = 4""",
        "audit-log-is-whole",
    ),
    # From one customer's log to another's.
    _f(
        "audit-events-are-chained",
        ("acme event 4", "globex event 3"),
        "UPDATE audit_events SET customer_id = 2 WHERE id = 3",
        "audit-log-is-whole",
    ),
    _f("audit-log-is-whole", ("acme",), "DELETE FROM audit_events WHERE id = 5"),
    _f("audit-log-is-whole", ("acme",), "DELETE FROM audit_events WHERE id IN (4, 5)"),
    _f("audit-log-is-whole", ("acme",), "DELETE FROM audit_events"),
    _f("audit-log-is-whole", ("acme",), "UPDATE audit_heads SET head = (SELECT mac FROM audit_events WHERE id = 5)"),
    _f("audit-log-is-whole", ("acme",), "DELETE FROM audit_heads"),
)
# Nobody has claimed anything yet.
CLAIM_FORGERIES = (
    _f(
        "line-events-are-chained",
        ("acme mark 1",),
        """INSERT INTO line_events (customer_id, order_id, number, event, at) VALUES (1, 2, 1, 'claimed', now());
           INSERT INTO line_states (customer_id, order_id, number, state, claimed_at) VALUES (1, 2, 1, 'claimed', now());
           INSERT INTO order_changes (customer_id, order_id, changed_at) VALUES (1, 2, now());
           INSERT INTO line_event_marks SELECT 1, 1, 2, 1, 'claimed', now(), mac FROM audit_events WHERE id = 1""",
        "line-events-are-whole",
    ),
    _f("line-events-are-whole", ("line events",), "UPDATE line_event_head SET number = 1"),
    _f("line-events-are-whole", ("line events",), "DELETE FROM line_event_head"),
)
FORGERIES = (*LEDGER_FORGERIES, *ORDER_FORGERIES, *AUDIT_FORGERIES, *CLAIM_FORGERIES)
