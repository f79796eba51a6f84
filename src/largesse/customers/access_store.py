"""The SQL of access: locks and look-ups of people and keys."""

from largesse.db.fragments import compose

_MEMBERS = 0x6D656D62  # "memb", the class of the advisory locks of members; their object is the member's id

# The rows that a transaction reads, or locks until it ends.
ACCOUNTS_OF_USERS = (
    "SELECT user_id, account_id FROM account_users WHERE customer_id = ANY($1::int[]) AND user_id = ANY($2::int[])"
)
HOLD_SESSIONS = """
    SELECT found.* FROM unnest($1::bigint[]) AS wanted (id) CROSS JOIN LATERAL (
        SELECT id, user_id, environment FROM sessions
        WHERE id = wanted.id AND ended_at IS NULL AND NOT awaits_second_step AND ends_at > clock_now() FOR SHARE) AS found
"""
HOLD_USERS = """
    SELECT found.* FROM unnest($1::int[]) AS wanted (id) CROSS JOIN LATERAL (
        SELECT id, customer_id, role FROM users WHERE id = wanted.id AND is_active FOR SHARE) AS found
"""
# On a cluster, FOR SHARE locks all rows of `users`, and two such statements can deadlock. There, advisory locks lock members, who are read
# after that. A transaction that changes or removes a member waits for both kinds of locks.
SHARE_USERS = compose(
    "SELECT pg_advisory_xact_lock_shared({members}, id) FROM unnest($1::int[]) AS held (id)", members=_MEMBERS
)
USERS = "SELECT id, customer_id, role FROM users WHERE id = ANY($1::int[]) AND is_active"
LOCK_USER = compose("SELECT pg_advisory_xact_lock({members}, $1)", members=_MEMBERS)
LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"
LOCK_PERSON = "SELECT FROM people WHERE id = $1 FOR NO KEY UPDATE"

# Look-ups of callers: API keys and people.
FIND_KEYS = """
    SELECT k.hash, k.key_id, k.environment, k.customer_id, k.customer_name, k.plan, k.funding,
           k.service_account_id, k.service_account_name, k.active, NULL::int, NULL::text,
           k.scopes, k.networks, k.limits, v.version, (SELECT clock_now()), k.collections_version, k.follow_up
    FROM callers($1, $2) k CROSS JOIN catalogue_version v
"""
NOTE_KEYS_SEEN = "SELECT note_keys_seen($1, $2)"
FIND_USER = """
    SELECT c.id, c.name, c.plan, c.funding, u.id, u.role, v.version, clock_now(), coalesce(o.version, 0), c.follow_up
    FROM users u JOIN customers c ON c.id = u.customer_id CROSS JOIN catalogue_version v
    LEFT JOIN collection_versions o ON o.customer_id = c.id
    WHERE u.id = $1 AND u.customer_id = $2 AND u.is_active
"""
FIND_VIEWER = """
    SELECT v.version, clock_now(), coalesce(o.version, 0), c.follow_up
    FROM customers c CROSS JOIN catalogue_version v LEFT JOIN collection_versions o ON o.customer_id = c.id
    WHERE c.id = $1
"""
