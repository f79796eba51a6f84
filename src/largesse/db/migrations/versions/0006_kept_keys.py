"""Deleted API keys: their rows stay, without the hash."""

from largesse.database.migrate import run_sql_beside

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
