"""The first page of the back office."""

import pytest
from tests.web.api.conftest import Service
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


def test_a_new_installation_has_first_steps_until_all_are_done(service: Service, sign_in: SignIn) -> None:
    owner = sign_in("owner")
    service.sql("UPDATE staff SET is_active = email = 'owner@largesse.example'")
    assert "First steps 2 of 3 done" in owner.read("/office")
    assert 'href="/office/staff">Start' in owner.get("/office").text
    assert "First steps" not in sign_in("catalogue").read("/office"), "nothing is left for them"
    service.sql("UPDATE staff SET is_active = email = 'owner@largesse.example'")
    service.sql("UPDATE customers SET created_at = now() - interval '31 days'")
    assert "First steps" not in owner.read("/office")
    service.sql("UPDATE customers SET created_at = now()")
