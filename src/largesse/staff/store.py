"""The SQL of members of staff: their sessions, links and second steps, and the figures of the first page, which come from tables of other packages."""

from __future__ import annotations

# Locks session $1 and its member until the end of the transaction.
HOLD = """
    SELECT m.id, m.role FROM staff_sessions s JOIN staff m ON m.id = s.staff_id
    WHERE s.id = $1 AND s.ended_at IS NULL AND NOT s.awaits_second_step AND s.ends_at > clock_now() AND m.is_active
    FOR SHARE
"""
# Operations that change owners or end sessions run one at a time.
LOCK_ALL = "SELECT pg_advisory_xact_lock(hashtext('largesse.staff'))"
IS_OPEN = "SELECT EXISTS (SELECT FROM staff)"
FIND_SESSION = """
    SELECT s.id, s.notice, s.seen_at < clock_now() - interval '1 minute' AS is_unseen, s.awaits_second_step,
           s.proved_at > clock_now() - $3::interval AS is_proved, m.id AS staff_id, m.email, m.name, m.role, m.language, m.zone,
           m.has_password, m.has_app, EXISTS (SELECT FROM staff_passkeys k WHERE k.staff_id = m.id) AS has_passkey
    FROM staff_sessions s JOIN staff m ON m.id = s.staff_id
    WHERE s.hash = $1 AND s.ended_at IS NULL AND s.ends_at > clock_now() AND s.seen_at > clock_now() - $2::interval
      AND m.is_active
"""
BEGIN_SESSION = """
    INSERT INTO staff_sessions (hash, staff_id, address, browser, device, awaits_second_step, ends_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_now() + $7)
"""
NOTE_SIGNED_IN = "UPDATE staff SET last_signed_in_at = clock_now() WHERE id = $1"
FORGET_BROWSERS = "UPDATE staff_sessions SET device = NULL WHERE staff_id = $1 AND device IS NOT NULL"
FIND_BY_EMAIL = """
    SELECT id, email, name, role, has_password, staff_password_of($2, id) AS password
    FROM staff WHERE email_key = $1 AND is_active
"""
NEW_LINK = "INSERT INTO staff_links (hash, kind, staff_id, ends_at) VALUES ($1, $2, $3, clock_now() + $4)"
END_LINKS = "UPDATE staff_links SET used_at = clock_now() WHERE staff_id = $1 AND used_at IS NULL"
FIND_LINK = """
    SELECT l.hash, l.kind, m.id AS staff_id, m.email, m.name, m.role, m.has_password
    FROM staff_links l JOIN staff m ON m.id = l.staff_id
    WHERE l.hash = $1 AND l.used_at IS NULL AND l.ends_at > clock_now() AND m.is_active
"""
USE_LINK = """
    UPDATE staff_links SET used_at = clock_now() WHERE hash = $1 AND used_at IS NULL AND ends_at > clock_now()
    RETURNING true
"""
INVITE = """
    INSERT INTO staff (email, email_key, name, role) VALUES ($1, $2, $3, $4)
    ON CONFLICT (email_key) DO UPDATE SET name = excluded.name, role = excluded.role, is_active = true
    RETURNING id
"""
PLACE = """
    SELECT (SELECT count(*) FROM staff WHERE is_active) AS people, m.name, m.role, m.is_active, m.has_password
    FROM (VALUES (1)) AS one LEFT JOIN staff m ON m.email_key = $1
"""
SET_ROLE = "UPDATE staff SET role = $2 WHERE id = $1"
DEACTIVATE = "UPDATE staff SET is_active = false, password = NULL WHERE id = $1"
COUNT_OTHER_OWNERS = "SELECT count(*) FROM staff WHERE is_active AND role = 'owner' AND id <> $1"
# Active members first, then by name.
LIST = """
    SELECT m.id, m.email, m.name, m.role, m.is_active, m.has_password AS has_signed_in,
           m.has_app OR EXISTS (SELECT FROM staff_passkeys k WHERE k.staff_id = m.id) AS has_second_step,
           (SELECT max(l.ends_at) FROM staff_links l WHERE l.staff_id = m.id AND l.kind = 'invitation'
            AND l.used_at IS NULL AND l.ends_at > clock_now()) AS invited_until,
           m.last_signed_in_at
    FROM staff m ORDER BY m.is_active DESC, m.name, m.id
"""


