"""A recipient corrects the address of a parcel that came back, until it is packed again."""

import pytest
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient, form_of
from tests.web.console.conftest import Browser
from tests.web.office.conftest import staff_in
from tests.web.office.test_goods import ADDRESS, service

__all__ = ["service"]

NEW = {**ADDRESS, "street_address": "2 Low Road"}


@pytest.fixture
def wade(service: Service) -> Browser:
    """In the warehouse."""
    return staff_in(service, "warehouse", "wade@largesse.example")


def given(service: Service) -> tuple[Recipient, str, str]:
    """A recipient who gave an address, the path of the gift, and the parcel's in the office."""
    recipient = Recipient(service)
    path = recipient.gift(service.send("gift", "hamper", codeQuantity=1).json()["codes"][0])
    assert correct(recipient, path, **ADDRESS) == 303
    return recipient, path, f"/office/parcels/{service.sql('SELECT max(id) AS id FROM shipments')[0]['id']}"


def correct(recipient: Recipient, path: str, **address: str) -> int:
    """Posts an address with the key of the page's form, or an old one; returns the status."""
    key = form_of(recipient.get(path)).get("key", "")
    return recipient.post(f"{path}/address", key=key, **address).status_code


def test_the_corrected_address_is_what_is_packed(service: Service, wade: Browser) -> None:
    recipient, path, here = given(service)
    wade.submit(here, f"{here}/send", carrier="DHL")
    assert "Is the address wrong?" not in recipient.get(path).text, "it is on its way"
    wade.submit(here, f"{here}/returned", reason="address")
    page = recipient.get(path).text
    assert "Is the address wrong?" in page
    assert "1 High Street</textarea>" in page, "the form has the address that is to be corrected"
    assert correct(recipient, path, **{**NEW, "postal_code": "nowhere"}) == 422
    assert correct(recipient, path, **NEW) == 303
    assert "You have corrected the address." in recipient.get(path).text
    assert "The recipient corrected it on" in wade.read(here)
    assert "to the corrected address" in wade.text
    wade.submit(here, f"{here}/again")
    assert correct(recipient, path, **{**NEW, "street_address": "3 Low Road"}) == 303, "it is not packed yet"
    packed = wade.submit("/office/parcels", "/office/parcels/pack", parcel=here.rpartition("/")[2], to="labels")
    assert "3 Low Road" in packed.text
    assert "Is the address wrong?" not in recipient.get(path).text, "it is packed"
    wade.submit(here, f"{here}/send", carrier="UPS")
    assert "You have corrected the address." not in recipient.get(path).text


def test_an_old_form_changes_no_parcel_that_is_packed_or_erased(service: Service, wade: Browser) -> None:
    recipient, path, here = given(service)
    wade.submit(here, f"{here}/send", carrier="DHL")
    wade.submit(here, f"{here}/returned", reason="address")
    key = form_of(recipient.get(path))["key"]
    sealed = "SELECT sealed_address, requested_at FROM shipments"
    before = service.sql(sealed)
    service.sql("UPDATE shipments SET again_at = clock_now(), exported_at = clock_now()")
    assert recipient.post(f"{path}/address", key=key, **NEW).status_code == 303
    assert service.sql(sealed) == before
    service.sql("UPDATE shipments SET sealed_address = NULL, again_at = NULL")
    assert recipient.post(f"{path}/address", key=key, **NEW).status_code == 303
    assert service.sql("SELECT sealed_address FROM shipments")[0][0] is None
