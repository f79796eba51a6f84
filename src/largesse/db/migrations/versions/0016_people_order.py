"""Orders of people."""

from largesse.database.migrate import run_sql_beside

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
