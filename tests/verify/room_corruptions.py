"""What is broken on purpose beside orders and claims, and which check must find it: budgets, approvals, corrections, suppliers, the back
office, read models and rights.
"""

from tests.distributed import IS_DISTRIBUTED
from tests.verify.corruption import BATCH, DIGITAL, FLOAT, SALES
from tests.verify.corruption import corruption as _c

_PERSON = "(SELECT min(id) FROM users WHERE customer_id = 1)"


def _budget(kind: str, subject: str, role: str) -> str:
    """A budget that ends tomorrow, and that no account knows of."""
    return f"""
        INSERT INTO budgets
            (customer_id, id, environment, currency, name, kind, subject_id, role, period, limit_minor, starts_at, ended_at)
        VALUES (1, 9, 'production', 'GBP', 'Gifts', '{kind}', {subject}, {role}, 'month', 100, now() - interval '1 day', now() + interval '1 day')
    """


def _counted(of_order: int, in_period: int) -> str:
    """An order counted towards a budget of members, with so much more than it costs: by the order, and in the period."""
    return f"""
        {_budget("role", "NULL", "'member'")};
        INSERT INTO budget_orders (customer_id, reference, budget_id, starts_on, spent_minor)
        SELECT 1, reference, 9, '2026-01-01', total_minor + {of_order} FROM orders WHERE id = {BATCH};
        INSERT INTO budget_periods (customer_id, budget_id, starts_on, spent_minor)
        SELECT 1, 9, '2026-01-01', total_minor + {in_period} FROM orders WHERE id = {BATCH}
    """


def _asked(state: str) -> str:
    """A send that a person asked approval for, of a rule that takes one approval."""
    return f"""
        INSERT INTO approval_rules
            (customer_id, id, environment, name, beyond_budget, account_ids, product_ids, collection_ids, approver_ids, needed, expires_days)
        VALUES (1, 9, 'production', 'All', false, '{{}}', '{{}}', '{{}}', '{{}}', 1, 5);
        INSERT INTO approval_requests
            (customer_id, environment, id, user_id, state, rule_ids, quote, digest, total_minor, currency, gift_name, code_count,
             draft_changed_at, asked_at, expires_at)
        VALUES (1, 'production', 'SEND', {_PERSON}, '{state}', '{{9}}', '', '', 100, 'GBP', 'Coffee', 1, now(), now(), now())
    """


_BUDGETS = (
    _c("budgets-count-orders", None, _counted(1, 1)),
    _c("budgets-add-up", ("9 from 2026-01-01",), _counted(0, 1)),
    _c(
        "budgets-miss-no-order",
        None,
        _budget("service_account", f"(SELECT service_account_id FROM orders WHERE id = {BATCH})", "NULL"),
    ),
    _c("accounts-know-budgets", None, f"UPDATE accounts SET has_budgets = true WHERE id = {SALES}"),
    _c(
        "approvals-are-of-others",
        None,
        f"""
        {_asked("waiting")};
        INSERT INTO approval_decisions (customer_id, environment, request_id, round, user_id, approves)
        VALUES (1, 'production', 'SEND', 1, {_PERSON}, true)
        """,
    ),
    _c("approved-sends-were-approved", ("SEND",), _asked("approved")),
    _c(
        "approvals-are-recorded",
        None,
        f"""
        {_asked("approved")};
        INSERT INTO users (customer_id, email, name, role) VALUES (1, 'forged@acme.example', 'Forged', 'admin');
        INSERT INTO approval_decisions (customer_id, environment, request_id, round, user_id, approves)
        SELECT 1, 'production', 'SEND', 1, id, true FROM users WHERE email = 'forged@acme.example'
        """,
    ),
    _c(
        "approvals-are-recorded",
        None,
        f"""
        INSERT INTO automations (customer_id, environment, name, user_id, occasion, template_id, zone, leap_day, weekend, asks_approval,
                                 approved_by, approved_at, planned_through, plan_at)
        SELECT 1, 'production', 'Birthdays', {_PERSON}, 'birthday', id, 'UTC', 'before', 'keep', true,
               {_PERSON}, now(), current_date, now()
        FROM templates WHERE customer_id = 1 LIMIT 1
        """,
    ),
)


def _approved(transfer: str, by: int = 2) -> str:
    """A correction that says it was approved."""
    return f"""
        INSERT INTO corrections (customer_id, id, environment, account_id, kind, amount_minor, reason, state, proposed_by, proposed_at,
                                 expires_at, decided_by, decided_at, transfer_id)
        SELECT customer_id, 77, environment, id, 'credit', 5, 'none', 'approved', 1, now(), now(), {by}, now(), {transfer}
        FROM accounts WHERE id = {FLOAT}
    """


