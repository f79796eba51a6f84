"""The SQL of signing in members of staff: the statements of `customers.sign_in_store` for the tables of staff."""

from __future__ import annotations

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
