"""Links that may be used once: invitations, links to sign in, and links to choose a new password.

The first link from a mail confirms an address, and removes everything that was set up for the address before.
"""

from datetime import timedelta

import msgspec

from largesse.base.errors import NotFound, existing
from largesse.customers.second_step import forget_second_step
from largesse.customers.sessions import forget_browsers, new_secret, secret_hash
from largesse.customers.sign_in_store import find_person
from largesse.db.pool import Connection, open_credentials

_END_EARLIER = """
    UPDATE sign_in_links SET used_at = clock_now() WHERE used_at IS NULL AND kind = $1
    AND (user_id = $2 OR person_id = $3)
"""
_ADD = """
    INSERT INTO sign_in_links (hash, kind, user_id, person_id, ends_at, is_mailed)
    VALUES ($1, $2, $3, $4, clock_now() + $5, $6)
"""
_FIND = """
    SELECT l.hash, l.kind, coalesce(u.email, p.email) AS email, coalesce(l.person_id, u.person_id) AS person_id,
           u.user_id, u.customer_id, u.customer_name, u.role, l.is_mailed
    FROM sign_in_links l
    LEFT JOIN user_of_link($1) u ON true
    LEFT JOIN people p ON p.id = l.person_id
    WHERE l.hash = $1 AND l.used_at IS NULL AND l.ends_at > clock_now() AND (u.user_id IS NULL OR u.is_active)
"""
_USE = """
    UPDATE sign_in_links SET used_at = clock_now() WHERE hash = $1 AND used_at IS NULL AND ends_at > clock_now()
    RETURNING true
"""
_END_OTHERS = """
    UPDATE sign_in_links SET used_at = clock_now() WHERE used_at IS NULL AND kind = $1
    AND (user_id = $2 OR (person_id = $3 AND kind = 'reset'))
"""
_MEMBERS_OF_PERSON = "SELECT user_id FROM memberships($1)"
_END_OF_PERSON = """
    UPDATE sign_in_links SET used_at = clock_now()
    WHERE used_at IS NULL AND (person_id = $1 OR (kind = 'sign_in' AND user_id = ANY ($2::int[])))
"""
_END_OF_MEMBER = "UPDATE sign_in_links SET used_at = clock_now() WHERE used_at IS NULL AND user_id = $1"
_CONFIRM_ADDRESS = """
    UPDATE people SET confirmed_at = clock_now(), password = NULL WHERE id = $1 AND confirmed_at IS NULL
    RETURNING true
"""

ENDED = "This link is no longer valid."
LASTS = {"invitation": timedelta(days=7), "sign_in": timedelta(hours=24), "reset": timedelta(hours=1)}


class Link(msgspec.Struct, frozen=True):
    """A valid link: its kind, and the person it is for."""

    hash: bytes
    kind: str  # invitation, sign_in or reset
    email: str
    person_id: int | None  # None if nobody has signed in with that address yet
    is_member: bool  # whether that person belongs to a customer, and so can already sign in
    has_password: bool
    is_mailed: bool  # the link goes only into a mail, so only people who read the mail of the address get it
    is_confirmed: bool  # whether that person has followed such a link before
    user_id: int | None  # None for a reset
    customer_id: int | None
    customer_name: str | None
    role: str | None

    @property
    def confirms(self) -> bool:
        """Whether choosing a password by it confirms the address: shows for the first time that the person reads its mail."""
        return self.is_mailed and not self.is_confirmed

    @property
    def chooses_password(self) -> bool:
        """Whether the person can choose a password by it. Otherwise they sign in as before."""
        if self.kind != "invitation":
            return self.kind == "reset"
        return self.confirms or not (self.has_password or (self.is_member and not self.is_mailed))


async def new_link(
    connection: Connection,
    kind: str,
    *,
    user_id: int | None = None,
    person_id: int | None = None,
    ends_others: bool = True,
    is_mailed: bool = False,
) -> str:
    """Returns the secret of a new link, which cannot be read again.

    With `ends_others`, ends earlier links of that kind for the same user or person. `is_mailed` says that the link goes only into a mail to the
    address, so that following it confirms the address.
    """
    await open_credentials(connection)
    secret = new_secret()
    if ends_others:
        await connection.execute(_END_EARLIER, kind, user_id, person_id)
    await connection.execute(_ADD, secret_hash(secret), kind, user_id, person_id, LASTS[kind], is_mailed)
    return secret


async def find_link(connection: Connection, secret: str) -> Link:
    """Returns the link of that secret. Raises NotFound if it was used, has expired or never existed."""
    row = existing(await connection.fetchrow(_FIND, secret_hash(secret)), ENDED)
    known = await find_person(connection, row["email"])
    return Link(
        **{**row, "person_id": row["person_id"] or (known.id if known else None)},
        is_member=known is not None and known.is_member,
        has_password=known is not None and known.has_password,
        is_confirmed=known is not None and known.is_confirmed,
    )


async def use_link(connection: Connection, link: Link) -> None:
    """Uses a link, and ends all others of its kind for the same user or person. Raises NotFound if it was just used by another request."""
    used = await connection.fetchval(_USE, link.hash)
    if not used:
        raise NotFound(ENDED)
    await connection.execute(_END_OTHERS, link.kind, link.user_id, link.person_id)


async def end_links_of_person(connection: Connection, person_id: int) -> None:
    """Ends all links by which somebody can sign in as that person, or choose their password. Invitations stay."""
    users = await connection.fetch(_MEMBERS_OF_PERSON, person_id)
    await connection.execute(_END_OF_PERSON, person_id, [row["user_id"] for row in users])


async def end_links(connection: Connection, *, user_id: int) -> None:
    """Ends all links of a user."""
    await connection.execute(_END_OF_MEMBER, user_id)


async def confirm_address(connection: Connection, person_id: int) -> bool:
    """Records that the person reads the mail of their address. Returns False if that was recorded before.

    Until then, somebody else may have used an invitation that a page showed. So this removes password, second step, sessions, known
    browsers and links. The person chooses a password in the same transaction.
    """
    await open_credentials(connection)
    confirmed = await connection.fetchval(_CONFIRM_ADDRESS, person_id)
    if not confirmed:
        return False
    await forget_second_step(connection, person_id)
    await forget_browsers(connection, person_id)
    await end_links_of_person(connection, person_id)
    return True
