"""The first page of the back office."""

import pytest
from tests.web.office.conftest import SignIn

from largesse.db.pool import Connection
from largesse.staff.store import Days, read_days
from largesse.web.office import overview


def test_todays_figures_of_all_customers_are_not_read_one_by_one(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 100,000 customers, each group of each was looked up in an index, which read 320,000 blocks for a page."""
    planned = []

    async def read(connection: Connection) -> Days:
        planned.append(await connection.fetchval("SHOW enable_hashjoin"))
        return await read_days(connection)

    monkeypatch.setattr(overview, "read_days", read)
    assert "Orders today" in sign_in("owner").get("/office").text
    assert planned == ["on"]
