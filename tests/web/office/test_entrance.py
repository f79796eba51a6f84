"""Getting into the back office: not before somebody was invited, by an invitation, with a second step, from the networks it is for."""

from __future__ import annotations

from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.office.conftest import add_staff, link_of, staff_in


def test_there_is_no_back_office_before_somebody_was_invited(start_service) -> None:
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


def test_a_member_is_in_with_their_second_step(service: Service) -> None:
    browser = staff_in(service, "owner")
    assert browser.get("/office").status_code == 200
    assert "Owner" in browser.text


def test_an_invitation_leads_to_a_password_and_a_second_step_before_anything_else(service: Service) -> None:
    staff_id = add_staff(service, "support", "new@largesse.example")
    service.sql("UPDATE staff SET totp = NULL, password = NULL WHERE id = $1 RETURNING 1", staff_id)
    browser, link = Browser(service), link_of(service, staff_id, "invitation")
    browser.get(link)
    assert browser.post(link, password="short").status_code == 422
    assert browser.post(link, password="a few good words").headers["location"] == "/office"
    assert browser.get("/office").headers["location"] == "/office/security"
    assert browser.get("/office/security").status_code == 200
    assert browser.get("/office/security/app").status_code == 200
