"""What people list, search and add up."""

from largesse.database.migrate import run_sql_beside

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
