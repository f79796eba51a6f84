"""A transaction that did not say for whom it acts: an error in the log, a 500 for the caller, and no row."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from largesse.customers.principal import Principal
from largesse.db.scope import LOOKUP
from largesse.orders import placer


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/users"), ("GET", "/funding-accounts"), ("GET", "/templates"), ("POST", "/send/gift")]
)
def test_what_is_done_for_nobody_is_an_error_and_no_row(
    service, problem, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    before = service.state()
    # As it would be, had somebody written `database.transaction(LOOKUP)` in the room of this path.
    monkeypatch.setattr(Principal, "scope", LOOKUP)
    monkeypatch.setattr(placer, "scope_of_orders", lambda _: LOOKUP)
    body = service.body("gift", "coffee", value=5) if method == "POST" else None
    with capture_logs() as logged:
        response = service.client("hr").request(method, path, json=body)
    detail = problem(response, 500, "internal-error")
    assert "scope" not in detail
    [line] = [line for line in logged if line["event"] != "request_refused"]
    assert (line["event"], line["log_level"]) == ("request_failed", "error")
    # Behind PgBouncer there is no setting at all until a transaction says it.
    told = str(line["exc_info"])
    assert "no scope was said" in told or 'parameter "largesse.customers"' in told or 'array literal: ""' in told
    assert service.state() == before
    monkeypatch.undo()
    assert service.client("hr").request(method, path, json=body).status_code == 200
