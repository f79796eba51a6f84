"""The second step of signing in: codes of an authenticator app (TOTP, RFC 6238), and recovery codes. Passkeys are in `passkeys`."""

import base64
import hashlib
import secrets

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from largesse.customers.sign_in_store import PEOPLE, SignInSql
from largesse.db.pool import Connection, credentials_key, open_credentials
from largesse.encryption.vault import Vault

_NOW_S = "SELECT extract(epoch FROM clock_now())::float8"
DIGITS = 6
STEP_S = 30
_SECRET_BYTES = 20
_RECOVERY_CODES = 10
_RECOVERY_CHARACTERS = 16  # 80 bits, so a plain hash does not reveal it
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: no letter that looks like a digit
_ALIKE = str.maketrans("OIL", "011")


def new_totp_secret() -> bytes:
    """Returns a new secret for an authenticator app."""
    return secrets.token_bytes(_SECRET_BYTES)


def totp_address(secret: bytes, email: str) -> str:
    """Returns the address that an authenticator app reads from a QR code."""
    return _totp(secret).get_provisioning_uri(email, "Largesse")


def typed_secret(secret: bytes) -> str:
    """Returns the secret in groups of four characters, for people who type it into an app instead of scanning a QR code."""
    text = base64.b32encode(secret).decode("ascii")
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


async def turn_on(
    connection: Connection, vault: Vault, person_id: int, secret: bytes, code: str, sql: SignInSql = PEOPLE
) -> list[str] | None:
    """Switches the authenticator app on with a secret. Returns None if `code` is wrong, otherwise recovery codes as `begin_recovery` does."""
    step = _step_of(secret, _digits(code), await _now_s(connection), after=0)
    if step is None:
        return None
    await open_credentials(connection)
    await connection.execute(
        sql.turn_on_app, person_id, vault.second_steps.seal(secret, totp_context(person_id, sql)), step
    )
    return await begin_recovery(connection, person_id, sql)


async def forget_app(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> None:
    """Switches off the authenticator app."""
    await open_credentials(connection)
    await connection.execute(sql.forget_app, person_id)
    await end_recovery(connection, person_id, sql)


async def forget_second_step(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> None:
    """Switches off the second step: deletes app, passkeys and recovery codes."""
    await open_credentials(connection)
    await connection.execute(sql.forget_passkeys, person_id)
    await forget_app(connection, person_id, sql)


async def begin_recovery(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> list[str]:
    """Makes recovery codes for a person who has none, and returns them this once. Returns an empty list if the person has some."""
    has_some = await connection.fetchval(sql.has_recovery_codes, person_id)
    return [] if has_some else await new_recovery_codes(connection, person_id, sql)


async def end_recovery(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> None:
    """Deletes the recovery codes of a person who has no second step left."""
    if not await asks_second_step(connection, person_id, sql):
        await open_credentials(connection)
        await connection.execute(sql.end_recovery, person_id)


async def new_recovery_codes(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> list[str]:
    """Replaces a person's recovery codes, and returns the new ones this once."""
    await open_credentials(connection)
    codes = ["".join(secrets.choice(_ALPHABET) for _ in range(_RECOVERY_CHARACTERS)) for _ in range(_RECOVERY_CODES)]
    await connection.execute(sql.end_recovery, person_id)
    await connection.execute(sql.add_recovery_codes, person_id, [_hash(code) for code in codes])
    return ["-".join(code[at : at + 4] for at in range(0, len(code), 4)) for code in codes]


async def count_recovery_codes(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> int:
    """Returns how many recovery codes a person has left."""
    return int(await connection.fetchval(sql.count_recovery_codes, person_id))


async def asks_second_step(connection: Connection, person_id: int, sql: SignInSql = PEOPLE) -> bool:
    """Returns whether a person has a second step."""
    return bool(await connection.fetchval(sql.asks_second_step, person_id))


async def take_code(connection: Connection, vault: Vault, person_id: int, typed: str, sql: SignInSql = PEOPLE) -> bool:
    """Returns whether the text is a code of the person's app or a recovery code. Each counts once."""
    await open_credentials(connection)
    if (code := _digits(typed)) is None:
        return bool(await connection.fetchval(sql.take_recovery_code, person_id, _hash(typed)))
    taken = await connection.fetchval(sql.lock_app, person_id)
    # Read after the row is locked, because another transaction may change it before that.
    sealed = await connection.fetchval(sql.totp_key, credentials_key(connection), person_id)
    if taken is None or sealed is None:
        return False
    secret = vault.second_steps.open(sealed, totp_context(person_id, sql))
    step = _step_of(secret, code, await _now_s(connection), after=taken)
    if step is None:
        return False
    await connection.execute(sql.set_totp_step, person_id, step)
    return True


def totp_context(person_id: int, sql: SignInSql = PEOPLE) -> bytes:
    """Returns the encryption context of the secret of a person's authenticator app."""
    return (sql.totp_context % person_id).encode()


def _digits(typed: str) -> str | None:
    """Returns the six digits of an app's code, however they are grouped; None for any other text."""
    code = "".join(typed.split())
    return code if len(code) == DIGITS and code.isascii() and code.isdigit() else None


def _step_of(secret: bytes, code: str | None, now_s: float, *, after: int) -> int | None:
    """Returns the time step of a code if it is later than `after`; otherwise None.

    Accepts the current step, the one before and the next, as clocks differ.
    """
    if code is None:
        return None
    now = int(now_s // STEP_S)
    shown = {step: _totp(secret).generate(step * STEP_S) for step in (now - 1, now, now + 1) if step > after}
    return next((step for step, one in shown.items() if secrets.compare_digest(one, code.encode())), None)


def _totp(secret: bytes) -> TOTP:
    # Some apps support only SHA-1. It is safe within an HMAC.
    return TOTP(secret, DIGITS, SHA1(), STEP_S)  # noqa: S303


async def _now_s(connection: Connection) -> float:
    now_s: float = await connection.fetchval(_NOW_S)
    return now_s


def _hash(code: str) -> bytes:
    plain = "".join(character for character in code.upper() if character.isalnum()).translate(_ALIKE)
    return hashlib.sha256(plain.encode()).digest()
