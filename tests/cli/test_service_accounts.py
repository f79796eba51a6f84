"""The commands that list service accounts and limit what they may order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused

LIMIT = ("service-accounts", "limit", "acme/hr-bot", "--currency")


def limits(run: Run) -> list[tuple[Any, ...]]:
    listed = json.loads(run("service-accounts", "list", "--customer", "acme", "--json").stdout)
    return [(one["key"], one["currency"], one["largest_order"], one["daily"]) for one in listed]


def test_limits_are_set_listed_and_taken_away(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert limits(run) == [("hr-bot", None, None, None)]
    done = run(*LIMIT, "gbp", "--largest-order", "100", "--daily", "250.50")
    assert done.stdout == "acme/hr-bot may order £100.00 at once and £250.50 a day.\n"
    run(*LIMIT, "JPY", "--daily", "10000")
    assert limits(run) == [("hr-bot", "GBP", 100.0, 250.5), ("hr-bot", "JPY", None, 10000)]
    done = run(*LIMIT, "GBP", "--largest-order", "none")
    assert done.stdout == "acme/hr-bot may order any amount of GBP at once and £250.50 a day.\n"
    run(*LIMIT, "GBP", "--daily", "none")
    assert limits(run) == [("hr-bot", "JPY", None, 10000)]
    run(*LIMIT, "JPY", "--daily", "none")
    assert limits(run) == [("hr-bot", None, None, None)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("acme/hr-bot", "--currency", "GBP"), "--largest-order or --daily"),
        (("acme", "--currency", "GBP", "--daily", "1"), "CUSTOMER/KEY"),
        (("acme/crm", "--currency", "GBP", "--daily", "1"), "no service account 'crm'"),
        (("nobody/hr-bot", "--currency", "GBP", "--daily", "1"), "no service account 'hr-bot'"),
        (("acme/hr-bot", "--currency", "XXX", "--daily", "1"), "no currency 'XXX'"),
        (("acme/hr-bot", "--currency", "GBP", "--daily", "1.005"), "--daily"),
        (("acme/hr-bot", "--currency", "JPY", "--daily", "0.5"), "--daily"),
        (("acme/hr-bot", "--currency", "GBP", "--daily", "0"), "--daily must be more than 0"),
        (("acme/hr-bot", "--currency", "GBP", "--largest-order", "much"), "--largest-order must be a number"),
    ],
)
def test_what_is_refused(
    run: Run, database: str, loaded: dict[str, Any], arguments: tuple[str, ...], said: str
) -> None:
    assert_refused(run("service-accounts", "limit", *arguments), said)
    assert limits(run) == [("hr-bot", None, None, None)]
