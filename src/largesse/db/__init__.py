"""PostgreSQL: the pool, the scope of each transaction, roles, policies, rights, migrations and the embedded server.

Only `sharding` knows about a distributed database.
"""
