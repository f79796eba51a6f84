"""What is broken on purpose of what became of lines."""

from tests.verify.corruption import BATCH, COLLECTION, DIGITAL, FLOAT, PHYSICAL, SALES
from tests.verify.corruption import corruption as _c

OWNER = 1  # Acme, whose orders those are


def _waits(order: int) -> str:
    """SQL after which the worker has yet to mark what became of an order's lines."""
    return f"INSERT INTO order_changes (customer_id, order_id, changed_at) VALUES ({OWNER}, {order}, now());"


def _claimed(order: int, number: int, state: str, *moves: str, product: str | None = None) -> str:
    """SQL that leaves a line in `state` with these moves recorded, which wait for their marks."""
    product_id = f"(SELECT id FROM products WHERE key = '{product}')" if product else "NULL"
    events = ", ".join(f"({OWNER}, {order}, {number}, '{move}', now())" for move in moves)
    return (
        f"""
        INSERT INTO line_states (customer_id, order_id, number, state, claimed_at, product_id)
        VALUES ({OWNER}, {order}, {number}, '{state}', {"NULL" if state == "cancelled" else "now()"}, {product_id});
    """
        + (f"INSERT INTO line_events (customer_id, order_id, number, event, at) VALUES {events};" if moves else "")
        + _waits(order)
    )


CHOSEN = _claimed(DIGITAL, 1, "chosen", "claimed", "chosen", product="coffee-house")
FULFILLED = _claimed(DIGITAL, 1, "fulfilled", "claimed", "chosen", "fulfilled", product="coffee-house")
PARCEL = _claimed(PHYSICAL, 1, "fulfilled", "claimed", "chosen", "fulfilled", product="newborn-box")


def _told(body: str) -> str:
    """SQL that records a claim of the first line of BATCH as an event with that body."""
    return f"""
        INSERT INTO events (order_id, customer_id, environment, event, line_number, body, created_at)
        VALUES ({BATCH}, {OWNER}, 'production', 'gift.claimed', 1, '{body}', now());
    """


def _campaign(order: int, ended: str = "NULL") -> str:
    """SQL for campaign 1, whose gifts are an order."""
    return f"""
        INSERT INTO campaigns (customer_id, id, environment, name, user_id, token, order_reference, gifts, given_through, domains, opens_at, closes_at,
            due_at, ended_at)
        SELECT customer_id, 1, environment, 'Summer', 1, 'token', reference, 5, 5, '{{}}', now(), now(), now(), {ended} FROM orders WHERE id = {order};
    """


