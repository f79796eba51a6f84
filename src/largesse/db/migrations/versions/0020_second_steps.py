"""A second step of signing in."""

from largesse.database.migrate import run_sql_beside

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
