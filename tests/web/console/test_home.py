"""The first page: what accounts held lately, drawn as a line and said in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from tests.web.api.conftest import Service, on_database
from tests.web.console.conftest import Browser

from largesse.ledger.statements import DAYS, read_history


@pytest.fixture
def later(service: Service) -> Iterator[Callable[[int], None]]:
    """`later(days)`: it is so many days after now."""
    yield lambda days: service.sql("UPDATE clock SET ahead_by = make_interval(days => $1)", days) and None
    service.sql("UPDATE clock SET ahead_by = '0'")


def test_balances_have_a_line_of_the_last_days(
    service: Service, later: Callable[[int], None], sign_in: Callable[[str], Browser]
) -> None:
    team, sales = (service.ids["funding_accounts"][name] for name in ("team", "sales"))
    for days, value in ((10, 25), (20, 10), (20, 10)):
        later(days)
        assert service.send("gift", "coffee", account="team", value=value).status_code == 200
    later(25)
    history = on_database(service.database_url, lambda connection: read_history(connection, 1, [team, sales, 999]))
    assert DAYS == 30
    # The file was loaded 25 days ago: before there was nothing.
    assert history[team] == [0] * 2 + [5000] * 5 + [2500] * 5 + [500] * 3
    assert history[sales] == [0] * 2 + [2000] * 13
    assert history[999] == [0] * 15
    ada = sign_in("ada@acme.example")
    page = ada.get("/app").text
    drawn = dict(re.findall(r"<title>([^<]+)</title><desc>([^<]+)</desc>", page))
    assert drawn["Acme float"] == "In the last 30 days between £0.00 and £1,000,000.00"
    assert "Test float" not in page
    cem = sign_in("cem@acme.example")
    assert "People team" not in cem.get("/app").text
    assert 'class="line"' in cem.page.text
