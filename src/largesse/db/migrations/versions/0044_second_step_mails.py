"""Word to people of what has changed about their second step."""

from largesse.database.migrate import run_sql_beside

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