TOTP_CONTEXT = b"staff-totp/%d"

# Passwords.
HOLDS_HASH = "SELECT staff_password_of($1, $2) = $3"
SET_HASH = "UPDATE staff SET password = $2 WHERE id = $1"
SET_FIRST_HASH = "UPDATE staff SET password = $2 WHERE id = $1 AND NOT has_password"
SET_PREFERENCES = "UPDATE staff SET language = $2, zone = $3 WHERE id = $1"
LOCK = "SELECT FROM staff WHERE id = $1 FOR NO KEY UPDATE"

# Sessions.
FIND_SESSION_ID = "SELECT id FROM staff_sessions WHERE hash = $1"
KNOWS_DEVICE = "SELECT EXISTS (SELECT FROM staff_sessions WHERE staff_id = $1 AND device = $2)"
NOTE_SEEN = "UPDATE staff_sessions SET seen_at = clock_now() WHERE id = $1"
END_SECOND_STEP = """
    UPDATE staff_sessions SET hash = $2, awaits_second_step = false, proved_at = clock_now()
    WHERE id = $1 AND ended_at IS NULL
"""
NOTE_PROOF = "UPDATE staff_sessions SET proved_at = clock_now() WHERE id = $1"
END_SESSION = "UPDATE staff_sessions SET ended_at = clock_now() WHERE id = $1 AND ended_at IS NULL"
END_SESSION_OF = "UPDATE staff_sessions SET ended_at = clock_now() WHERE id = $2 AND staff_id = $1 AND ended_at IS NULL"
END_SESSIONS = "UPDATE staff_sessions SET ended_at = clock_now() WHERE staff_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2"
SET_NOTICE = "UPDATE staff_sessions SET notice = $2 WHERE id = $1"
LIST_SESSIONS = """
    SELECT id, host(address) AS address, browser, created_at, seen_at FROM staff_sessions
    WHERE staff_id = $1 AND ended_at IS NULL AND ends_at > clock_now() AND seen_at > clock_now() - $2::interval
    ORDER BY seen_at DESC, id DESC
"""

# The second step: an authenticator app and recovery codes.
TURN_ON_APP = "UPDATE staff SET totp = $2, totp_step = $3 WHERE id = $1"
FORGET_APP = "UPDATE staff SET totp = NULL WHERE id = $1"
FORGET_PASSKEYS = "DELETE FROM staff_passkeys WHERE staff_id = $1"
HAS_RECOVERY_CODES = "SELECT EXISTS (SELECT FROM staff_recovery_codes WHERE staff_id = $1)"
END_RECOVERY = "DELETE FROM staff_recovery_codes WHERE staff_id = $1"
ADD_RECOVERY_CODES = (
    "INSERT INTO staff_recovery_codes (staff_id, hash) SELECT $1, hash FROM unnest($2::bytea[]) AS new (hash)"
)
COUNT_RECOVERY_CODES = "SELECT count(*) FROM staff_recovery_codes WHERE staff_id = $1 AND used_at IS NULL"
ASKS_SECOND_STEP = (
    "SELECT p.has_app OR EXISTS (SELECT FROM staff_passkeys k WHERE k.staff_id = p.id) FROM staff p WHERE p.id = $1"
)
LOCK_APP = "SELECT totp_step FROM staff WHERE id = $1 AND has_app FOR NO KEY UPDATE"
TOTP_KEY = "SELECT staff_totp_of($1, $2)"
SET_TOTP_STEP = "UPDATE staff SET totp_step = $2 WHERE id = $1"
TAKE_RECOVERY_CODE = """
    UPDATE staff_recovery_codes SET used_at = clock_now() WHERE staff_id = $1 AND hash = $2 AND used_at IS NULL
    RETURNING true
"""

