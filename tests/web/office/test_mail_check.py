"""What the overview of the back office says of mail, while a mail server is set."""

import pytest
from tests.web.api.conftest import RICH_WORLD, Service, ServiceFactory
from tests.web.office.conftest import SignIn
from tests.web.office.test_deliveries import bounce


@pytest.fixture(scope="module")
def service(start_service: ServiceFactory) -> Service:
    """One with a mail server; nothing works here that would send."""
    return start_service(RICH_WORLD, smtp_url="smtp://127.0.0.1:1")


def test_mail_that_waits_for_a_server_that_fails_is_not_well(service: Service, sign_in: SignIn) -> None:
    """It is put off, so that no queue is behind."""
    owner = sign_in("owner")
    assert "Mail Well A mail server is set" in owner.read("/office")
    bounce(service, "kim@example.com", "421 4.3.2 going down", "held")
    service.sql("UPDATE messages SET state = 'pending', fault = 'server', rank_at = now() + interval '1 hour'")
    assert "Mail Failing 1 mail waits for the mail server" in owner.read("/office")
    service.sql("UPDATE messages SET due_at = '2031-02-03 16:45Z'")
    listed = owner.read("/office/deliveries?state=pending")
    assert "Tried again later" in listed
    assert "3 Feb 2031, 16:45" in listed, "the next try"
    service.sql("UPDATE messages SET fault = 'service'")
    page = owner.read("/office")
    assert "1 mail cannot be written" in page
    assert "Mail Well A mail server is set" in page
    service.sql("UPDATE messages SET state = 'sent', fault = NULL, finished_at = now()")
    assert "Mail Well A mail server is set" in owner.read("/office")
