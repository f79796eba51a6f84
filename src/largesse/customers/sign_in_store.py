"""The SQL of signing in: people, passwords, sessions, second steps, passkeys and forms. Staff have the same tables by other names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from largesse.base.confidential import Confidential
from largesse.base.email import email_key
from largesse.customers.passwords import hash_of_nobody
from largesse.db.fragments import identifier
from largesse.db.pool import Connection, credentials_key, open_credentials


class SignInSql(NamedTuple):
    """The statements of signing in, by default for people of customers."""

    totp_context: str = "totp/%d"  # the encryption context of the secret of an authenticator app

    # Passwords.
    holds_hash: str = "SELECT password_of($1, $2) = $3"
    set_hash: str = "UPDATE people SET password = $2 WHERE id = $1"
    set_first_hash: str = "UPDATE people SET password = $2 WHERE id = $1 AND NOT has_password"
    set_preferences: str = "UPDATE people SET language = $2, zone = $3 WHERE id = $1"
    lock: str = "SELECT FROM people WHERE id = $1 FOR NO KEY UPDATE"

    # Sessions.
    find_session_id: str = "SELECT id FROM sessions WHERE hash = $1"
    # Excludes sessions with the right password but without a second step: they may be an attacker's.
    knows_device: str = (
        "SELECT EXISTS (SELECT FROM sessions WHERE person_id = $1 AND device = $2 AND NOT awaits_second_step)"
    )
    note_seen: str = "UPDATE sessions SET seen_at = clock_now() WHERE id = $1"
    end_second_step: str = """
        UPDATE sessions SET hash = $2, awaits_second_step = false, proved_at = clock_now()
        WHERE id = $1 AND ended_at IS NULL
    """
    note_proof: str = "UPDATE sessions SET proved_at = clock_now() WHERE id = $1"
    end_session: str = "UPDATE sessions SET ended_at = clock_now() WHERE id = $1 AND ended_at IS NULL"
    end_session_of: str = (
        "UPDATE sessions SET ended_at = clock_now() WHERE id = $2 AND person_id = $1 AND ended_at IS NULL"
    )
    end_sessions: str = "UPDATE sessions SET ended_at = clock_now() WHERE person_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2"
    forget_browsers: str = "UPDATE sessions SET device = NULL WHERE person_id = $1 AND device IS NOT NULL"
    set_notice: str = "UPDATE sessions SET notice = $2 WHERE id = $1"
    list_sessions: str = """
        SELECT id, host(address) AS address, browser, created_at, seen_at FROM sessions
        WHERE person_id = $1 AND ended_at IS NULL AND ends_at > clock_now() AND seen_at > clock_now() - $2::interval
        ORDER BY seen_at DESC, id DESC
    """

    # The second step: an authenticator app and recovery codes.
    turn_on_app: str = "UPDATE people SET totp = $2, totp_step = $3 WHERE id = $1"
    forget_app: str = "UPDATE people SET totp = NULL WHERE id = $1"
    forget_passkeys: str = "DELETE FROM passkeys WHERE person_id = $1"
    has_recovery_codes: str = "SELECT EXISTS (SELECT FROM recovery_codes WHERE person_id = $1)"
    end_recovery: str = "DELETE FROM recovery_codes WHERE person_id = $1"
    add_recovery_codes: str = (
        "INSERT INTO recovery_codes (person_id, hash) SELECT $1, hash FROM unnest($2::bytea[]) AS new (hash)"
    )
    count_recovery_codes: str = "SELECT count(*) FROM recovery_codes WHERE person_id = $1 AND used_at IS NULL"
    asks_second_step: str = (
        "SELECT p.has_app OR EXISTS (SELECT FROM passkeys k WHERE k.person_id = p.id) FROM people p WHERE p.id = $1"
    )
    lock_app: str = "SELECT totp_step FROM people WHERE id = $1 AND has_app FOR NO KEY UPDATE"
    totp_key: str = "SELECT totp_of($1, $2)"
    set_totp_step: str = "UPDATE people SET totp_step = $2 WHERE id = $1"
    take_recovery_code: str = """
        UPDATE recovery_codes SET used_at = clock_now() WHERE person_id = $1 AND hash = $2 AND used_at IS NULL
        RETURNING true
    """

    # Passkeys, and the challenges of signing in with one.
    list_passkeys: str = "SELECT id, name, created_at, used_at FROM passkeys WHERE person_id = $1 ORDER BY id"
    add_passkey: str = """
        INSERT INTO passkeys (person_id, credential_id, credential, name, sign_count) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (credential_id) DO NOTHING RETURNING id
    """
    remove_passkey: str = "DELETE FROM passkeys WHERE id = $1 AND person_id = $2 RETURNING name"
    lock_passkeys: str = "SELECT credential FROM passkeys WHERE person_id = $1 ORDER BY id FOR NO KEY UPDATE"
    count_passkey: str = """
        UPDATE passkeys SET sign_count = $2, used_at = clock_now()
        WHERE credential_id = $1 AND ($2 > sign_count OR ($2 = 0 AND sign_count = 0)) RETURNING true
    """
    credential_ids: str = "SELECT credential_id FROM passkeys WHERE person_id = $1 ORDER BY id"
    challenge: str = """
        UPDATE sessions SET
            challenge = CASE WHEN challenged_at > clock_now() - $3::interval THEN challenge ELSE $2 END,
            challenged_at = CASE WHEN challenged_at > clock_now() - $3::interval THEN challenged_at ELSE clock_now() END
        WHERE id = $1 RETURNING challenge
    """
    take_challenge: str = """
        WITH asked AS (
            SELECT id, challenge, challenged_at > clock_now() - $2::interval AS holds FROM sessions
            WHERE id = $1 AND challenge IS NOT NULL FOR NO KEY UPDATE
        )
        UPDATE sessions s SET challenge = NULL, challenged_at = NULL FROM asked WHERE s.id = asked.id
        RETURNING asked.challenge, asked.holds
    """

    # Forms, each of which is carried out once.
    take_post: str = "INSERT INTO form_posts (session_id, token) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true"
    answer_of_post: str = "SELECT answer FROM form_posts WHERE session_id = $1 AND token = $2"
    answer_post: str = "UPDATE form_posts SET answer = $3 WHERE session_id = $1 AND token = $2"
    take_back_post: str = "DELETE FROM form_posts WHERE session_id = $1 AND token = $2"

    def renamed(self, names: Mapping[str, str], totp_context: str) -> SignInSql:
        """Returns the same statements with other names of tables, columns and functions."""
        name = re.compile(rf"\b({'|'.join(names)})\b")
        texts = (name.sub(lambda found: identifier(names[found[1]]), text) for text in self)
        return SignInSql(*texts)._replace(totp_context=totp_context)


PEOPLE = SignInSql()


_FIND = """
    SELECT p.id, p.email, password_of($2, p.id) AS password, p.has_password,
           EXISTS (SELECT FROM memberships(p.id)) AS is_member,
           p.confirmed_at IS NOT NULL AS is_confirmed
    FROM people p WHERE p.email_key = $1
