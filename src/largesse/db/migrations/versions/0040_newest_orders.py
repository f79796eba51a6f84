"""The list of newest orders, under row-level security."""

from largesse.database.migrate import run_sql_beside

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
