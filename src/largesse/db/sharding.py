"""Citus: which tables are distributed over nodes, and how to distribute them. On a single server, nothing here has an effect.

    DISTRIBUTED   tables that orders and claims fill: by `customer_id`, all rows of a customer on one node
    REFERENCE     tables to which those refer, or that are read with them: a copy on every node
    the others    on the coordinator, as on any PostgreSQL server

`migrate` compares and distributes the missing ones, so it can be repeated. Only this module knows about Citus.
See docs/decisions/0046-customers-on-nodes.md.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import asyncpg
import msgspec

from largesse.base.errors import OperatorError
from largesse.db.fragments import NOTHING, Fragment, compose, identifier, placeholder

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

COLUMN = "customer_id"
DISTRIBUTED = (
    "accounts",  # this table is first, as the others are co-located with it
    "account_service_accounts",
    "account_users",
    "account_watchers",
    "account_watches",
    "budget_orders",
    "budget_people",
    "budget_periods",
    "budgets",
    "chain_openings",
    "code_readings",
    "daily_spending",
    "entries",
    "events",
    "follow_ups",
    "line_events",
    "line_messages",
    "line_states",
    "lines",
    "mail_jobs",
    "noted_anchors",
    "order_acts",
    "orders",
    "reminder_stops",
    "thank_you_notes",
    "transfers",
)
REFERENCE = ("clock", "currencies", "customers", "people", "service_accounts", "users")

# Tables whose changes normally need a key (migration `credentials`), but not on a cluster, as they are on every node.
NOT_GUARDED = ("people", "users")

# For every session. Passes a transaction's settings, its scope and its lock time-out, to the nodes.
# PostgreSQL without the extension ignores it.
SESSION_SETTINGS: Mapping[str, str] = {"citus.propagate_set_commands": "local"}
# For every session of a service. Citus hides shards in the system's catalogues, so the driver's first look-up of an array type takes seconds.
# Commands compare the catalogues with the expected objects, so they must not see shards.
SERVICE_SETTINGS: Mapping[str, str] = {"citus.override_table_visibility": "off"}
_IS_LOADED = "SELECT current_setting('citus.version', true) IS NOT NULL"
_NODES = """
    SELECT count(*) FILTER (WHERE shouldhaveshards) AS holding, count(*) FILTER (WHERE groupid = 0) AS coordinators
    FROM pg_dist_node WHERE isactive AND noderole = 'primary'
"""
# Nodes whose version of the extension differs from the coordinator's.
_OTHER_VERSIONS = """
    SELECT n.nodename || ':' || n.nodeport AS node, r.result AS version, o.extversion AS ours
    FROM run_command_on_all_nodes($$
        SELECT extversion || CASE WHEN current_setting('citus.version', true) IS NULL THEN ', not loaded' ELSE '' END
        FROM pg_extension WHERE extname = 'citus'
    $$) AS r
    JOIN pg_dist_node n USING (nodeid) JOIN pg_extension o ON o.extname = 'citus'
    WHERE r.success AND r.result <> o.extversion
    ORDER BY n.nodeid
