"""There is no back office before somebody was invited: every address answers as one that there is none of."""

from __future__ import annotations

from tests.web.api.conftest import ServiceFactory
from tests.web.console.conftest import Browser
from tests.web.office.conftest import add_staff


def test_there_is_no_back_office_before_somebody_was_invited(start_service: ServiceFactory) -> None:
    service = start_service()
    browser = Browser(service)
    nowhere = browser.get("/no-such-page")
    for path in ("/office", "/office/sign-in", "/office/assets/office.css", "/office/link/x", "/office/nothing"):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, nowhere.headers["content-type"])
        assert answer.json()["detail"] == nowhere.json()["detail"]
        assert "set-cookie" not in answer.headers
    add_staff(service, "owner")
    assert browser.get("/office/sign-in").status_code == 200