"""
_LOCK_OUT = "UPDATE people SET password = $2 WHERE id = $1 AND has_password"
_FIND_ID = "SELECT id FROM people WHERE email_key = $1"
_ADD = """
    INSERT INTO people (email, email_key) VALUES ($1, $2)
    ON CONFLICT (email_key) DO UPDATE SET email_key = excluded.email_key RETURNING id
"""


class PersonRecord(Confidential, frozen=True):
    """A person who may sign in."""

    id: int
    email: str
    password: str | None  # the stored hash; also None if the process has no master key
    has_password: bool
    is_member: bool  # whether they belong to any customer
    is_confirmed: bool  # whether they have followed a link from the mail of the address


async def find_person(connection: Connection, email: str) -> PersonRecord | None:
    """Returns the person who signs in with that address, letter case ignored; None if nobody does."""
    row = await connection.fetchrow(_FIND, email_key(email), credentials_key(connection))
    return None if row is None else PersonRecord(**row)


async def find_person_id(connection: Connection, email: str) -> int | None:
    """Returns the id of the person who signs in with that address, letter case ignored; None if nobody does."""
    person_id: int | None = await connection.fetchval(_FIND_ID, email_key(email))
    return person_id


async def add_person(connection: Connection, email: str) -> int:
    """Returns the id of the person who signs in with that address, and adds them if there is none."""
    await open_credentials(connection)
    return int(await connection.fetchval(_ADD, email, email_key(email)))


async def set_password(connection: Connection, person_id: int, password: str, sql: SignInSql = PEOPLE) -> None:
    """Stores the hash of a password."""
    await open_credentials(connection)
    await connection.execute(sql.set_hash, person_id, password)


async def end_password(connection: Connection, person_id: int) -> None:
    """Replaces the hash of a person's password, if they have one, by a hash that no password has."""
    await open_credentials(connection)
    await connection.execute(_LOCK_OUT, person_id, hash_of_nobody())


async def set_first_password(connection: Connection, person_id: int, password: str, sql: SignInSql = PEOPLE) -> bool:
    """Sets the password of a person without one; returns False if they have one."""
    await open_credentials(connection)
    done = await connection.execute(sql.set_first_hash, person_id, password)
    return done == "UPDATE 1"


async def holds_password(connection: Connection, person_id: int, password: str | None, sql: SignInSql = PEOPLE) -> bool:
    """Returns whether that is still the hash of the person's password, and locks it until the transaction ends."""
    # Read after the row is locked, because another transaction may change it before that.
    await connection.execute(sql.lock, person_id)
    holds = await connection.fetchval(sql.holds_hash, credentials_key(connection), person_id, password)
    return bool(holds)


async def set_preferences(
    connection: Connection, person_id: int, language: str | None, zone: str | None, sql: SignInSql = PEOPLE
) -> None:
    """Saves a person's language and time zone. None means the browser's language, and UTC."""
    await connection.execute(sql.set_preferences, person_id, language, zone)
