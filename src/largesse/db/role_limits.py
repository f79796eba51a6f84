"""Limits of the roles: how many sessions each may open, and how long a session may run, wait for a lock and hold one.

Processes set their own time limits when they connect (`largesse.db.session`). The limits here apply to all other sessions of the same
login, such as `psql`. The number of sessions applies to all.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from largesse.db.fragments import compose
from largesse.db.roles import ACTING, Role
from largesse.db.session import COMMANDS, REQUESTS, WORK, Limits
from largesse.db.sharding import HAS_EXTENSION, Session


class RoleLimits(msgspec.Struct, frozen=True):
    """The limits of a role."""

    share: int  # percent of the server's sessions
    times: Limits
    transaction_s: int = 0  # 0: no limit, as loads and audits may take long

    @property
    def settings(self) -> dict[str, str]:
        """The time limits as settings of PostgreSQL. `transaction_timeout` exists from PostgreSQL 17 on."""
        settings = {name: value for name, value in self.times.settings.items() if name in _SETTINGS}
        return settings | ({"transaction_timeout": f"{self.transaction_s}s"} if self.transaction_s else {})


_SETTINGS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
_FEWEST = 10  # sessions of a role, even if the server allows few
LIMITS: Mapping[Role, RoleLimits] = {
    Role.APP: RoleLimits(70, REQUESTS, transaction_s=900),
    Role.WORKER: RoleLimits(40, WORK, transaction_s=900),
    Role.OFFICE: RoleLimits(15, REQUESTS, transaction_s=900),
    Role.OPERATOR: RoleLimits(20, COMMANDS),
    Role.READ: RoleLimits(10, COMMANDS),
}


async def limits_missing(session: Session) -> list[str]:
    """Returns the statements that set the limits of the roles, and of logins that are members of one. Keeps limits that are already set.

    Returns none on a cluster, where a session opens others on the nodes with the same role.
    """
    server = await session.fetchrow(_SERVER)
    assert server is not None, "a query of one row"
    if server["has_nodes"]:
        return []
    rows = await session.fetch(_LOGINS, list(ACTING), Role.OWNER)
    there = {row["login"] for row in rows}
    new: list[Any] = [{"login": role, "role": role, "sessions": -1, "set": ()} for role in ACTING if role not in there]
    return [statement for row in [*new, *rows] for statement in _statements(row, server)]


def _statements(row: Any, server: Any) -> list[str]:
    limits = LIMITS[Role(row["role"])]
    statements = []
    if row["sessions"] == -1:
        sessions = max(_FEWEST, server["max_connections"] * limits.share // 100)
        statements.append(f"ALTER ROLE {row['login']} CONNECTION LIMIT {sessions}")
    return statements + [
        f"ALTER ROLE {row['login']} SET {name} = '{value}'"
        for name, value in limits.settings.items()
        if name in server["timeouts"] and name not in row["set"]
    ]


_SERVER = compose(
    """
    SELECT current_setting('max_connections')::int AS max_connections, {has_extension} AS has_nodes,
           ARRAY(SELECT name FROM pg_settings WHERE name LIKE '%_timeout') AS timeouts
""",
    has_extension=HAS_EXTENSION,
)
# The roles, and the logins that are members of one and not of the owner. A member of several has the limits of the first.
_LOGINS = """
    SELECT DISTINCT ON (login.oid) quote_ident(login.rolname) AS login, role.rolname::text AS role, login.rolconnlimit AS sessions,
           ARRAY(SELECT split_part(setting, '=', 1) FROM unnest(login.rolconfig) AS setting) AS set
    FROM pg_roles role JOIN pg_roles login ON login.oid = role.oid OR login.rolcanlogin AND NOT login.rolsuper
        AND EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = role.oid AND m.member = login.oid)
        AND NOT EXISTS (SELECT FROM pg_roles owner WHERE owner.rolname = $2 AND pg_has_role(login.oid, owner.oid, 'MEMBER'))
    WHERE role.rolname = ANY($1::text[])
    ORDER BY login.oid, array_position($1::text[], role.rolname::text)
"""
