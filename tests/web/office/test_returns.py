"""Mail to recipients whose parcel came back."""

import re
from urllib.parse import urlsplit

from tests.web.claim.conftest import Recipient
from tests.web.console.conftest import Browser
from tests.web.office.test_goods import Service, service, wade, wait_to_be_sent

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.mail.letter import Letter
from largesse.mail.messages import take

__all__ = ["service", "wade"]


def test_each_return_is_mailed_once_with_the_link_to_the_page_that_corrects_the_address(
    service: Service, wade: Browser
) -> None:
    [parcel] = wait_to_be_sent(service, 1)
    here = f"/office/parcels/{parcel}"
    for number in range(2):
        wade.submit(here, f"{here}/again")
        wade.submit(here, f"{here}/send", carrier="DHL", tracking_number=f"D{number}")
        assert wade.submit(here, f"{here}/returned", reason="address").status_code == 303
        assert wade.submit(here, f"{here}/returned", reason="address").status_code == 422, "it is back already"
    mails = service.sql(
        "SELECT kind, state FROM messages WHERE kind <> 'gift' AND order_id = (SELECT order_id FROM shipments WHERE id = $1) ORDER BY id",
        parcel,
    )
    assert [tuple(one) for one in mails] == [
        ("shipped", "cancelled"),
        ("returned", "cancelled"),
        ("shipped_2", "cancelled"),
        ("returned_2", "pending"),
    ]

    async def read_letter(database: Database, vault: Vault) -> Letter:
        async with database.transaction(OPERATOR) as connection:
            taken = await take(connection, 1000, vault, lambda _: "https://gifts.example.com")
            return next(one.letter for one in taken if one.letter.kind == "returned_2")

    letter = service.on_pool(read_letter)
    assert letter.email == "sam@example.com"
    recipient, [code] = Recipient(service), letter.codes
    again = recipient.post(urlsplit(code.link).path, pin=code.pin)
    page = recipient.get(re.findall(r'href="([^"]*/gift/[^"]*)"', again.text)[0]).text
    assert "Is the address wrong?" in page
