"""Makes the roles and grants them exactly their rights, for `migrate`. `check` and `verify` compare.

It changes only what differs. So it can be repeated, and several databases of a server, which share the roles, can run it at the same time.
Statements that the migrating login may not run are left for an administrator.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import asyncpg
import msgspec

from largesse.base.errors import OperatorError
from largesse.db.fragments import Fragment, compose, identifier
from largesse.db.policies import TABLES as HELD_APART
from largesse.db.policies import Policy, policies_on
from largesse.db.privileges import Right, rights_on
from largesse.db.role_limits import limits_missing
from largesse.db.roles import ACTING, Role, act_as, may_act
from largesse.db.sharding import HAS_EXTENSION, Session, is_distributed

_TRIES = 20
_PAUSE_S = 0.05
# Shorter than `deadlock_timeout` (1 s), so that in a deadlock this side gives up and no transaction of the service is ended.
_LOCK_TIMEOUT_MS = 200
_LOCK_TRIES = 300  # tries for one lock, which take more than a minute
# Another `migrate`, of another database on this server, has made or changed the same role meanwhile.
_RACED = (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError, asyncpg.InternalServerError)
# A statement was not allowed, or needs a role that was not allowed to be made.
_REFUSED = (asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedObjectError)
_LOGIN = "SELECT session_user::text"
_KNOWN_ROLES = "SELECT rolname::text FROM pg_roles WHERE rolname = ANY($1::text[])"
# Whether the role $1 owns the schema.
IS_OWNED_BY = "SELECT relowner::regrole::text = $1 FROM pg_class WHERE oid = to_regclass('alembic_version')"
_SCHEMA_RIGHTS = """
    SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS grantee, privilege_type
    FROM pg_namespace, aclexplode(coalesce(nspacl, acldefault('n', nspowner))) WHERE nspname = 'public'
"""
_OWNED_BY_OTHERS = """
    SELECT format('GRANT %s TO %I', $1::text, rolname) AS statement FROM pg_roles
    WHERE oid = (SELECT relowner FROM pg_class WHERE oid = to_regclass('alembic_version'))
      AND rolname <> $1::text AND rolname <> session_user AND NOT rolsuper
      AND NOT EXISTS (SELECT FROM pg_auth_members
                      WHERE member = pg_roles.oid AND roleid::regrole::text = $1::text)
