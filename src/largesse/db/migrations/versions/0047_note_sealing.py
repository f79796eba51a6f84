"""Lets processes note the master key that they encrypt under, without the right to change master keys."""

from largesse.database.migrate import run_sql_beside

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