# Passkeys, and the challenges of signing in with one.
LIST_PASSKEYS = "SELECT id, name, created_at, used_at FROM staff_passkeys WHERE staff_id = $1 ORDER BY id"
ADD_PASSKEY = """
    INSERT INTO staff_passkeys (staff_id, credential_id, credential, name, sign_count) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (credential_id) DO NOTHING RETURNING id
"""
REMOVE_PASSKEY = "DELETE FROM staff_passkeys WHERE id = $1 AND staff_id = $2 RETURNING name"
LOCK_PASSKEYS = "SELECT credential FROM staff_passkeys WHERE staff_id = $1 ORDER BY id FOR NO KEY UPDATE"
COUNT_PASSKEY = """
    UPDATE staff_passkeys SET sign_count = $2, used_at = clock_now()
    WHERE credential_id = $1 AND ($2 > sign_count OR ($2 = 0 AND sign_count = 0)) RETURNING true
"""
CREDENTIAL_IDS = "SELECT credential_id FROM staff_passkeys WHERE staff_id = $1 ORDER BY id"
CHALLENGE = """
    UPDATE staff_sessions SET
        challenge = CASE WHEN challenged_at > clock_now() - $3::interval THEN challenge ELSE $2 END,
        challenged_at = CASE WHEN challenged_at > clock_now() - $3::interval THEN challenged_at ELSE clock_now() END
    WHERE id = $1 RETURNING challenge
"""
TAKE_CHALLENGE = """
    WITH asked AS (
        SELECT id, challenge, challenged_at > clock_now() - $2::interval AS holds FROM staff_sessions
        WHERE id = $1 AND challenge IS NOT NULL FOR NO KEY UPDATE
    )
    UPDATE staff_sessions s SET challenge = NULL, challenged_at = NULL FROM asked WHERE s.id = asked.id
    RETURNING asked.challenge, asked.holds
"""

# Forms, each of which is carried out once.
TAKE_POST = "INSERT INTO staff_form_posts (session_id, token) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true"
ANSWER_OF_POST = "SELECT answer FROM staff_form_posts WHERE session_id = $1 AND token = $2"
ANSWER_POST = "UPDATE staff_form_posts SET answer = $3 WHERE session_id = $1 AND token = $2"
TAKE_BACK_POST = "DELETE FROM staff_form_posts WHERE session_id = $1 AND token = $2"


# Each number is exact below the limit $1, and is counted from an index of waiting rows.
WAITING = """
    SELECT (SELECT count(*) FROM (SELECT FROM top_ups WHERE state = 'waiting' AND environment = 'production' LIMIT $1) AS w) AS top_ups,
           (SELECT count(*) FROM (SELECT FROM voucher_waits LIMIT $1) AS w) AS vouchers,
           (SELECT count(*) FROM (SELECT FROM messages WHERE state = 'held' LIMIT $1) AS w) AS held,
           (SELECT count(*) FROM (SELECT FROM subscription_queues WHERE failing LIMIT $1) AS w) AS failing
"""
# Sessions of this database, by application name.
SESSIONS = """
    SELECT application_name AS name, count(*) AS sessions FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'largesse%' GROUP BY 1 ORDER BY 1
"""
SERVER = """
    SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size_bytes,
           (SELECT max(version_num) FROM alembic_version) AS revision
"""
# Days in UTC, by currency, of production only.
DAYS = """
    SELECT s.day, g.currency, sum(s.orders)::bigint AS orders, sum(s.claimed)::bigint AS claimed, sum(s.spent_minor)::bigint AS spent_minor
    FROM report_sums s JOIN report_groups g ON g.customer_id = s.customer_id AND g.id = s.group_id
    WHERE s.grain = 'day' AND s.day = ANY($1::date[]) AND g.environment = 'production'
    GROUP BY 1, 2 ORDER BY 2, 1
"""
TODAY = "SELECT (clock_now() AT TIME ZONE 'UTC')::date"