"""


class Differences(msgspec.Struct, frozen=True):
    """The rights that roles lack, and those that they have but should not."""

    missing: tuple[Right, ...]
    extra: tuple[Right, ...]


async def prepare_roles(session: Session) -> list[str]:
    """Makes the roles, gives the schema to the owner, and acts as the owner from then on. Returns the statements that were refused.

    An administrator must run those. Until the owner owns the whole schema, the session stays its login.
    Raises OperatorError for a login that only serves, delivers or reads.
    """
    await _refuse_acting(session)
    refused = [statement for missing in _PREPARING for statement in await _do(session, missing)]
    if not await session.fetch(_FOREIGN_OWNED, Role.OWNER):
        await act_as(session, Role.OWNER)
    return refused


async def roles_to_make(session: Session) -> list[str]:
    """Returns the statements that `prepare_roles` would run, for an administrator to run instead. Changes nothing.

    Raises OperatorError as that does.
    """
    await _refuse_acting(session)
    return [statement for missing in _PREPARING for statement in await missing(session)]


async def _refuse_acting(session: Session) -> None:
    login = await session.fetchval(_LOGIN)
    if login in ACTING:
        raise OperatorError(
            f"migrate needs the address of the schema's owner, not of {login}: set LARGESSE_OWNER_DATABASE_URL"
        )


async def grant_rights(session: Session) -> list[str]:
    """Grants the roles their rights and revokes all others. Returns the statements that were refused."""
    return await _do(session, _rights_missing)


async def set_policies(session: Session) -> list[str]:
    """Sets the declared policies of row-level security, and removes all others. Returns the statements that were refused.

    Does nothing until the owner owns the schema, as another owner would no longer see any rows; nor in a restored database
    without the roles.
    """
    return await _do(session, policies_missing)


async def policies_missing(session: Session) -> list[str]:
    """Returns the statements that correct row-level security: first those that make rows visible, last those that hide rows.

    One statement replaces a policy: in between, a running service would not see the rows.
    """
    handed = await session.fetchval(IS_OWNED_BY, Role.OWNER)
    distributed = await is_distributed(session)
    tables = await session.fetch(_SECURED)
    wanted = {policy for table in tables if handed for policy in policies_on(table["name"], is_distributed=distributed)}
    there = {
        Policy(row["table"], row["name"], tuple(sorted(row["roles"])), row["using"], row["check"])
        if row["is_plain"]
        else Policy(row["table"], row["name"], (), "")
        for row in await session.fetch(_POLICIES)
    }
    former = {(policy.table, policy.name): policy.drop for policy in there - wanted}
    statements = []
    for policy in sorted(wanted - there):
        drop = former.pop((policy.table, policy.name), None)
        statements.append(f"{drop}; {policy.create}" if drop else policy.create)
    for table in tables:
        is_held = bool(handed) and table["name"] in HELD_APART
        if table["is_on"] is not is_held:
            statements.append(f"ALTER TABLE {table['name']} {'ENABLE' if is_held else 'DISABLE'} ROW LEVEL SECURITY")
        # When rows move to another node, the table's owner writes them there. Forced security would prevent this with any policy.
        is_forced = is_held and not distributed
        if table["is_forced"] is not is_forced:
            statements.append(f"ALTER TABLE {table['name']} {'' if is_forced else 'NO '}FORCE ROW LEVEL SECURITY")
    return statements + [former[key] for key in sorted(former)]


async def differences(session: Session) -> Differences:
    """Returns how the rights in the database differ from the declared ones; no differences if there are no roles."""
    objects = await session.fetch(_OBJECTS)
    rows = await session.fetch(_RIGHTS, list(ACTING))
    wanted = {right for kind, name in objects for right in rights_on(kind, name)}
    given = {Right(*row) for row in rows}
    return Differences(tuple(sorted(wanted - given)), tuple(sorted(given - wanted)))


async def _do(session: Session, missing: _Missing) -> list[str]:
    """Runs the statements that `missing` returns. Returns those that it still returns afterwards: they were refused.

    Runs twice, as one may only run after another. Repeats if another session was faster.
    """
    await session.execute(f"SET lock_timeout = {_LOCK_TIMEOUT_MS}")
    try:
        return await _try(session, missing)
    finally:
        await session.execute("RESET lock_timeout")


async def _try(session: Session, missing: _Missing) -> list[str]:
    for tried in range(_TRIES):
        try:
            for _ in range(2):
                for statement in await missing(session):
                    with contextlib.suppress(*_REFUSED):
                        await _run_beside_others(session, statement)
            return await missing(session)
        except _RACED:
            if tried == _TRIES - 1:
                raise
            await asyncio.sleep(_PAUSE_S * random.uniform(0.5, 1.5))  # noqa: S311 - spreads, hides nothing
    raise AssertionError("the last try has returned or raised")


async def _run_beside_others(session: Session, statement: str) -> None:
    """Runs one statement beside a running service. It delays the service by a fraction of a second at most, and never deadlocks with it."""
    for _ in range(_LOCK_TRIES):
        try:
            async with session.transaction():
                # A coordinator passes a policy on to its nodes only by a statement of its own.
                for part in _REPLACED.split(statement):
                    await session.execute(part)
        except asyncpg.LockNotAvailableError:
            await asyncio.sleep(_PAUSE_S)
        else:
            return
    raise OperatorError(f"somebody holds a lock for too long: end their transaction and try again ({statement})")


def is_advice(statement: str) -> bool:
    """Returns whether the statement is optional. Some hosting providers refuse it."""
    return bool(_ADVICE.match(statement))


def as_script(statements: Sequence[str]) -> str:
    """Returns the statements as a script for psql that can run beside a running service, as in `_run_beside_others`.

    Each statement has its own transaction, even under `psql -1`, so that no lock is held while it waits for another.
    """
    waits = [statement for statement in statements if statement.startswith("ALTER ") and "OWNER TO" in statement]
    if not waits:
        return "".join(f"{statement};\n" for statement in statements)
    lines = [f"SET lock_timeout = {_LOCK_TIMEOUT_MS};", "COMMIT;  -- a warning here means nothing"]
    lines += [
        _RETRIED.format(statement=statement) if statement in waits else f"{statement};" for statement in statements
    ]
    return "\n".join([*lines, "RESET lock_timeout;\n"])


async def _roles_missing(session: Session) -> list[str]:
    """Returns the statements that make the roles, and allow the owner to act as each of them, and the login as the owner."""
    row = await session.fetchrow(
        compose(
            """
        SELECT array_agg(rolname::text) AS there,
               coalesce(bool_or(rolname = $2::text AND rolbypassrls), false) AS sees_all,
               coalesce(bool_or(rolname = $2::text AND {may_act}), false) AS may_own,
               array_agg(rolname::text) FILTER (WHERE EXISTS (
                   SELECT FROM pg_auth_members m
                   WHERE m.roleid = pg_roles.oid AND m.member::regrole::text = $2::text)) AS owned,
               array_agg(rolname::text) FILTER (WHERE NOT rolcanlogin) AS cannot_log_in,
               array_agg(rolname::text) FILTER (WHERE NOT rolbypassrls AND rolname <> '{role_app}') AS held,
               {has_extension} AS has_nodes, quote_ident(session_user) AS login
        FROM pg_roles WHERE rolname = ANY($1::text[])
        """,
            may_act=may_act(session),
            role_app=identifier(Role.APP),
            has_extension=HAS_EXTENSION,
        ),
        list(Role),
        Role.OWNER,
    )
    assert row is not None, "an aggregate is one row"
    there, owned = row["there"] or [], row["owned"] or []
    # A coordinator opens its sessions on the nodes as the acting role.
    login = "LOGIN" if row["has_nodes"] else "NOLOGIN"
    statements = [f"CREATE ROLE {role} {login}" for role in Role if role not in there]
    if row["has_nodes"]:
        statements += [f"ALTER ROLE {role} LOGIN" for role in row["cannot_log_in"] or []]
        # Their policies allow every row. But the coordinator cannot write rows as a role to which any policies apply.
        statements += [f"ALTER ROLE {role} BYPASSRLS" for role in row["held"] or []]
    # pg_dump reads all rows or fails; nothing else depends on it.
    statements += [] if row["sees_all"] else [f"ALTER ROLE {Role.OWNER} BYPASSRLS"]
    statements += [f"GRANT {role} TO {Role.OWNER}" for role in ACTING if role not in owned]
    return statements + ([] if row["may_own"] else [f"GRANT {Role.OWNER} TO {row['login']}"])


async def _schema_missing(session: Session) -> list[str]:
    """Returns the statements that allow all roles to use the schema, and only the owner to create objects in it."""
    rows = await session.fetch(_SCHEMA_RIGHTS)
    held = {(row["grantee"], row["privilege_type"]) for row in rows}
    wanted = [*((role, "USAGE") for role in Role), (Role.OWNER, "CREATE")]
    statements = [
        f"GRANT {privilege} ON SCHEMA public TO {role}"
        for role, privilege in wanted
        if (str(role), privilege) not in held
    ]
    return statements + (["REVOKE CREATE ON SCHEMA public FROM PUBLIC"] if ("PUBLIC", "CREATE") in held else [])


async def _foreign_owned(session: Session) -> list[str]:
    """Returns the statements that give the owner a schema that another login made before there were roles.

    That login may act as the owner from then on, so that processes that still use it keep working.
    """
    before = await session.fetch(_OWNED_BY_OTHERS, Role.OWNER)
    return [row["statement"] for row in [*before, *await session.fetch(_FOREIGN_OWNED, Role.OWNER)]]


async def _rights_missing(session: Session) -> list[str]:
    """Returns a statement for each object that corrects its rights at once: a running service never lacks one in between.

    Roles that an administrator has to make yet get theirs later.
    """
    known = {row["rolname"] for row in await session.fetch(_KNOWN_ROLES, list(ACTING))}
    if not known:
        return []
    found = await differences(session)
    changes: dict[tuple[str, str], list[str]] = {}
    for right in found.extra:
        changes.setdefault((right.kind, right.name), []).append(right.revoke)
    # Revoking a privilege on a table also revokes those on its columns.
    revoked = {(right.name, right.grantee, right.privilege) for right in found.extra if not right.column}
    lost = {
        right
        for kind, name in changes
        for right in rights_on(kind, name)
        if right.column and (name, right.grantee, right.privilege) in revoked
    }
    for right in sorted({*found.missing, *lost}):
        if right.grantee in known:
            changes.setdefault((right.kind, right.name), []).append(right.grant)
    return ["; ".join(changes[key]) for key in sorted(changes)]


_Missing: TypeAlias = Callable[[Session], Awaitable[list[str]]]
# Limits of roles, the right that pg_dump needs, and the one that prevents a statement from changing its own scope.
_ADVICE = re.compile(
    rf"ALTER ROLE \S+ (CONNECTION LIMIT|SET) |ALTER ROLE {Role.OWNER} BYPASSRLS|\w+ EXECUTE ON FUNCTION pg_catalog"
)
_REPLACED = re.compile("; (?=CREATE POLICY )")
_PREPARING: tuple[_Missing, ...] = (_roles_missing, _schema_missing, _foreign_owned, limits_missing)
_RETRIED = (
    "DO $$ BEGIN LOOP BEGIN {statement}; EXIT; "
    "EXCEPTION WHEN lock_not_available THEN PERFORM pg_sleep(0.05); END; END LOOP; END $$;"
)

# Our tables, sequences and functions belong to the role that owns the table of migrations. `kind` is the word that GRANT uses.
# Leaves out objects that belong to others: sequences of identity columns, objects of extensions, and shards, whose names end in a number.
_OURS = Fragment("""
    SELECT 'pg_class'::regclass AS class, c.oid, c.relowner AS owner, c.oid::regclass::text AS name,
           CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
           coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)) AS acl
    FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S') AND c.relname !~ '_[0-9]{5,}$'
    UNION ALL
    SELECT 'pg_proc'::regclass, p.oid, p.proowner, p.oid::regprocedure::text, 'FUNCTION',
           coalesce(p.proacl, acldefault('f', p.proowner))
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
""")
_OBJECTS = compose(
    """
    SELECT kind, name FROM ({ours}) AS ours
    WHERE owner = (SELECT relowner FROM pg_class WHERE oid = to_regclass('alembic_version'))
      AND NOT EXISTS (SELECT FROM pg_depend d
                      WHERE d.classid = ours.class AND d.objid = ours.oid AND d.deptype IN ('e', 'i'))
