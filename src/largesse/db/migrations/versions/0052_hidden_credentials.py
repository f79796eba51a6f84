"""What is kept of passwords and second steps is told to who has a key of the master key alone."""

from largesse.database.migrate import run_sql_beside

revision = "0052"
down_revision = "0051"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