# As if a campaign of user 1 had ordered the gifts: its marks tell, too.
_ORDERED = f"UPDATE orders SET source = 'campaign', user_id = 1, service_account_id = NULL, api_key_id = NULL WHERE id = {BATCH};"
CAMPAIGN_CORRUPTIONS = (
    _c("campaigns-have-their-orders", ("campaign 1",), _campaign(BATCH)),
    _c("campaigns-have-their-orders", None, _ORDERED),
    _c(
        "campaign-gifts-fit",
        None,
        _ORDERED
        + _campaign(BATCH)
        + f"UPDATE lines SET recipient_email = 'x@acme.example' WHERE order_id = {BATCH} AND number = 1",
    ),
    _c(
        "campaign-gifts-fit",
        None,
        _ORDERED
        + _campaign(BATCH)
        + f"INSERT INTO campaign_people (customer_id, environment, campaign_id, mailbox, number, taken_at) VALUES ({OWNER}, 'production', 1, 'x', 1, now())",
    ),
    _c("campaigns-are-refunded", None, _ORDERED + _campaign(BATCH, "now()")),
)
CLAIM_CORRUPTIONS = (
    _c(
        "ids-go-on",
        ("vouchers_id_seq",),
        f"""
        INSERT INTO vouchers (id, product_id, value_minor, lookup, sealed, added_at)
        OVERRIDING SYSTEM VALUE SELECT 1000000, product_id, 1000, 77, '', now() FROM orders WHERE id = {DIGITAL}
        """,
    ),
    _c(
        "gift-events-are-there",
        (f"{BATCH}/1 gift.fulfilled",),
        _claimed(BATCH, 1, "fulfilled", "claimed", "chosen", "fulfilled", product="coffee-house")
        + _told('{"id":"evt_1"}')
        + f"UPDATE events SET created_at = (created_at AT TIME ZONE 'UTC' - interval '1 hour') AT TIME ZONE 'UTC' WHERE order_id = {BATCH}",
        "vouchers-fit",
    ),
    _c(
        "expiries-fit",
        (f"{BATCH}/1",),
        _claimed(BATCH, 1, "claimed", "claimed")
        + f"UPDATE orders SET expiry_after_days = 30 WHERE id = {BATCH};"
        + "UPDATE line_states SET expires_at = (claimed_at AT TIME ZONE 'UTC' + interval '31 days') AT TIME ZONE 'UTC'",
    ),
    _c("erased-orders-name-nobody", (str(DIGITAL),), f"UPDATE orders SET erased_at = now() WHERE id = {DIGITAL}"),
    _c(
        "encrypted-values-open",
        ("vouchers 77",),
        f"""
        INSERT INTO vouchers (id, product_id, value_minor, lookup, sealed, added_at)
        OVERRIDING SYSTEM VALUE SELECT 77, product_id, 1000, 77, sealed, now()
        FROM orders JOIN lines ON lines.customer_id = orders.customer_id AND order_id = id AND number = 1 WHERE id = {DIGITAL}
        """,
    ),
    _c("gift-events-happened", None, _told('{"id":"evt_1"}')),
    _c(
        "gift-events-happened",
        None,
        _claimed(BATCH, 1, "claimed", "claimed") + _told('{"id":"evt_1"}') + _told('{"id":"evt_1"}'),
    ),
    _c(
        "notes-thank-for-gifts",
        ("note 1",),
        f"""
        INSERT INTO thank_you_notes (customer_id, order_id, number, environment, sealed, written_at)
        SELECT customer_id, id, 1, environment, '', now() FROM orders WHERE id = {BATCH}
        """,
    ),
    *CAMPAIGN_CORRUPTIONS,
    _c(
        "automations-sent-what-they-say",
        ("1/1/2026-01-02",),
        f"""
        INSERT INTO automation_runs (customer_id, environment, automation_id, contact_id, on_day, send_on, due_at, look_at, state, order_reference)
        SELECT customer_id, environment, 1, 1, '2026-01-02', '2026-01-02', now(), now(), 'placed', reference FROM orders WHERE id = {BATCH}
        """,
    ),
    _c("states-have-lines", (f"{DIGITAL}/99",), _claimed(DIGITAL, 99, "claimed", "claimed")),
    _c(
        "states-have-lines",
        ("9999/1",),
        "INSERT INTO line_events (customer_id, order_id, number, event, at) VALUES (1, 9999, 1, 'opened', now())",
    ),
    _c("states-follow-events", (f"{BATCH}/2",), _claimed(BATCH, 2, "claimed")),
    _c("states-follow-events", (f"{BATCH}/2",), _claimed(BATCH, 2, "expired", "claimed")),
    _c(
        "states-follow-events",
        (f"{BATCH}/2",),
        f"INSERT INTO line_events (customer_id, order_id, number, event, at) VALUES (1, {BATCH}, 2, 'claimed', now());"
        + _waits(BATCH),
    ),
    _c(
        "states-follow-events",
        (f"{BATCH}/2",),
        _claimed(BATCH, 2, "claimed", "claimed")
        + f"UPDATE line_events SET at = (at AT TIME ZONE 'UTC' - interval '1 day') AT TIME ZONE 'UTC' WHERE order_id = {BATCH};",
    ),
    _c(
        "lapses-fit",
        (f"{BATCH}/1", f"{BATCH}/2", f"{BATCH}/3"),
        f"INSERT INTO follow_ups (customer_id, order_id, environment, claim_by, sent_at) VALUES (1, {BATCH}, 'production', now(), now())",
    ),
    _c(
        "lapses-fit",
        (f"{BATCH}/1",),
        _claimed(BATCH, 1, "cancelled", "cancelled", "lapsed"),
        "refunds-fit-cancellations",
    ),
    _c(
        "reminders-fit",
        None,
        f"""INSERT INTO messages
            (customer_id, order_id, environment, kind, edition, email, line_numbers, due_at, rank_at, created_at)
            VALUES ({OWNER}, {DIGITAL}, 'production', 'reminder_1', 1, 'a@acme.example', '{{1}}', now(), now(), now())""",
    ),
    # Not marked, and waiting to be told anew alone.
    _c(
        "line-events-are-marked",
        (f"{COLLECTION}/1 claimed",),
        _claimed(COLLECTION, 1, "claimed", "claimed") + "UPDATE order_changes SET texts = true",
    ),
    _c("refunds-fit-cancellations", (str(BATCH),), _claimed(BATCH, 1, "cancelled", "cancelled")),
    _c(
        "refunds-fit-cancellations",
        (str(BATCH),),
        f"""INSERT INTO entries (customer_id, account_id, movement_id, kind, order_id, amount_minor, balance_minor, created_at)
            SELECT customer_id, id, 9999, 'refund', {BATCH}, sign * 1000, balance_minor + sign * 1000, now()
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
        + f"""INSERT INTO vouchers (product_id, value_minor, lookup, sealed, added_at, customer_id, order_id, number, handed_at)
              SELECT product_id, 500, 1, '', now(), customer_id, id, 1, now() FROM orders WHERE id = {DIGITAL}""",
    ),
    _c("waits-fit", (f"{DIGITAL}/1",), CHOSEN),
    # It would wait for ever.
    _c(
        "waits-fit",
        (f"{DIGITAL}/1",),
        CHOSEN
        + f"""INSERT INTO voucher_waits (product_id, value_minor, customer_id, order_id, number, since, is_test)
              SELECT product_id, value_minor, customer_id, id, 1, now(), true FROM orders WHERE id = {DIGITAL}""",
    ),
    _c(
        "waits-fit",
        (f"{DIGITAL}/2",),
        f"""INSERT INTO voucher_waits (product_id, value_minor, customer_id, order_id, number, since)
            SELECT product_id, value_minor, customer_id, id, 2, now() FROM orders WHERE id = {DIGITAL}""",
    ),
    _c("shipments-fit", (f"{PHYSICAL}/1",), PARCEL),
    _c(
        "shipments-fit",
        (f"{PHYSICAL}/1",),
        PARCEL
        + f"""INSERT INTO shipments (customer_id, order_id, number, environment, product_id, country, sealed_address, requested_at)
              SELECT customer_id, id, 1, environment, product_id, country, '', now() FROM orders WHERE id = {PHYSICAL}""",
    ),
)
