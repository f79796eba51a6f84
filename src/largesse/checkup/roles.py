"""Checks of roles: as whom a process logs in and acts, and whether every role has the rights and sees the rows that are its own."""

from __future__ import annotations

from largesse.base.settings import Settings
from largesse.checkup.finding import Finding, ok, warning
from largesse.database.granting import differences, policies_missing
from largesse.database.pool import Connection
from largesse.database.roles import Role

_NAME = "LARGESSE_DATABASE_URL"
_SEE = "docs/database.md, Database roles"


async def check_roles(connection: Connection, settings: Settings) -> list[Finding]:
    """What `connection`, opened as a serving process would, tells about roles."""
    row = await connection.fetchrow(
        """
        SELECT session_user::text AS login, current_user = $1 AS acts, me.rolsuper,
               me.rolcreaterole OR me.rolcreatedb AS makes,
               (SELECT pg_has_role(session_user, relowner, 'MEMBER')
                FROM pg_class WHERE oid = to_regclass('alembic_version')) AS owns
        FROM pg_roles me WHERE me.rolname = session_user
        """,
        Role.APP,
    )
    assert row is not None, "whoever is logged in is there"
    if not row["acts"] and "pgbouncer=true" not in (settings.database_url or ""):
        return [
            warning(
                _NAME,
                f"There is no role {Role.APP} that {row['login']} may act as: processes may do whatever that may. "
                f"`largesse migrate --roles-sql` prints what makes it ({_SEE}).",
            )
        ]
    return [_login(row["login"], _more(row)), await _rights(connection), await _policies(connection)]


def _more(row: object) -> str:
    """What somebody who logs in is beyond what a process needs; empty for nothing."""
    for name, said in (
        ("rolsuper", "is a superuser"),
        ("owns", "owns the schema"),
        ("makes", "makes roles or databases"),
    ):
        if row[name]:  # type: ignore[index]
            return said
    return ""


def _login(login: str, more: str) -> Finding:
    if more:
        return warning(
            _NAME,
            f"Processes log in as {login}, who {more}, and act as their roles by leaving that aside. Whoever got to send "
            f"statements of its own would find back: give them logins that are members of one role each ({_SEE}).",
        )
    return ok(_NAME, f"Serving processes log in as {login}, who may do no more than they need.")


async def _policies(connection: Connection) -> Finding:
    missing = await policies_missing(connection)
    if not missing:
        return ok(_NAME, "Row-level security holds customers apart.")
    return warning(
        _NAME,
        f"Row-level security does not hold customers apart as it should: {len(missing)} statements are missing, such as "
        f"{missing[0]}: `largesse migrate` puts it right ({_SEE}).",
    )


async def _rights(connection: Connection) -> Finding:
    found = await differences(connection)
    if found.missing:
        first = found.missing[0].grant
        said = f"Roles lack {len(found.missing)} of their rights, such as {first}"
    elif found.extra:
        first = found.extra[0].grant
        said = f"Roles have {len(found.extra)} rights that are not theirs, such as {first}"
    else:
        return ok(_NAME, "Every role has its rights, and no others.")
    return warning(_NAME, f"{said}: `largesse migrate` puts them right.")
