"""The SQL that people and keys are let in by: what a transaction holds, look-ups, and second steps."""

from __future__ import annotations

# What a transaction holds until it ends.
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
LOCK_CUSTOMER = "SELECT FROM customers WHERE id = $1 FOR NO KEY UPDATE"
LOCK_PERSON = "SELECT FROM people WHERE id = $1 FOR NO KEY UPDATE"

# Keys and people who call.
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

# The second step: an authenticator app and recovery codes.
TURN_ON_APP = "UPDATE people SET totp = $2, totp_step = $3 WHERE id = $1"
FORGET_APP = "UPDATE people SET totp = NULL WHERE id = $1"
FORGET_PASSKEYS = "DELETE FROM passkeys WHERE person_id = $1"
HAS_RECOVERY_CODES = "SELECT EXISTS (SELECT FROM recovery_codes WHERE person_id = $1)"
END_RECOVERY = "DELETE FROM recovery_codes WHERE person_id = $1"
ADD_RECOVERY_CODES = (
    "INSERT INTO recovery_codes (person_id, hash) SELECT $1, hash FROM unnest($2::bytea[]) AS new (hash)"
)
COUNT_RECOVERY_CODES = "SELECT count(*) FROM recovery_codes WHERE person_id = $1 AND used_at IS NULL"
ASKS_SECOND_STEP = (
    "SELECT p.has_app OR EXISTS (SELECT FROM passkeys k WHERE k.person_id = p.id) FROM people p WHERE p.id = $1"
)
LOCK_APP = "SELECT totp_step FROM people WHERE id = $1 AND has_app FOR NO KEY UPDATE"
TOTP_KEY = "SELECT totp_of($1, $2)"
SET_TOTP_STEP = "UPDATE people SET totp_step = $2 WHERE id = $1"
TAKE_RECOVERY_CODE = """
    UPDATE recovery_codes SET used_at = clock_now() WHERE person_id = $1 AND hash = $2 AND used_at IS NULL
    RETURNING true
"""
NOW_S = "SELECT extract(epoch FROM clock_now())::float8"

# Passkeys, and the challenges of signing in with one.
LIST_PASSKEYS = "SELECT id, name, created_at, used_at FROM passkeys WHERE person_id = $1 ORDER BY id"
ADD_PASSKEY = """
    INSERT INTO passkeys (person_id, credential_id, credential, name, sign_count) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (credential_id) DO NOTHING RETURNING id
"""
REMOVE_PASSKEY = "DELETE FROM passkeys WHERE id = $1 AND person_id = $2 RETURNING name"
LOCK_PASSKEYS = "SELECT credential FROM passkeys WHERE person_id = $1 ORDER BY id FOR NO KEY UPDATE"
COUNT_PASSKEY = """
    UPDATE passkeys SET sign_count = $2, used_at = clock_now()
    WHERE credential_id = $1 AND ($2 > sign_count OR ($2 = 0 AND sign_count = 0)) RETURNING true
"""
CREDENTIAL_IDS = "SELECT credential_id FROM passkeys WHERE person_id = $1 ORDER BY id"
CHALLENGE = """
    UPDATE sessions SET
        challenge = CASE WHEN challenged_at > clock_now() - $3::interval THEN challenge ELSE $2 END,
        challenged_at = CASE WHEN challenged_at > clock_now() - $3::interval THEN challenged_at ELSE clock_now() END
    WHERE id = $1 RETURNING challenge
"""
TAKE_CHALLENGE = """
    WITH asked AS (
        SELECT id, challenge, challenged_at > clock_now() - $2::interval AS holds FROM sessions
        WHERE id = $1 AND challenge IS NOT NULL FOR NO KEY UPDATE
    )
    UPDATE sessions s SET challenge = NULL, challenged_at = NULL FROM asked WHERE s.id = asked.id
    RETURNING asked.challenge, asked.holds
"""
