"""Recipients' data that can go."""

from largesse.database.migrate import run_sql_beside

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
