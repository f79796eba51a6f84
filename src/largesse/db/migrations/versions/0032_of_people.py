"""Templates and collections that people make."""

from largesse.database.migrate import run_sql_beside

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
