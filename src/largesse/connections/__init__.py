"""Connections of callers: how long each may take, how many there may be, and what is no HTTP at all."""

from largesse.connections.keeper import Keeper
from largesse.connections.limit import MAX_CONNECTIONS, connection_limit, files_wanted

__all__ = ["MAX_CONNECTIONS", "Keeper", "connection_limit", "files_wanted"]
