"""Orders whose recipients were corrected or erased: `verify` tells that from what was changed from outside."""

from __future__ import annotations

import json

import pytest
from tests.privacy.conftest import Run
from tests.web.api.conftest import Service

SAM = "sam@acme.example"


def broken(run: Run) -> list[str]:
    """What `verify` finds; nothing but entries."""
    findings = json.loads(run("verify", "--json").stdout)["findings"]
    assert {finding["check"] for finding in findings} <= {"entries-are-chained"}
    return [one for finding in findings for one in finding["ids"]]


@pytest.mark.slow
def test_what_was_erased_is_no_finding_and_what_was_diverted_is(service: Service, run: Run) -> None:
    recipients = [{"email": SAM, "name": "Sam"}, {"email": "x@acme.example"}]
    for _ in range(2):
        assert service.send("gift", "coffee", value=5, recipients=recipients, message=f"For {SAM}").status_code == 200
    one, other = (row[0] for row in service.sql("SELECT id FROM orders ORDER BY id DESC LIMIT 2"))
    forge = "UPDATE lines SET recipient_email = $2 WHERE order_id = $1 AND number = 2"
    assert broken(run) == []
    service.sql(forge, other, "eve@acme.example")
    (found,) = broken(run)
    # What takes out other data of the order does not make the forgery good.
    assert run("privacy", "erase", SAM).exit_code == 0
    assert broken(run) == [found]
    service.sql(forge, one, "eve@acme.example")
    assert len(broken(run)) == 2
    service.sql(forge, one, "x@acme.example")
    assert broken(run) == [found]
