"""Marks of what became of lines, and the head of their chain."""

from largesse.database.migrate import run_sql_beside

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
