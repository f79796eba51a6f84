"""Passkeys."""

from largesse.database.migrate import run_sql_beside

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
