"""The first page of the back office: it says what is there, and links only to pages that the member may open."""

import re

import pytest
from tests.web.api.conftest import Service, ServiceFactory
from tests.web.office.conftest import staff_in

from largesse.staff.model import STAFF_ROLES
from largesse.web.office.routes import ROUTES


def test_it_counts_what_waits_and_sees_processes(service: Service) -> None:
    owner = staff_in(service, "owner")
    owner.get("/office")
    assert re.search(r"Processes Well [1-9]\d* connections? to the database", owner.text)
    owner.says("No mail server is set: mail is held", "Nothing waits for you.")
    acme = service.ids["customers"]["acme"]
    account = service.ids["funding_accounts"]["gbp"]
    service.sql(
        "INSERT INTO top_ups (customer_id, environment, account_id, reference, amount_minor, requested_by, requested_at, expires_at)"
        " VALUES ($1, 'production', $2, 'RF18TEST', 100, $3, now(), now() + interval '1 day')"
        " RETURNING 1",
        acme,
        account,
        service.sql("SELECT min(id) FROM users WHERE customer_id = $1", acme)[0][0],
    )
    assert "1 top-up waits for its payment" in owner.read("/office")
    assert ">Show<" in owner.page.text


def test_pages_lead_to_the_guide_where_it_is_published(service: Service, start_service: ServiceFactory) -> None:
    published = staff_in(start_service(like=service, docs_url="https://docs.example.com"), "owner")
    published.get("/office/stock")
    assert "https://docs.example.com/docs/office.html" in published.links
    published.get("/office")
    assert "https://docs.example.com/docs/office.html" in published.links


@pytest.mark.long
def test_it_leads_nowhere_where_a_role_may_not_go(service: Service) -> None:
    for role in STAFF_ROLES:
        browser = staff_in(service, role)
        browser.get("/office")
        own = {route.path for route in ROUTES if route.method == "GET" and role in route.roles}
        links = {link.partition("?")[0].partition("#")[0] for link in browser.links if link.startswith("/office")}
        assert {link for link in links if "/assets/" not in link} <= own, role
