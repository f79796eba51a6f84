"""Limits on attempts to sign in. They are counted in the database, so that all processes count together.

Each count belongs to a keyed hash of an address that was typed, or of a network. An attempt is counted before it is made, so
simultaneous attempts cannot exceed the limit. A success resets the count of the address, and takes one off the count of the network.
"""

from enum import Enum

from largesse.base.errors import TooManyRequests
from largesse.base.throttle import Rate
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Connection, Database
from largesse.db.scope import LOOKUP
from largesse.encryption.vault import Vault

_GIVE_BACK = "DELETE FROM sign_in_allowances WHERE key = $1"
_GIVE_ONE_BACK = "UPDATE sign_in_allowances SET remaining = least($2::float8, remaining + 1) WHERE key = $1"

# If two attempts are simultaneous, the one that began first may be counted last. Then no time has passed for it, not negative time.
_LEFT = Fragment("""
    least($2, a.remaining + greatest(0, extract(epoch FROM clock_now() - a.counted_at)::float8) * $2 / $3)
""")
_SPEND = compose(
    """
    INSERT INTO sign_in_allowances AS a (key, remaining) VALUES ($1, $2::float8 - 1)
    ON CONFLICT (key) DO UPDATE SET
        is_refused = {left} < 1,
        remaining = {left} - CASE WHEN {left} < 1 THEN 0 ELSE 1 END,
        counted_at = greatest(a.counted_at, clock_now())
    RETURNING remaining, is_refused, $3::float8
    """,
    left=_LEFT,
)


class Allowance(Enum):
    """The kinds of attempts that are counted, each with its allowance."""

    ACCOUNT = Rate(10, 900.0)  # passwords and codes tried for one address
    NETWORK = Rate(60, 900.0)  # all attempts from one network
    WRONG_STEPS = Rate(5, 86400.0)  # wrong second steps of a person before they are warned
    WARNINGS = Rate(1, 86400.0)  # mail about wrong second steps to a person
    LETTERS = Rate(4, 3600.0)  # mail that is sent to one address
    TESTS = Rate(6, 360.0)  # test mail of a gift that a person prepares, to that person


async def spend(database: Database, vault: Vault, allowance: Allowance, about: bytes) -> None:
    """Counts an attempt before it is made. Raises TooManyRequests if none is left."""
    async with database.connection(LOOKUP) as connection:
        await spend_on(connection, vault, allowance, about)


async def spend_on(connection: Connection, vault: Vault, allowance: Allowance, about: bytes) -> None:
    """Counts an attempt as `spend` does, in the caller's transaction."""
    rate = allowance.value
    row = await connection.fetchrow(_SPEND, _key(vault, allowance, about), rate.most, rate.refill_s)
    assert row is not None, "an upsert returns its row"
    if row["is_refused"]:
        raise TooManyRequests("Too many attempts.", retry_after_s=rate.wait_s(row["remaining"]))


async def give_back(database: Database, vault: Vault, allowance: Allowance, about: bytes) -> None:
    """Resets an allowance: all attempts are left again."""
    await database.execute(LOOKUP, _GIVE_BACK, _key(vault, allowance, about))


async def give_one_back(database: Database, vault: Vault, allowance: Allowance, about: bytes) -> None:
    """Adds one attempt to an allowance again."""
    await database.execute(LOOKUP, _GIVE_ONE_BACK, _key(vault, allowance, about), allowance.value.most)


def _key(vault: Vault, allowance: Allowance, about: bytes) -> int:
    return vault.networks.lookup(b"sign-in/" + allowance.name.encode() + b"/" + about)
