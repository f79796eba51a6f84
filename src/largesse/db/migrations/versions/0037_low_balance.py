"""Who is told when an account holds little."""

from largesse.database.migrate import run_sql_beside

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
