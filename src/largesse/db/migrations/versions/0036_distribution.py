"""Whether tables are spread over nodes."""

from largesse.database.migrate import run_sql_beside

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