"""
_ADD_MARK = "INSERT INTO distribution (one) VALUES (true) ON CONFLICT DO NOTHING"
_MARK = "distribution"
_MARK_METADATA = compose("SELECT citus_add_local_table_to_metadata('{mark}')", mark=identifier(_MARK))
_CUSTOMERS_BY_CODE = "SELECT DISTINCT customers_of_code($1::bigint[]) AS id"
_CUSTOMERS = "SELECT coalesce(array_agg(id), '{}') FROM customers"
_FIND_TABLE = "SELECT to_regclass($1)"
_HAS_MARK = "SELECT EXISTS (SELECT FROM distribution)"


def at_node(column: str, customer: str) -> Fragment:
    """Returns a condition that sends a statement to the node of one customer. Returns an empty fragment if `customer` is empty.

    `column` belongs to a distributed table, and `customer` is a placeholder. The rest of the statement implies the condition, but Citus needs
    it before it reads any row.
    """
    if not customer:
        return NOTHING
    return compose("AND {column} = {customer}::int", column=identifier(column), customer=placeholder(customer))


def within(column: str, customers: str, given: Sequence[int] | None) -> Fragment:
    """Returns a condition that limits a statement to an array of customers. If `given` is None, for all customers, returns an empty fragment.

    `customers` is a placeholder. If each table has this condition, and the customers share a shard group, the statement runs on their node,
    and may lock rows.
    """
    if given is None:
        return NOTHING
    return compose(
        "AND {column} = ANY({customers}::int[])", column=identifier(column), customers=placeholder(customers)
    )


def arguments(given: Sequence[int] | None) -> tuple[Sequence[int], ...]:
    """Returns the arguments for the placeholder of `within`: none if `given` is None."""
    return () if given is None else (given,)


# Citus commits in two phases if several servers have written, but it does not notice writes to the coordinator's own tables.
# This statement changes no row, but names a table that Citus knows. After it, the coordinator counts as a server that has written.
WRITE_ON_COORDINATOR = "UPDATE distribution SET since = since WHERE NOT one"

# The coordinator's errors if the connection to a node broke during a statement, and words in their texts.
LOST_NODE: tuple[type[asyncpg.PostgresError], ...] = (asyncpg.InternalServerError, asyncpg.PostgresIOError)
_LOST_NODE_WORDS = re.compile(r"connection|could not (receive|send) data|SSL SYSCALL|failed to COPY to shard")

HAS_EXTENSION = Fragment("EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')")
_IS_DISTRIBUTED = compose("SELECT {has_extension}", has_extension=HAS_EXTENSION)
# Messages for operators, with the statements that help.
_NO_CLUSTER = (
    "the database has the extension citus and no cluster: "
    "SELECT citus_set_coordinator_host('its own address'), then citus_add_node for each node"
)
_NO_NODES = "the coordinator has no nodes to keep customers on: SELECT citus_add_node('its address', 5432) for each"
_NO_EXTENSION = (
    "the tables of this database were distributed over nodes, and the extension citus is missing: give the address of "
    "the cluster's coordinator; where all rows are here, DELETE FROM distribution says that they are distributed no more"
)


async def is_distributed(session: Session) -> bool:
    """Returns whether the tables of the database are distributed over nodes."""
    has_extension: bool = await session.fetchval(_IS_DISTRIBUTED)
    return has_extension


def is_of_lost_node(error: asyncpg.PostgresError) -> bool:
    """Returns whether an error, one of LOST_NODE, means that a node was lost."""
    return _LOST_NODE_WORDS.search(str(error)) is not None


async def trouble(session: Session) -> str | None:
    """Returns what is wrong with the nodes and what to do. None if all is well, or on one server.

    A node that is down is not reported, as the customers on other nodes are not affected.
    """
    if await session.fetchval(_HAS_LOST_TABLES):
        return (
            "tables are missing, as after DROP EXTENSION citus, which drops those that were distributed over nodes: "
            "restore the coordinator from a backup; the nodes still keep the rows"
        )
    if not await is_distributed(session):
        has_table = await session.fetchval(_FIND_TABLE, _MARK) is not None  # an older release has no such table
        return _NO_EXTENSION if has_table and await session.fetchval(_HAS_MARK) else None
    if not await session.fetchval(_IS_LOADED):
        return (
            "the database has the extension citus, which its server has not loaded: put citus into "
            "shared_preload_libraries and restart the server"
        )
    row = await session.fetchrow(_NODES)
    assert row is not None, "an aggregate is one row"
    if not row["coordinators"]:
        return _NO_CLUSTER
    if not row["holding"]:
        return _NO_NODES
    others = await session.fetch(_OTHER_VERSIONS)
    if others:
        versions = ", ".join(f"{row['node']} has {row['version'] or 'none'}" for row in others)
        return (
            f"the coordinator has citus {others[0]['ours']}, and {versions}: bring all to one version, "
            "ALTER EXTENSION citus UPDATE on each, with citus in shared_preload_libraries"
        )
    return None


async def distribute(session: Session) -> list[str]:
    """Distributes the tables that are not yet distributed, and returns their names.

    Call it as the owner of the schema, outside any transaction, if `trouble` returns None.
    """
    if not await is_distributed(session):
        return []
    kinds = {row["name"]: row["kind"] for row in await session.fetch(_KINDS)}
    copied = [table for table in REFERENCE if kinds.get(table) != "reference"]
    distributed = [table for table in DISTRIBUTED if kinds.get(table) != "distributed"]
    held = await session.fetch(_KEYS_TO_COPIES, list(REFERENCE), [*DISTRIBUTED, *REFERENCE])
    has_mark = _MARK in kinds
    if not (copied or distributed or held) and has_mark:
        return []
    async with session.transaction():
        # Citus calls triggers on nodes unsafe. Ours are safe: they only refuse changes, row by row.
        await session.execute(
            "SET LOCAL citus.enable_unsafe_triggers = on; SET LOCAL citus.multi_shard_modify_mode = 'sequential';"
        )
        # Nodes do not know which transactions have called `open_credentials`.
        for table in NOT_GUARDED:
            await session.execute(f"DROP TRIGGER IF EXISTS guarded ON {table}")
        keys = await session.fetch(_KEYS_BETWEEN, list(DISTRIBUTED), distributed)
        # With a foreign key to a copied table, Citus would manage the coordinator's own table, and all statements about it.
        for key in (*held, *keys):
            await session.execute(f"ALTER TABLE {key['child']} DROP CONSTRAINT {key['name']}")
        await _distribute(session, copied, distributed)
        # A row on the coordinator cannot have a foreign key to a row on a node.
        for key in (key for key in keys if key["child"] in DISTRIBUTED):
            await session.execute(f"ALTER TABLE {key['child']} ADD CONSTRAINT {key['name']} {key['means']}")
        # Nodes compute the time themselves, from their own copy of the table `clock`.
        await session.execute(_CUSTOMERS_OF_CODE)
        await session.execute("ALTER FUNCTION clock_now() SET citus.allow_nested_distributed_execution = on")
        await session.execute(_ADD_MARK)
        if not has_mark:
            await session.execute(_MARK_METADATA)
    return [*copied, *distributed]


async def customers_of_code(session: Session, lookups: Sequence[int]) -> set[int]:
    """Returns the customers that have lines with these look-up numbers, for a distributed database. Queries each node separately.

    If it finds none and a node does not answer, raises the driver's error for a broken connection (one of DATABASE_AWAY).
    """
    rows = await session.fetch(_CUSTOMERS_BY_CODE, lookups)
    return {row["id"] for row in rows}


async def _distribute(session: Session, copied: Sequence[str], distributed: Sequence[str]) -> None:
    for table in copied:
        await session.execute(compose("SELECT create_reference_table('{table}')", table=identifier(table)))
    for table in distributed:
        colocate_with = "default" if table == DISTRIBUTED[0] else DISTRIBUTED[0]
        await session.execute(
            compose(
                "SELECT create_distributed_table('{table}', '{column}', colocate_with => '{colocate_with}')",
                table=identifier(table),
                column=identifier(COLUMN),
                colocate_with=identifier(colocate_with),
            )
        )


# The shard of each customer in $1, computed once for each.
_SHARDS_OF = compose(
    """
    customer_shards AS MATERIALIZED (
        SELECT id, get_shard_id_for_distribution_column('{distributed}', id) AS shardid FROM unnest($1::int[]) AS id)
