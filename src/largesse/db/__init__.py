"""PostgreSQL: pool, scope, roles, policies, rights, migrations, the embedded server. Only `sharding` knows about a distributed database."""
