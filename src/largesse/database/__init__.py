"""The database: one pool of connections to PostgreSQL, and transactions on it."""

from largesse.database.pool import (
    DATABASE_AWAY,
    DATABASE_FAILED,
    Connection,
    Database,
    Row,
    connect_once,
)

__all__ = ["DATABASE_AWAY", "DATABASE_FAILED", "Connection", "Database", "Row", "connect_once"]
