"""What becomes of a line: claims, voucher numbers, shipments, and the limits on guessing."""

from largesse.database.migrate import run_sql_beside

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Runs the SQL file of the same name."""
    run_sql_beside(__file__)
