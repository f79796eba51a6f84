"""The roles of the database, and how a process acts as a role.

    OWNER      owns the schema and changes it: only `migrate`
    APP        serves
    WORKER     delivers and maintains
    OFFICE     the back office, in a serving process
    OPERATOR   commands
    READ       audits and reports: changes nothing

None is a superuser, and only the owner owns anything. Their rights are in `largesse.db.rights`. A login with more rights than it needs,
such as a superuser, acts as its role from the first statement on.
See docs/decisions/0035-roles.md.
"""

from __future__ import annotations

from enum import StrEnum

import asyncpg

from largesse.db.fragments import Fragment, compose, identifier

_SET_OPTION_SINCE = 16  # from this version on, each membership has an option that allows acting as the role
_PROBE = "SELECT 1"
_MAY_NOT_ACT = """
    SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1) AND NOT coalesce((
        SELECT pg_has_role(current_user, relowner, 'USAGE')
        FROM pg_class WHERE oid = to_regclass('alembic_version')), false)
"""


class Role(StrEnum):
    """The role that a process acts as."""

    OWNER = "largesse_owner"
    APP = "largesse_app"
    WORKER = "largesse_worker"
    OFFICE = "largesse_office"
    OPERATOR = "largesse_operator"
    READ = "largesse_read"


# The roles that processes act as in normal operation.
ACTING = (Role.APP, Role.WORKER, Role.OFFICE, Role.OPERATOR, Role.READ)


def may_act(connection: asyncpg.Connection[asyncpg.Record]) -> Fragment:
    """Returns a condition on rows of `pg_roles`: the roles that the login may act as."""
    has_option = connection.get_server_version().major >= _SET_OPTION_SINCE
    return compose(
        "pg_has_role(session_user, pg_roles.oid, '{option}')",
        option=Fragment("SET") if has_option else Fragment("MEMBER"),
    )


async def act_as(connection: asyncpg.Connection[asyncpg.Record], role: Role) -> bool:
    """Makes the session act as a role, in one round trip. Returns False, and changes nothing, if there is no such role or the login may not act as it.

    Never call it on a session of PgBouncer, which another client gets after the transaction.
    """
    done = await connection.execute(
        compose(
            "SELECT set_config('role', '{role}', false) FROM pg_roles WHERE rolname = '{role}' AND {may_act}",
            role=identifier(role),
            may_act=may_act(connection),
        )
    )
    return done == _PROBE


async def can_act_as(connection: asyncpg.Connection[asyncpg.Record], role: Role) -> bool:
    """Returns whether the role exists, and the login is another role that may act as it."""
    able: bool = await connection.fetchval(
        compose(
            "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}' AND rolname <> session_user AND {may_act})",
            role=identifier(role),
            may_act=may_act(connection),
        )
    )
    return able


async def why_not(connection: asyncpg.Connection[asyncpg.Record], role: Role) -> str | None:
    """Returns why a session that could not act as its role must stop; None if it may continue as its login.

    It may continue if there are no roles, as they could not be made, or if its login owns the schema.
    """
    refused: bool = await connection.fetchval(_MAY_NOT_ACT, role)
    if not refused:
        return None
    return (
        f"the login at the database may not act as {role}, which this runs as: give the address of a login that may "
        "(LARGESSE_DATABASE_URL; for commands LARGESSE_OWNER_DATABASE_URL)"
    )
