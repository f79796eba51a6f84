"""The database: one pool of connections to PostgreSQL, and transactions on it."""

from largesse.database.orphans import end_orphans, end_orphans_for_ever
from largesse.database.pool import (
    DATABASE_AWAY,
    DATABASE_FAILED,
    Connection,
    Database,
    Row,
    connect_once,
    in_one_line,
)
from largesse.database.session import COMMANDS, REQUESTS, WORK, Limits

__all__ = [
    "COMMANDS",
    "DATABASE_AWAY",
    "DATABASE_FAILED",
    "REQUESTS",
    "WORK",
    "Connection",
    "Database",
    "Limits",
    "Row",
    "connect_once",
    "end_orphans",
    "end_orphans_for_ever",
    "in_one_line",
]
