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
