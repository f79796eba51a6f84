"""Drafts."""

from largesse.database.migrate import run_sql_beside

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
