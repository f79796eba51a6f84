"""The service of tests/web/api, and members of staff who use the back office without a browser."""

from typing import Any

import pytest
from tests.web.api.conftest import Service, own_service, service, staging, start_service
from tests.web.console.conftest import Browser, SignIn

from largesse.customers.second_step import new_recovery_codes
from largesse.staff.sign_in import new_link
from largesse.staff.store import SIGN_IN

__all__ = ["own_service", "service", "staging", "start_service"]

_ADD = """
    INSERT INTO staff (email, email_key, name, role, password, totp) VALUES ($1, $1, $2, $3, 'none', '\\x00')
    ON CONFLICT (email_key) DO UPDATE
    SET role = excluded.role, is_active = true, password = coalesce(staff.password, excluded.password), totp = coalesce(staff.totp, excluded.totp)
    RETURNING id
"""


def add_staff(service: Service, role: str, email: str | None = None) -> int:
    """The id of a member of staff with that role, who has a second step, also if another test took it away: tests run in any order."""

    async def add(connection: Any) -> int:
        address = email or f"{role}@largesse.example"
        return int(await connection.fetchval(_ADD, address, role.capitalize(), role))

    return int(service.ask(add))


def link_of(service: Service, staff_id: int, kind: str = "sign_in") -> str:
    """The path of a fresh link for a member of staff."""
    return f"/office/link/{service.ask(lambda connection: new_link(connection, kind, staff_id))}"


def recovery_code(service: Service, staff_id: int) -> str:
    """A code by which a member of staff shows their second step once."""
    return str(service.ask(lambda connection: new_recovery_codes(connection, staff_id, SIGN_IN))[0])


def staff_in(service: Service, role: str, email: str | None = None) -> Browser:
    """The browser of a member of staff with that role, who is signed in with their second step."""
    staff_id = add_staff(service, role, email)
    browser, link = Browser(service), link_of(service, staff_id)
    browser.get(link)
    assert browser.post(link).headers["location"] == "/office"
    browser.get("/office/second-step")
    entered = browser.post("/office/second-step", code=recovery_code(service, staff_id), next="/office")
    assert entered.headers["location"] == "/office"
    return browser


@pytest.fixture
def sign_in(service: Service) -> SignIn:
    """`sign_in("owner")`: the browser of a member of staff with that role, signed in."""
    return lambda role: staff_in(service, role)


def number_of(service: Service, customer: str) -> int:
    """The id of a customer."""
    return int(service.ids["customers"][customer])


def mail_job(service: Service, reference: str) -> Any:
    """Takes the mail of an order from the worker. Returns the row of its job."""
    [job] = service.sql(
        "UPDATE mail_jobs j SET fanned_out_at = now() FROM orders o"
        " WHERE o.customer_id = j.customer_id AND o.id = j.order_id AND o.reference = $1 RETURNING j.*",
        reference,
    )
    return job
