"""Keys and service accounts that may do less."""

from largesse.database.migrate import run_sql_beside

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
