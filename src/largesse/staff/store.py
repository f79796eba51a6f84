"""The SQL of members of staff, their sessions and their links."""

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
