"""Pictures of products, and what is to be said of them."""

from largesse.database.migrate import run_sql_beside

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
