"""The index of failing lanes."""

from largesse.database.migrate import run_sql_beside

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
