"""The tables, columns, sequences, functions, triggers, constraints, indexes and rules that the migrations of this release make.

`manifest.txt` lists them, each with a digest of its definition. A test compares the list with the migrations, and `largesse verify` the
database with the list.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from largesse.db.rights import TABLES
from largesse.db.sharding import NOT_GUARDED, Session, is_distributed

MANIFEST = Path(__file__).with_name("manifest.txt")
_DIGITS = 16
# The kinds of objects that an administrator may add. Objects of other kinds would change what is written.
_MAY_BE_MORE = ("function", "index", "sequence")
# If customers are distributed over nodes, there are no foreign keys between tables of different kinds.
_HELD_ON_CLUSTER = ("function", "trigger")
_NOT_ON_CLUSTER = frozenset(f"trigger {table}.guarded" for table in NOT_GUARDED)


async def read_manifest(session: Session) -> dict[str, str]:
    """Returns the objects of the schema by kind and name, each with the digest of its definition."""
    return {
        row["name"]: sha256(row["definition"].encode()).hexdigest()[:_DIGITS]
        for row in await session.fetch(_DEFINITIONS, list(TABLES))
    }


def released_manifest() -> dict[str, str]:
    """Returns the objects of this release, as `read_manifest` does."""
    lines = MANIFEST.read_text("utf-8").splitlines()
    return {name: digest for name, _, digest in (line.rpartition(" ") for line in lines)}


def write_manifest(there: dict[str, str]) -> None:
    """Writes the list of this release, after a migration was added."""
    MANIFEST.write_text("".join(f"{name} {digest}\n" for name, digest in sorted(there.items())), "utf-8")


async def schema_differences(session: Session) -> Sequence[str]:
    """Returns how the schema differs from this release's, such as `missing trigger entries.entries_append_only`."""
    there, released = await read_manifest(session), released_manifest()
    if await is_distributed(session):
        there, released = (
            {
                name: digest
                for name, digest in one.items()
                if name.startswith(_HELD_ON_CLUSTER) and name not in _NOT_ON_CLUSTER
            }
            for one in (there, released)
        )
    found = [f"missing {name}" for name in released.keys() - there.keys()]
    found += [f"changed {name}" for name in released.keys() & there.keys() if released[name] != there[name]]
    more = there.keys() - released.keys()
    found += [f"unknown {name}" for name in more if not name.startswith(_MAY_BE_MORE)]
    return sorted(found)


# Nullable columns without a default are left out: they have nothing that could be lost unnoticed.
# On a cluster, functions have additional settings, which do not change what they do.
_DEFINITIONS = """
    WITH ours AS (
        SELECT oid, relname, relpersistence FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname = ANY($1::text[]))
    SELECT 'function ' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' AS name,
           concat_ws('|', pg_get_function_result(p.oid), l.lanname, p.provolatile, p.prosecdef, p.proisstrict, p.proowner = (
               SELECT relowner FROM pg_class WHERE oid = to_regclass('alembic_version')), (
               SELECT string_agg(setting, ',' ORDER BY setting) FROM unnest(p.proconfig) AS setting
               WHERE setting NOT LIKE 'citus.%'), p.prosrc) AS definition
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    UNION ALL
    SELECT 'trigger ' || o.relname || '.' || t.tgname, pg_get_triggerdef(t.oid)
    FROM pg_trigger t JOIN ours o ON o.oid = t.tgrelid WHERE NOT t.tgisinternal
    UNION ALL
    SELECT 'constraint ' || o.relname || '.' || c.conname, pg_get_constraintdef(c.oid)
    FROM pg_constraint c JOIN ours o ON o.oid = c.conrelid WHERE c.contype IN ('c', 'f', 'p', 'u', 'x')
    UNION ALL
    SELECT 'index ' || o.relname || '.' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN ours o ON o.oid = i.indrelid
    UNION ALL
    SELECT 'sequence ' || c.relname, concat_ws('|', s.seqtypid::regtype, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle)
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid AND c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'table ' || o.relname, o.relpersistence::text FROM ours o
    UNION ALL
    SELECT 'column ' || o.relname || '.' || a.attname, concat_ws('|', format_type(a.atttypid, a.atttypmod), a.attnotnull,
        a.attidentity, a.attgenerated, a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid))
    FROM ours o JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = o.oid AND d.adnum = a.attnum
    WHERE a.attnotnull OR d.oid IS NOT NULL
    UNION ALL
    SELECT 'rule ' || o.relname || '.' || r.rulename, pg_get_ruledef(r.oid) FROM pg_rewrite r JOIN ours o ON o.oid = r.ev_class
"""