_CORRECTIONS = (
    _c("corrections-are-whole", ("correction 77",), _approved("9999"), "corrections-are-by-two"),
    _c("corrections-are-by-two", ("77",), _approved("9999"), "corrections-are-whole"),
    # A credit that nobody proposed.
    _c(
        "corrections-are-whole",
        None,
        f"""UPDATE entries SET kind = 'correction'
            WHERE kind = 'top_up' AND movement_id = (
                SELECT min(movement_id) FROM entries WHERE kind = 'top_up' AND account_id = {FLOAT})""",
    ),
)


_ID = "00000000-0000-0000-0000-000000000001"


def _order(state: str, attempt: int = 1, value: str = "value_minor", id_: str = _ID, number: int = 1) -> str:
    """A supplier order of a line that was never claimed, or that stock has served."""
    return f"""
        INSERT INTO supplier_orders (customer_id, order_id, number, supplier, attempt, supplier_order_id, product_id, value_minor, state,
                                     created_at, ended_at, due_at)
        SELECT customer_id, id, {number}, 'cards', {attempt}, '{id_}', product_id, {value}, '{state}', now(), now(), 'infinity'
        FROM orders WHERE id = {DIGITAL}
    """


_SUPPLIERS = (
    _c("supplier-orders-fit", (_ID,), _order("refused")),
    _c("supplier-orders-fit", (_ID,), _order("refused", value="value_minor + 1")),
    _c("supplier-attempts-follow", (_ID,), _order("refused", attempt=2), "supplier-orders-fit"),
    _c("supplier-costs-add-up", None, _order("kept"), "supplier-orders-fit"),
    _c(
        "supplier-costs-add-up",
        None,
        """INSERT INTO supplier_costs (supplier, product_id, currency, day, bought, kept, value_minor, cost_minor)
           VALUES ('cards', 1, 'GBP', '2026-01-01', 1, 0, 1000, 900)""",
    ),
)


_REQUEST = """
    INSERT INTO privacy_requests (id, kind, received_on, due_on, done_at, outcome, erasure_id)
    VALUES (77, '{kind}', '2030-01-01', '2030-01-31', now(), '{outcome}', {erasure})
"""

_STAFF = (
    # Somebody whom nobody invited.
    _c(
        "staff-roles-are-recorded",
        None,
        "INSERT INTO staff (email, email_key, name, role) VALUES ('eve@x.example', 'eve@x.example', 'Eve', 'owner')",
    ),
    _c("privacy-requests-are-done", ("77",), _REQUEST.format(kind="export", outcome="done", erasure="NULL")),
    _c("privacy-requests-are-done", ("77",), _REQUEST.format(kind="erase", outcome="declined", erasure="NULL")),
    _c("privacy-requests-are-done", ("77",), _REQUEST.format(kind="erase", outcome="done", erasure="9999")),
)

ROOM_CORRUPTIONS = (*_BUDGETS, *_CORRECTIONS, *_SUPPLIERS, *_STAFF)

