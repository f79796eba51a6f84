"""What roles may be given beyond what is theirs, and which check must find it."""

from __future__ import annotations

from tests.distributed import IS_DISTRIBUTED
from tests.verify.corruption import Corruption


def _c(check: str, ids: tuple[str, ...], sql: str) -> Corruption:
    return Corruption(sql, check, ids)


# Who owns the tables must be let through where rows move from node to node.
FORCED, OTHERWISE = ("NO FORCE", "FORCE") if IS_DISTRIBUTED else ("FORCE", "NO FORCE")

RIGHTS_CORRUPTIONS = (
    _c("roles-are-bounded", ("largesse_app",), "ALTER ROLE largesse_app CREATEDB"),
    _c("roles-are-bounded", ("largesse_owner",), "ALTER ROLE largesse_owner SUPERUSER"),
    _c("roles-are-bounded", ("largesse_worker",), "GRANT pg_execute_server_program TO largesse_worker"),
    _c(
        "roles-are-bounded",
        ("largesse_read",),
        "CREATE SCHEMA mine; CREATE TABLE mine.x (); ALTER TABLE mine.x OWNER TO largesse_read",
    ),
    _c("tables-have-one-owner", ("products",), "ALTER TABLE products OWNER TO pg_monitor"),
    _c("triggers-are-on", ("entries/entries_append_only",), "ALTER TABLE entries DISABLE TRIGGER entries_append_only"),
    _c(
        "schema-is-as-released",
        ("changed function refuse_change()", "missing trigger line_states.line_states_forwards"),
        "DROP TRIGGER line_states_forwards ON line_states; "
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
    ),
    _c(
        "roles-have-their-rights",
        ("GRANT DELETE ON TABLE entries TO largesse_app", "GRANT UPDATE (sealed) ON TABLE lines TO largesse_worker"),
        "GRANT DELETE ON entries TO largesse_app; GRANT UPDATE (sealed) ON lines TO largesse_worker",
    ),
    _c("roles-have-their-rights", ("GRANT SELECT ON TABLE users TO PUBLIC",), "GRANT SELECT ON users TO PUBLIC"),
    _c(
        "roles-have-their-rights",
        ("not GRANT INSERT ON TABLE orders TO largesse_app",),
        "REVOKE INSERT ON orders FROM largesse_app",
    ),
    _c(
        "customers-are-held-apart",
        (
            f"ALTER TABLE entries {FORCED} ROW LEVEL SECURITY",
            "ALTER TABLE lines ENABLE ROW LEVEL SECURITY",
            "DROP POLICY all_of_it ON orders",
        ),
        "CREATE POLICY all_of_it ON orders TO largesse_app USING (true); ALTER TABLE lines DISABLE ROW LEVEL SECURITY; "
        f"ALTER TABLE entries {OTHERWISE} ROW LEVEL SECURITY",
    ),
)
