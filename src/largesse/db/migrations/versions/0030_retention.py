"""Recipients' data that goes by itself."""

from largesse.database.migrate import run_sql_beside

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
