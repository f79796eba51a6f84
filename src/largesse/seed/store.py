"""The SQL that reads what a seed file describes, in the order in which a load would make it again."""

from __future__ import annotations

CUSTOMERS = "SELECT id, key, name, plan, funding, managed FROM customers ORDER BY id"
USERS = "SELECT customer_id, email, name, role, is_active FROM users ORDER BY customer_id, id"
SERVICE_ACCOUNTS = "SELECT customer_id, id, key, name, active FROM service_accounts ORDER BY customer_id, id"
API_KEYS = """
    SELECT customer_id, key, service_account_id, environment FROM api_keys WHERE deleted_at IS NULL ORDER BY customer_id, id
"""
# Open ones, with what is in them now.
ACCOUNTS = """
    SELECT a.customer_id, a.id, a.key, a.name, a.is_master, a.open_to_all, a.currency, a.environment, a.balance_minor,
           ARRAY(SELECT s.service_account_id FROM account_service_accounts s
                 WHERE s.customer_id = a.customer_id AND s.account_id = a.id ORDER BY s.service_account_id) AS service_account_ids
    FROM accounts a WHERE a.kind = 'funding' AND a.closed_at IS NULL ORDER BY a.customer_id, a.id
"""
TEMPLATES = """
    SELECT customer_id, key, name, product_id, collection_id, value_minor, currency, country, wrapping_key, from_name, message,
           expiry_after_days
    FROM templates WHERE removed_at IS NULL ORDER BY customer_id, id
"""
PRODUCTS = """
    SELECT id, key, name, is_digital, currency, countries, denominations_minor, min_amount_minor, max_amount_minor, cost_minor,
           markup_percent, postage_minor, vat_percent, customer_ids, active, picture, description, how_to_redeem, terms, suppliers, managed
    FROM products ORDER BY id
"""
COLLECTIONS = """
    SELECT id, key, customer_id, name, country, currency, value_minor, value_points_minor, allow_custom_value, product_ids, active, managed
    FROM collections ORDER BY id
"""