""",
    ours=_OURS,
)
_SECURED = compose(
    """
    SELECT c.oid::regclass::text AS name, c.relrowsecurity AS is_on, c.relforcerowsecurity AS is_forced
    FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.oid::regclass::text IN (
        SELECT name FROM ({objects}) AS objects WHERE kind = 'TABLE')
    ORDER BY 1
""",
    objects=_OBJECTS,
)
_POLICIES = compose(
    """
    SELECT tables.name AS "table", quote_ident(p.policyname) AS name, p.roles::text[] AS roles, coalesce(p.qual, '') AS using,
           p.with_check AS "check", p.permissive = 'PERMISSIVE' AND p.cmd = 'ALL' AS is_plain
    FROM ({secured}) AS tables JOIN pg_policies p ON p.schemaname = 'public' AND quote_ident(p.tablename) = tables.name
""",
    secured=_SECURED,
)
_FOREIGN_OWNED = compose(
    """
    SELECT format('ALTER %s %s OWNER TO %s', kind, name, $1::text) AS statement FROM ({ours}) AS ours
    WHERE owner = (SELECT relowner FROM pg_class WHERE oid = to_regclass('alembic_version'))
      AND owner::regrole::text <> $1
      AND NOT EXISTS (SELECT FROM pg_depend d
                      WHERE d.classid = ours.class AND d.objid = ours.oid
                        AND (d.deptype = 'e' OR d.deptype IN ('a', 'i') AND ours.kind = 'SEQUENCE'))
    ORDER BY name = 'alembic_version', name  -- this table last: its owner tells which objects are ours
""",
    ours=_OURS,
)
_RIGHTS = compose(
    """
    WITH ours AS ({ours}), objects AS ({objects}), granted AS (
        SELECT kind, name, '' AS column, (aclexplode(acl)).* FROM ours
        UNION ALL
        SELECT kind, name, a.attname, (aclexplode(a.attacl)).*
        FROM ours JOIN pg_attribute a ON a.attrelid = ours.oid AND ours.kind = 'TABLE' AND a.attacl IS NOT NULL)
    SELECT DISTINCT kind, name, "column", CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who,
           privilege_type
    FROM granted JOIN objects USING (kind, name)
    WHERE grantee = 0 OR grantee::regrole::text = ANY($1::text[])
""",
    ours=_OURS,
    objects=_OBJECTS,
)