""",
    distributed=identifier(DISTRIBUTED[0]),
)
_NODES_OF = compose(
    """
    WITH {shards_of}
    SELECT id, n.nodename, n.nodeport, n.groupid <> 0 AND n.metadatasynced AS is_reachable
    FROM customer_shards JOIN pg_dist_placement p USING (shardid)
    JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
    """,
    shards_of=_SHARDS_OF,
)
_SHARD_GROUPS = compose(
    """
    WITH {shards_of}
    SELECT p.groupid AS node, array_agg(id ORDER BY id) AS customers
    FROM customer_shards JOIN pg_dist_placement p USING (shardid) GROUP BY p.groupid, p.shardid ORDER BY p.shardid
    """,
    shards_of=_SHARDS_OF,
)


async def node_names(session: Session, customer_ids: Sequence[int]) -> dict[int, str]:
    """Returns the node of each of these customers, as host and port. Raises OperatorError on one server."""
    if not await is_distributed(session):
        raise OperatorError("this database has one server: no customers are distributed over nodes")
    rows = await session.fetch(_NODES_OF, customer_ids)
    return {row["id"]: f"{row['nodename']}:{row['nodeport']}" for row in rows}


async def node_addresses(session: Session, customer_ids: Sequence[int]) -> dict[int, tuple[str, int]]:
    """Returns host and port of each customer's node. Leaves out customers that only the coordinator reaches."""
    rows = await session.fetch(_NODES_OF, customer_ids)
    return {row["id"]: (row["nodename"], row["nodeport"]) for row in rows if row["is_reachable"]}