# What the orders of this database are told as: nothing yet, as no worker has heard of them.
TOLD = f"""
    UPDATE events SET fanned_out_at = now() WHERE order_id = {BATCH};
    INSERT INTO report_groups (customer_id, id, environment, currency, source, product_id, collection_id, account_id,
        service_account_id, user_id)
    SELECT customer_id, 1, environment, currency, source, product_id, 0, account_id, service_account_id, 0
    FROM orders WHERE id = {BATCH};
    INSERT INTO report_orders (customer_id, order_id, environment, group_id, state, created_at, codes, spent_minor, claimed,
        fulfilled, expired, cancelled, bounced, claim_days, claim_counts, cancel_days, cancel_counts, ages)
    SELECT customer_id, id, environment, 1, 'waiting', created_at, code_count, total_minor, 0, 0, 0, 0, 0,
           '{{}}', '{{}}', '{{}}', '{{}}', '{{0,0,0,0,0}}'
    FROM orders WHERE id = {BATCH};
    INSERT INTO report_sums
    SELECT customer_id, grain, date_trunc(grain, created_at AT TIME ZONE 'UTC')::date, 1, 'waiting', 1, code_count, total_minor,
           0, 0, 0, 0, 0, 0, 0, 0, 0
    FROM orders, unnest(ARRAY['day', 'month']) AS grain WHERE id = {BATCH};
"""
REPORT_CORRUPTIONS = (
    _c("orders-are-reported", (str(BATCH),), f"UPDATE events SET fanned_out_at = now() WHERE order_id = {BATCH}"),
    _c("orders-are-reported", (str(BATCH),), f"{TOLD} UPDATE report_groups SET source = 'other'"),
    _c("orders-are-reported", (str(BATCH),), f"{TOLD} UPDATE report_orders SET environment = 'staging'"),
    _c("orders-are-reported", (str(BATCH),), f"{TOLD} UPDATE report_orders SET expired = 1"),
    _c("orders-are-reported", (str(BATCH),), f"{TOLD} UPDATE report_orders SET erasable_since = now()"),
    _c(
        "orders-are-reported",
        (str(BATCH),),
        f"{TOLD} UPDATE report_orders SET state = 'cancelled'",
        "sums-follow-orders",
    ),
    _c("reports-have-orders", ("9999",), f"{TOLD} UPDATE report_orders SET order_id = 9999", "orders-are-reported"),
    _c(
        "orders-are-reported",
        (str(BATCH),),
        f"{TOLD} UPDATE report_orders SET refund_days = '{{2030-01-01}}', refund_amounts = '{{5}}'",
        "sums-follow-orders",
    ),
    _c(
        "report-days-fit",
        (str(BATCH),),
        f"{TOLD} UPDATE report_orders SET ages = '{{0,0,1,0,0}}'",
        "sums-follow-orders",
    ),
    _c("sums-follow-orders", None, f"{TOLD} UPDATE report_sums SET spent_minor = spent_minor + 1"),
    _c("sums-follow-orders", None, f"{TOLD} DELETE FROM report_sums WHERE grain = 'month'"),
    _c(
        "recipients-are-found",
        (str(DIGITAL),),
        f"UPDATE events SET fanned_out_at = now() WHERE order_id = {DIGITAL}",
        "orders-are-reported",
    ),
    _c(
        "words-have-orders",
        (str(DIGITAL),),
        f"""INSERT INTO report_words (customer_id, environment, word, created_at, order_id)
            SELECT customer_id, 'staging', 'ada', created_at, id FROM orders WHERE id = {DIGITAL}""",
    ),
)

# Who owns the tables must be let through where rows move from node to node.
FORCED, OTHERWISE = ("NO FORCE", "FORCE") if IS_DISTRIBUTED else ("FORCE", "NO FORCE")
RIGHTS_CORRUPTIONS = (
    _c("roles-are-bounded", ("largesse_app",), "ALTER ROLE largesse_app CREATEDB"),
    _c("roles-are-bounded", ("largesse_owner",), "ALTER ROLE largesse_owner SUPERUSER"),
    _c("roles-are-bounded", ("largesse_office",), "GRANT CREATE ON SCHEMA public TO largesse_office"),
    _c("roles-are-bounded", ("largesse_worker",), "GRANT pg_execute_server_program TO largesse_worker"),
    _c(
        "roles-are-bounded",
        ("largesse_read",),
        "CREATE SCHEMA mine; CREATE TABLE mine.x (); ALTER TABLE mine.x OWNER TO largesse_read",
    ),
    _c("tables-have-one-owner", ("products",), "ALTER TABLE products OWNER TO pg_monitor"),
    _c("triggers-are-on", ("entries/entries_append_only",), "ALTER TABLE entries DISABLE TRIGGER entries_append_only"),
    _c(
        "triggers-are-on",
        ("session_replication_role of largesse_app",),
        "ALTER ROLE largesse_app SET session_replication_role = replica",
    ),
    _c(
        "schema-is-as-released",
        ("changed function refuse_change()", "missing trigger line_states.line_states_forwards"),
        "DROP TRIGGER line_states_forwards ON line_states; "
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
    ),
    _c(
        "roles-have-their-rights",
        ("GRANT DELETE ON TABLE entries TO largesse_app", "GRANT UPDATE (sealed) ON TABLE lines TO largesse_worker"),
        "GRANT DELETE ON entries TO largesse_app; GRANT UPDATE (sealed) ON lines TO largesse_worker",
    ),
    _c("roles-have-their-rights", ("GRANT SELECT ON TABLE users TO PUBLIC",), "GRANT SELECT ON users TO PUBLIC"),
    _c(
        "roles-have-their-rights",
        ("not GRANT INSERT ON TABLE orders TO largesse_app",),
        "REVOKE INSERT ON orders FROM largesse_app",
    ),
    _c(
        "customers-are-held-apart",
        (
            f"ALTER TABLE entries {FORCED} ROW LEVEL SECURITY",
            "ALTER TABLE lines ENABLE ROW LEVEL SECURITY",
            "DROP POLICY all_of_it ON orders",
        ),
        "CREATE POLICY all_of_it ON orders TO largesse_app USING (true); ALTER TABLE lines DISABLE ROW LEVEL SECURITY; "
        f"ALTER TABLE entries {OTHERWISE} ROW LEVEL SECURITY",
    ),
)
