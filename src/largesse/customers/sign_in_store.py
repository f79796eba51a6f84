"""The SQL of how people sign in: passwords, sessions, second steps, passkeys and forms. `staff.store` has the same for staff."""

from __future__ import annotations

from typing import Protocol


class SignInSql(Protocol):
    """The statements of those who sign in, of customers or of staff: a module that has them all."""

    TOTP_CONTEXT: bytes
    HOLDS_HASH: str
    SET_HASH: str
    SET_FIRST_HASH: str
    SET_PREFERENCES: str
    LOCK: str
    FIND_SESSION_ID: str
    KNOWS_DEVICE: str
    NOTE_SEEN: str
    END_SECOND_STEP: str
    NOTE_PROOF: str
    END_SESSION: str
    END_SESSION_OF: str
    END_SESSIONS: str
    SET_NOTICE: str
    LIST_SESSIONS: str
    TURN_ON_APP: str
    FORGET_APP: str
    FORGET_PASSKEYS: str
    HAS_RECOVERY_CODES: str
    END_RECOVERY: str
    ADD_RECOVERY_CODES: str
    COUNT_RECOVERY_CODES: str
    ASKS_SECOND_STEP: str
    LOCK_APP: str
    TOTP_KEY: str
    SET_TOTP_STEP: str
    TAKE_RECOVERY_CODE: str
    LIST_PASSKEYS: str
    ADD_PASSKEY: str
    REMOVE_PASSKEY: str
    LOCK_PASSKEYS: str
    COUNT_PASSKEY: str
    CREDENTIAL_IDS: str
    CHALLENGE: str
    TAKE_CHALLENGE: str
    TAKE_POST: str
    ANSWER_OF_POST: str
    ANSWER_POST: str
    TAKE_BACK_POST: str


TOTP_CONTEXT = b"totp/%d"  # what the sealed secret of an app is bound to

# Passwords.
HOLDS_HASH = "SELECT password_of($1, $2) = $3"
SET_HASH = "UPDATE people SET password = $2 WHERE id = $1"
SET_FIRST_HASH = "UPDATE people SET password = $2 WHERE id = $1 AND NOT has_password"
SET_PREFERENCES = "UPDATE people SET language = $2, zone = $3 WHERE id = $1"
LOCK = "SELECT FROM people WHERE id = $1 FOR NO KEY UPDATE"

# Sessions.
FIND_SESSION_ID = "SELECT id FROM sessions WHERE hash = $1"
KNOWS_DEVICE = "SELECT EXISTS (SELECT FROM sessions WHERE person_id = $1 AND device = $2)"
NOTE_SEEN = "UPDATE sessions SET seen_at = clock_now() WHERE id = $1"
END_SECOND_STEP = """
    UPDATE sessions SET hash = $2, awaits_second_step = false, proved_at = clock_now()
    WHERE id = $1 AND ended_at IS NULL
"""
NOTE_PROOF = "UPDATE sessions SET proved_at = clock_now() WHERE id = $1"
END_SESSION = "UPDATE sessions SET ended_at = clock_now() WHERE id = $1 AND ended_at IS NULL"
END_SESSION_OF = "UPDATE sessions SET ended_at = clock_now() WHERE id = $2 AND person_id = $1 AND ended_at IS NULL"
END_SESSIONS = (
    "UPDATE sessions SET ended_at = clock_now() WHERE person_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2"
)
SET_NOTICE = "UPDATE sessions SET notice = $2 WHERE id = $1"
LIST_SESSIONS = """
    SELECT id, host(address) AS address, browser, created_at, seen_at FROM sessions
    WHERE person_id = $1 AND ended_at IS NULL AND ends_at > clock_now() AND seen_at > clock_now() - $2::interval
    ORDER BY seen_at DESC, id DESC
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

# Forms that are taken once.
TAKE_POST = "INSERT INTO form_posts (session_id, token) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true"
ANSWER_OF_POST = "SELECT answer FROM form_posts WHERE session_id = $1 AND token = $2"
ANSWER_POST = "UPDATE form_posts SET answer = $3 WHERE session_id = $1 AND token = $2"
TAKE_BACK_POST = "DELETE FROM form_posts WHERE session_id = $1 AND token = $2"
