"""Mail of production is held, not captured, where no mail server is set."""

from largesse.database.migrate import run_sql_beside

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
