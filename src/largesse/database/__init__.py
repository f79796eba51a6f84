"""The database: one pool of connections to PostgreSQL, and transactions on it.

`pool` is what all rooms use: `Database`, and which errors mean that the database is away. `scope` says for whom each
transaction acts. `session` opens its connections, with
the limits on how long each side waits for the other; `orphans` ends sessions whose process is gone; `metrics` tells how the
pool is used, `disk` whether there is room. `migrate` brings the schema up to date: one SQL file for each step in `migrations/versions`.

`roles` are those as whom processes act, `rights` what each may do with which table, `policies` which rows of it the serving process has, and
`role_limits` how many sessions and how long, and `granting` makes all of it so. `manifest` lists the functions, triggers and constraints that the migrations make. `distribution`
says which tables are spread over nodes, where there are any, and spreads them; `together` runs as one statement what is several there, `nodes` opens sessions where a customer lives,
`inserting` writes rows there, and `rounds` has work done at one node after the other.

`planning` has statements planned otherwise than the planner would, where it knows less than we do.

`saving` brings the rows of any one table in line with a list, for rooms that take world files.

The embedded server is apart: `embedded` shares one among all processes of a data directory, `cluster` makes, starts and stops
it, `postmaster` knows of a running one from outside, `launch` runs its programs as another user, `passwords` are those of its roles.
"""

from largesse.database.distribution import (
    arguments,
    at_node,
    customers_of_code,
    within,
)
from largesse.database.inserting import insert
from largesse.database.nodes import Nodes
from largesse.database.orphans import end_orphans, end_orphans_for_ever
from largesse.database.planning import plan_by_index, planned_at_once
from largesse.database.pool import (
    DATABASE_AWAY,
    DATABASE_FAILED,
    OUT_OF_RESOURCES,
    Connection,
    Database,
    ReadOnly,
    Row,
    act_for,
    beside_of,
    commit_as_one,
    connect_once,
    credentials_key,
    in_one_line,
    is_spread,
    open_credentials,
    scope_of,
)
from largesse.database.roles import Role
from largesse.database.rounds import Customers, Rounds, places, read_at_homes
from largesse.database.scope import LOOKUP, OPERATOR, WORKER, Scope, for_customer, for_customers
from largesse.database.session import COMMANDS, REQUESTS, WORK, Limits
from largesse.database.together import Part, fetch_together

__all__ = [
    "COMMANDS",
    "DATABASE_AWAY",
    "DATABASE_FAILED",
    "LOOKUP",
    "OPERATOR",
    "OUT_OF_RESOURCES",
    "REQUESTS",
    "WORK",
    "WORKER",
    "Connection",
    "Customers",
    "Database",
    "Limits",
    "Nodes",
    "Part",
    "ReadOnly",
    "Role",
    "Rounds",
    "Row",
    "Scope",
    "act_for",
    "arguments",
    "at_node",
    "beside_of",
    "commit_as_one",
    "connect_once",
    "credentials_key",
    "customers_of_code",
    "end_orphans",
    "end_orphans_for_ever",
    "fetch_together",
    "for_customer",
    "for_customers",
    "in_one_line",
    "insert",
    "is_spread",
    "open_credentials",
    "places",
    "plan_by_index",
    "planned_at_once",
    "read_at_homes",
    "scope_of",
    "within",
]
