"""Checks of roles, their rights and their rows: as `largesse.db.rights` and `policies` have them, and no more. Also what staff may and did."""

from collections.abc import Iterable, Sequence

from largesse.db.fragments import Fragment, compose, each, identifier
from largesse.db.grants import IS_OWNED_BY, differences, policies_missing
from largesse.db.manifest import schema_differences
from largesse.db.pool import Connection
from largesse.db.rights import TABLES
from largesse.db.roles import ACTING, Role
from largesse.db.sharding import HAS_EXTENSION
from largesse.verify.check import SHOWN_IDS, Check, Finding

ROLES_HAVE_THEIR_RIGHTS = "roles-have-their-rights"
CUSTOMERS_ARE_HELD_APART = "customers-are-held-apart"
SCHEMA_IS_RELEASED = "schema-is-as-released"
RULES = {
    SCHEMA_IS_RELEASED: "The tables, columns, sequences, functions, triggers, constraints and indexes are those of this release, unchanged, and no trigger, rule or column is added.",
    CUSTOMERS_ARE_HELD_APART: "Row-level security is on for every table of customers' data, and forced where there is one server, with its policies and no others.",
    ROLES_HAVE_THEIR_RIGHTS: "Every role has the rights that are its own, and neither it nor everybody has any others.",
}


def _listed(names: Iterable[str]) -> Fragment:
    return each("'{name}'", names)


RIGHTS = (
    Check(
        "roles-are-bounded",
        "No role is a superuser, makes roles or databases or replicates; and but for the owner none owns or may make anything or is a member "
        "of another, nor passes row-level security, as those that have all rows do where customers are distributed over nodes.",
        compose(
            """
        SELECT rolname FROM pg_roles r
        WHERE rolname IN ({listed}) AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication)
           OR rolname IN ({acting}) AND (
               rolbypassrls AND (rolname = '{role_app}' OR NOT {has_extension})
               OR has_schema_privilege(r.oid, 'public', 'CREATE') OR has_database_privilege(r.oid, current_database(), 'CREATE')
               OR EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid)
               OR EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid)
               OR EXISTS (SELECT FROM pg_proc p WHERE p.proowner = r.oid))
        """,
            listed=_listed(Role),
            acting=_listed(ACTING),
            role_app=identifier(Role.APP),
            has_extension=HAS_EXTENSION,
        ),
    ),
    Check(
        "tables-have-one-owner",
        "Every table is owned by the role that migrated the database.",
        compose(
            """
        SELECT c.relname FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relname IN ({listed})
          AND c.relowner <> (SELECT relowner FROM pg_class WHERE oid = to_regclass('alembic_version'))
        """,
            listed=_listed(TABLES),
        ),
    ),
    Check(
        "triggers-are-on",
        "No trigger is switched off, for a table, or for the sessions of a database or login (session_replication_role).",
        compose(
            """
        SELECT c.relname || '/' || t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE t.tgenabled NOT IN ('O', 'A') AND c.relnamespace = 'public'::regnamespace
          AND c.relname IN ({listed})
        UNION ALL
        SELECT concat_ws(' ', 'session_replication_role', 'of ' || r.rolname, 'in ' || d.datname) FROM pg_db_role_setting s
        LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase
        WHERE s.setconfig && '{{session_replication_role=replica,session_replication_role=local}}'
          AND (s.setdatabase = 0 OR d.datname = current_database())
        UNION ALL
        SELECT 'session_replication_role' FROM pg_settings WHERE name = 'session_replication_role' AND reset_val <> 'origin' AND source = 'configuration file'
        """,
            listed=_listed(TABLES),
        ),
    ),
)

STAFF = (
    Check(
        "staff-roles-are-recorded",
        "The audit log shows that each active member of staff was invited, and was given the role they have.",
        "SELECT staff_unrecorded()",
    ),
    Check(
        "privacy-requests-are-done",
        "The audit log shows that each privacy request marked as done was finished. Each erasure has its receipt.",
        "SELECT privacy_requests_unrecorded()",
    ),
)


async def check_policies(connection: Connection) -> list[Finding]:
    """Compares row-level security with what is declared; returns each statement that would correct it."""
    return _findings(CUSTOMERS_ARE_HELD_APART, await policies_missing(connection))


async def check_schema(connection: Connection) -> list[Finding]:
    """Compares the schema with the one that this release creates."""
    return _findings(SCHEMA_IS_RELEASED, await schema_differences(connection))


async def check_rights(connection: Connection) -> list[Finding]:
    """Compares every role's rights with the declared ones. Reports missing rights only if `Role.OWNER` owns the schema."""
    found = await differences(connection)
    handed = await connection.fetchval(IS_OWNED_BY, Role.OWNER)
    # Before that, no role exists that could lack a right, and everybody may call functions, which is PostgreSQL's default.
    wrong = [f"not {right.grant}" for right in found.missing if handed]
    wrong += [right.grant for right in found.extra if handed or right.kind == "TABLE"]
    return _findings(ROLES_HAVE_THEIR_RIGHTS, wrong)


def _findings(check: str, wrong: Sequence[str]) -> list[Finding]:
    return [Finding(check, RULES[check], len(wrong), tuple(wrong[:SHOWN_IDS]))] if wrong else []
