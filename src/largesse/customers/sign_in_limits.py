"""How often something may be tried: counted in the database, so that all processes count together.

Each is about somebody who is named by a keyed hash: an address somebody types, the network they come from. It is taken before the
try, so that many at once are no way around it; who succeeds gets it back: all of it for the address, their own try for the network.
"""

from enum import Enum

from largesse.base.errors import TooManyRequests
from largesse.base.throttle import Rate
from largesse.db.fragments import Fragment, compose
from largesse.db.pool import Database
from largesse.db.scope import LOOKUP
from largesse.encryption.vault import Vault

_GIVE_BACK = "DELETE FROM sign_in_allowances WHERE key = $1"
_GIVE_ONE_BACK = "UPDATE sign_in_allowances SET remaining = least($2::float8, remaining + 1) WHERE key = $1"

# Of two attempts at once, the one that began first may be counted last. For it, no time has passed, rather than negative time.
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
    """What is counted, and how much of it is allowed."""

    ACCOUNT = Rate(10, 900.0)  # passwords and codes tried for one address
    NETWORK = Rate(60, 900.0)  # all attempts from one network
    LETTERS = Rate(4, 3600.0)  # mail that is sent to one address
    TESTS = Rate(6, 360.0)  # mail of what they are about to send, to one person


async def spend(database: Database, vault: Vault, allowance: Allowance, about: bytes) -> None:
    """Takes one, whatever comes of the try. Raises TooManyRequests when none is left."""
    rate = allowance.value
    row = await database.fetchrow(LOOKUP, _SPEND, _key(vault, allowance, about), rate.most, rate.refill_s)
    assert row is not None, "an upsert returns its row"
    if row["is_refused"]:
        raise TooManyRequests("Too many tries.", retry_after_s=rate.wait_s(row["remaining"]))


async def give_back(database: Database, vault: Vault, allowance: Allowance, about: bytes) -> None:
    """Makes it whole again."""
    await database.execute(LOOKUP, _GIVE_BACK, _key(vault, allowance, about))


async def give_one_back(database: Database, vault: Vault, allowance: Allowance, about: bytes) -> None:
    """Gives back what one try took."""
    await database.execute(LOOKUP, _GIVE_ONE_BACK, _key(vault, allowance, about), allowance.value.most)


def _key(vault: Vault, allowance: Allowance, about: bytes) -> int:
    return vault.networks.lookup(b"sign-in/" + allowance.name.encode() + b"/" + about)