class ShardGroup(msgspec.Struct, frozen=True):
    """Customers whose rows are in the same shard of each table. A statement about only these goes to their node."""

    node: int
    customers: Sequence[int]


async def read_shard_groups(session: Session, customer_ids: Sequence[int] | None = None) -> list[ShardGroup]:
    """Returns the shard groups of these customers, or of all if None. For a distributed database."""
    if customer_ids is None:
        customer_ids = await session.fetchval(_CUSTOMERS)
    rows = await session.fetch(_SHARD_GROUPS, customer_ids)
    return [ShardGroup(row["node"], row["customers"]) for row in rows]


# Two tables of the same revision: `orders` is distributed, `api_keys` stays on the coordinator.
_HAS_LOST_TABLES = "SELECT to_regclass('orders') IS NULL AND to_regclass('api_keys') IS NOT NULL"
# Queries all shards of a node in one statement, by the names of the shards: a normal query over several nodes fails if one of them is down.
# Runs as the owner of the schema, as the customer is not known yet.
_CUSTOMERS_OF_CODE = """
    CREATE OR REPLACE FUNCTION customers_of_code(lookups bigint[]) RETURNS SETOF integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    DECLARE
        answer record;
        is_found boolean := false;
        away text;
    BEGIN
        FOR answer IN
            SELECT r.* FROM (
                SELECT array_agg(nodename) AS names, array_agg(nodeport) AS ports, array_agg(format(
                    'SELECT string_agg(customer_id::text, '','') FROM (%s) AS found', shards)) AS questions
                FROM (
                    SELECT n.nodename, n.nodeport, string_agg(format(
                        'SELECT customer_id FROM %s WHERE code_lookup = ANY (%L::bigint[])',
                        shard_name(s.logicalrelid, s.shardid), lookups), ' UNION ALL ') AS shards
                    FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
                    JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
                    WHERE s.logicalrelid = 'lines'::regclass GROUP BY n.nodename, n.nodeport) AS nodes
            ) AS asked, master_run_on_worker(names, ports, questions, true) AS r
        LOOP
            IF NOT answer.success THEN
                away := answer.node_name || ':' || answer.node_port;
            ELSIF answer.result <> '' THEN
                is_found := true;
                RETURN QUERY SELECT unnest(string_to_array(answer.result, ',')::integer[]);
            END IF;
        END LOOP;
        IF away IS NOT NULL AND NOT is_found THEN
            RAISE EXCEPTION 'the node % does not answer', away USING ERRCODE = 'connection_failure';
        END IF;
    END $$
"""
_KINDS = "SELECT table_name::text AS name, citus_table_type AS kind FROM citus_tables"
# The foreign keys from or to tables that are about to be distributed. They are dropped first, as both tables must be distributed.
_KEYS_BETWEEN = """
    SELECT conrelid::regclass::text AS child, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS means
    FROM pg_constraint
    WHERE contype = 'f' AND confrelid::regclass::text = ANY($1::text[])
      AND (conrelid::regclass::text = ANY($2::text[]) OR confrelid::regclass::text = ANY($2::text[]))
    ORDER BY conname
"""
# The foreign keys from the coordinator's own tables to copied tables.
_KEYS_TO_COPIES = """
    SELECT conrelid::regclass::text AS child, quote_ident(conname) AS name FROM pg_constraint
    WHERE contype = 'f' AND confrelid::regclass::text = ANY($1::text[]) AND conrelid::regclass::text <> ALL($2::text[])
    ORDER BY conname
"""
