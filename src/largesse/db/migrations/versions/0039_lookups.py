"""What is looked up before it is known for whom."""

from largesse.database.migrate import run_sql_beside

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
