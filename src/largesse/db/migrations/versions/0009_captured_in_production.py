"""Mail that production captured before it could be held counts as given up."""

from largesse.database.migrate import run_sql_beside

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
