"""Settings that the demo changes in its own database while it makes its history: the clock of `clock_now()`, and the wait for the disk."""

from datetime import timedelta

from largesse.db.pool import Connection

_MOVE = "UPDATE clock SET ahead_by = $1"
_DATABASE = "SELECT quote_ident(current_database())"


async def move_clock(connection: Connection, ahead_by: timedelta) -> None:
    """Sets how far `clock_now()` is ahead of the server's time, or behind it if negative. Only the owner of the tables may do this."""
    await connection.execute(_MOVE, ahead_by)


async def wait_for_disk(connection: Connection, *, waits: bool) -> None:
    """Sets whether a COMMIT of new sessions waits for the disk. If not, a crash loses the last transactions, and nothing else."""
    name = await connection.fetchval(_DATABASE)
    change = "RESET synchronous_commit" if waits else "SET synchronous_commit = off"
    await connection.execute(f"ALTER DATABASE {name} {change}")
