"""Stock and parcels in the back office."""

import asyncio
import re
from datetime import UTC, datetime

import pytest
from tests.chained import actor_on
from tests.web.api.conftest import Service, on_database
from tests.web.claim.conftest import Recipient, form_of
from tests.web.console.conftest import Browser, signed_in
from tests.web.office.conftest import staff_in

from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.fulfilment.shipments import PackedParcel, Sent, send_parcels
from largesse.fulfilment.tasks import erase_addresses
from largesse.lines.codes import claim_link, open_code
from largesse.mail.letter import Letter
from largesse.mail.messages import take

ADDRESS = {"name": "Sam Doe", "street_address": "1 High Street", "city": "Leeds", "postal_code": "LS1 4DY"}


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: the back office counts what waits of all orders."""
    return own_service


@pytest.fixture
def wade(service: Service) -> Browser:
    """In the warehouse."""
    return staff_in(service, "warehouse", "wade@largesse.example")


def wait_to_be_sent(service: Service, count: int) -> list[int]:
    """The numbers of parcels whose recipients gave an address."""
    before = service.sql("SELECT coalesce(max(id), 0) AS id FROM shipments")[0]["id"]
    recipient = Recipient(service)
    for code in service.send("gift", "hamper", codeQuantity=count).json()["codes"]:
        path = recipient.gift(code)
        key = form_of(recipient.get(path))["key"]
        assert recipient.post(f"{path}/address", key=key, email="sam@example.com", **ADDRESS).status_code == 303
    return [row["id"] for row in service.sql("SELECT id FROM shipments WHERE id > $1 ORDER BY id", before)]


def test_numbers_are_imported_once_and_never_shown(
    service: Service, wade: Browser, capfd: pytest.CaptureFixture[str]
) -> None:
    here = f"/office/stock/{service.ids['products']['cinema']}"
    wade.get("/office/stock?q=cinema")
    assert here in wade.links
    wade.get(here)
    added = wade.upload(f"{here}/numbers", b"number,use_by\nSECRET-1,\nSECRET-2,2099-12-31\n")
    assert added.status_code == 303, added.text
    assert "2 numbers added." in wade.read(here)
    wade.page = wade.upload(f"{here}/numbers", b"SECRET-1\nSECRET-3\nSECRET-3\n")
    wade.says("1 number added", "Line 1: in stock already", "Line 3: twice in the file")
    wade.get(here)
    wade.page = wade.upload(f"{here}/numbers", b"Number,Batch no\nSECRET-8,7\n")
    assert "1 number added Not read: batch_no" in wade.text
    assert "left out" not in wade.text
    wade.get(here)
    refused = wade.upload(f"{here}/numbers", b"number,value\nSECRET-4,SECRET-5\n")
    assert refused.status_code == 422
    assert "people.csv: Line 2 has an amount that cannot be read." in refused.text
    unnamed = wade.upload(f"{here}/numbers", b"SECRET-6,SECRET-7\n")
    assert "These columns are missing: number. It may have: number, value, pin, use_by." in unnamed.text
    for answer in (wade.get(here), wade.get("/office/stock"), refused, unnamed):
        assert "SECRET" not in answer.text
    assert wade.submit(here, f"{here}/warning", below="5").status_code == 303
    assert "4 left, warning below 5" in wade.read("/office/stock")
    assert wade.submit(here, f"{here}/warning", below="100001").status_code == 422
    assert wade.submit(here, f"{here}/warning", below="").status_code == 303
    told = capfd.readouterr()
    assert "SECRET" not in told.out + told.err
    assert "SECRET" not in str(service.sql("SELECT before, after, subject FROM audit_events"))


@pytest.mark.parametrize(("value", "said"), [("7", "This gift is sold at £5.00"), ("x", "The amount cannot be read.")])
def test_a_wrong_amount_of_all_numbers_is_said_beside_its_field(
    service: Service, wade: Browser, value: str, said: str
) -> None:
    here = f"/office/stock/{service.ids['products']['coffee']}"
    wade.get(here)
    refused = wade.upload(f"{here}/numbers", b"WRONG-1\n", value=value)
    assert refused.status_code == 422
    assert f'<span class="error" id="value-error">{said}' in refused.text


def test_which_order_took_a_number_is_shown(service: Service, wade: Browser) -> None:
    here = f"/office/stock/{service.ids['products']['coffee']}"
    wade.get(here)
    assert wade.upload(f"{here}/numbers", b"CODE-1\n", value="5").status_code == 303
    sent = service.send("gift", "coffee", value=5, codeQuantity=1).json()
    recipient = Recipient(service)
    recipient.gift(sent["codes"][0])
    service.sql(
        """
        UPDATE vouchers SET customer_id = o.customer_id, order_id = o.id, number = 1, handed_at = now()
        FROM orders o WHERE o.reference = $1 AND vouchers.order_id IS NULL AND vouchers.product_id = $2 RETURNING 1
        """,
        sent["reference"],
        service.ids["products"]["coffee"],
    )
    assert sent["reference"] in wade.read(here)
    assert "CODE-1" not in wade.page.text if wade.page else False


def test_a_slip_has_the_whole_address_as_its_country_writes_it() -> None:
    address = {
        "name": "Aoife", "street_address": "1 Quay\nFlat 2", "city_area": "Moyard", "city": "GALWAY",
        "country_area": "Co. Galway", "postal_code": "H91 E2K3", "country_code": "IE",
    }  # fmt: skip
    parcel = PackedParcel(1, "R", 1, "hamper", "Hamper", address, datetime.now(UTC))
    assert parcel.address_lines == ["Aoife", "1 Quay", "Flat 2", "Moyard", "GALWAY", "Co. Galway", "H91 E2K3"]


def test_a_list_without_parcels_says_so(wade: Browser) -> None:
    for state, said in (("", "No parcel waits."), ("?state=sent", "There are no parcels here yet.")):
        assert said in wade.read(f"/office/parcels{state}")
        assert "There is no such parcel." not in wade.text
    assert "There is no such parcel." in wade.read("/office/parcels?q=X1")


def test_a_packing_slip_says_whom_the_gift_is_from(service: Service, wade: Browser) -> None:
    vault, recipient = Vault(service.settings.master_keys), Recipient(service)
    named = [{"email": "ada@example.com", "name": "Ada Byron"}, {"email": "sam@example.com", "name": "Sam <Doe>"}]
    said = {"message": "Dear {name},\nwell done!", "placeholders": True, "fromName": "Kim & Lee"}
    orders = [service.send("gift", "hamper", recipients=named, **said).json(), service.send("gift", "hamper").json()]
    for order in orders:
        lines = (
            "SELECT number, sealed FROM lines JOIN orders o ON o.id = order_id WHERE o.reference = $1 ORDER BY number"
        )
        for row in service.sql(lines, order["reference"]):
            code = open_code(vault, row["sealed"], order["reference"], row["number"])
            path = recipient.gift({"redemptionUrl": claim_link(code, vault, service.url, None), "pin": code.pin_text})
            assert (
                recipient.post(f"{path}/address", key=form_of(recipient.get(path))["key"], **ADDRESS).status_code == 303
            )
    parcels = [str(row["id"]) for row in service.sql("SELECT id FROM shipments ORDER BY id")]
    wade.read("/office/parcels")
    slips = wade.post("/office/parcels/pack", parcel=parcels, to="slips").text
    assert re.findall(r"Dear [^,]*,\nwell done!", slips) == [
        "Dear Ada Byron,\nwell done!",
        "Dear Sam &lt;Doe&gt;,\nwell done!",
    ]
    assert re.findall("<strong>— (.*?)</strong>", slips) == ["Kim &amp; Lee", "Kim &amp; Lee", "Acme Ltd"]
    wade.read("/office/parcels")
    assert "well done" not in wade.post("/office/parcels/pack", parcel=parcels, to="labels").text


def test_a_parcel_whose_address_cannot_be_decrypted_is_named_beside_the_others(service: Service, wade: Browser) -> None:
    good, bad = wait_to_be_sent(service, 2)
    service.sql("UPDATE shipments SET sealed_address = '\\x00' WHERE id = $1 RETURNING 1", bad)
    wade.read("/office/parcels")
    slips = wade.post("/office/parcels/pack", parcel=[str(good), str(bad)], to="slips").text
    assert (slips.count("1 High Street"), f"cannot be decrypted: {bad}." in slips) == (1, True)
    wade.read("/office/parcels")
    refused = wade.post("/office/parcels/pack", parcel=[str(good), str(bad)], to="csv")
    assert (refused.status_code, f"cannot be decrypted: {bad}." in refused.text) == (422, True)
    assert wade.post("/office/parcels/pack", parcel=[str(good)], to="csv").text.count("1 High Street") == 1
    service.sql("DELETE FROM shipments WHERE id = $1 RETURNING 1", bad)


@pytest.mark.long
def test_twenty_parcels_are_packed_and_sent(service: Service, wade: Browser) -> None:
    parcels = wait_to_be_sent(service, 20)
    assert "20 \N{MULTIPLICATION SIGN} Autumn hamper" in wade.read("/office/parcels")
    assert "Sam Doe" not in wade.text, "a list names no recipient"
    chosen = re.findall(r'name="parcel" value="(\d+)" checked', wade.page.text if wade.page else "")
    assert [int(one) for one in chosen] == parcels
    slips = wade.post("/office/parcels/pack", parcel=chosen, to="slips")
    assert slips.status_code == 200
    assert slips.text.count("1 High Street") == 20
    assert slips.text.count("LEEDS<br>LS1 4DY<br>United Kingdom") == 20
    labels = wade.submit("/office/parcels", "/office/parcels/pack", parcel=chosen[:2], to="csv")
    assert labels.headers["content-type"].startswith("text/csv")
    assert labels.text.count("Sam Doe") == 2
    assert wade.submit("/office/parcels", "/office/parcels/pack", to="slips").status_code == 422
    wade.get("/office/parcels/send")
    numbers = {f"tracking_{one}": f"RM{one}" if one < parcels[18] else "" for one in parcels}
    missing = wade.post("/office/parcels/send", carrier="", **numbers)
    assert missing.status_code == 422
    assert f'value="RM{parcels[0]}"' in missing.text, "nothing that was typed is lost"
    wade.get("/office/parcels/send")
    sent = wade.post("/office/parcels/send", carrier="Royal Mail", **numbers, **{f"sent_{parcels[18]}": "yes"})
    assert sent.headers["location"] == "/office/parcels?state=sent"
    assert "19 parcels sent." in wade.read("/office/parcels?state=sent")
    for number, said in (("X2", "Line 3 contradicts line 2 about a parcel."), ("1.2E+11", "shortened")):
        wade.get("/office/parcels/send")
        file = f"shipment,carrier,tracking_number\n{parcels[19]},Post,X1\n{parcels[19]},Post,{number}\n".encode()
        wade.page = wade.upload("/office/parcels/import", file)
        assert wade.page.status_code == 422
        assert said in wade.text
    wade.get("/office/parcels/send")
    file = f"shipment,carrier,tracking_number\n{parcels[19]},Post,X1\n{parcels[0]},Post,X2\n".encode()
    assert wade.upload("/office/parcels/import", file).status_code == 303
    assert "1 parcel sent. 1 was sent before." in wade.read("/office/parcels?state=sent")
    shipped = service.sql(
        "SELECT count(*) AS n FROM shipments WHERE shipped_at IS NOT NULL AND id = ANY($1::bigint[])", parcels
    )
    assert shipped[0]["n"] == 20
    assert service.sql("SELECT count(*) AS n FROM messages WHERE kind = 'shipped'")[0]["n"] == 20
    wade.get(f"/office/parcels?q=RM{parcels[3]}")
    assert f"/office/parcels/{parcels[3]}" in wade.links


def test_a_refused_number_is_shown_again_on_its_page_of_the_list(service: Service, wade: Browser) -> None:
    first, second = wait_to_be_sent(service, 2)
    wade.get(f"/office/parcels/send?after={first}")
    [path] = re.findall(r'action="(/office/parcels/send[^"]*)"', wade.page.text if wade.page else "")
    refused = wade.post(path, carrier="", **{f"tracking_{second}": "RM2"})
    assert refused.status_code == 422
    assert 'value="RM2"' in refused.text
    assert f'name="tracking_{first}"' not in refused.text


def test_what_is_done_to_a_parcel_is_done_to_no_other(service: Service, wade: Browser) -> None:
    one, other, hidden = wait_to_be_sent(service, 3)
    service.sql("UPDATE shipments SET environment = 'staging' WHERE id = $1 RETURNING 1", hidden)
    others = "SELECT * FROM shipments WHERE id <> $1 ORDER BY id"
    before, here = service.sql(others, one), f"/office/parcels/{one}"
    packed = wade.submit("/office/parcels", "/office/parcels/pack", parcel=[str(one), str(hidden)], to="csv")
    assert packed.text.count("Sam Doe") == 1, "staging has parcels of its own"
    for act, fields in (
        ("send", {"carrier": "DHL", "tracking_number": "D1"}),
        ("correct", {"carrier": "DHL", "tracking_number": "D2"}),
        ("returned", {"reason": "refused"}),
        ("again", {}),
    ):
        assert wade.get(f"/office/parcels/{hidden}").status_code == 404
        assert wade.submit(here, f"/office/parcels/{hidden}/{act}", **fields).status_code == 404, act
        assert wade.submit(here, f"{here}/{act}", **fields).status_code == 303, act
        assert service.sql(others, one) == before, act
    key = service.sql("SELECT customer_id, order_id, number FROM shipments WHERE id = $1", one)[0]
    erased = on_database(service.database_url, lambda connection: erase_addresses(connection, key[:2], [key[2]]))
    assert (erased, service.sql(others, one)) == (1, before)
    assert other in [row["id"] for row in before]


def test_a_parcel_comes_back_and_is_sent_again(service: Service, wade: Browser) -> None:
    [parcel] = wait_to_be_sent(service, 1)
    here = f"/office/parcels/{parcel}"
    early = wade.submit(here, f"{here}/returned", reason="refused")
    assert early.status_code == 422
    assert wade.submit(here, f"{here}/send", carrier="DHL", tracking_number="D1").status_code == 303
    assert wade.submit(here, f"{here}/returned", reason="nonsense").status_code == 422
    wade.get(here)
    for _ in range(2):
        assert wade.post(f"{here}/returned", reason="address").status_code == 303
    assert "The address is wrong or unknown" in wade.read(here)
    assert here in wade.get("/office/parcels?state=back").text
    assert "/office/parcels?state=back" in wade.get("/office").text
    assert "1 parcel came back" in wade.text
    assert wade.submit(here, f"{here}/again").status_code == 303
    assert here in wade.get("/office/parcels").text
    assert wade.submit(here, f"{here}/send", carrier="DHL", tracking_number="D2").status_code == 303
    [row] = service.sql("SELECT tracking_number, again_at, return_reason FROM shipments WHERE id = $1", parcel)
    assert tuple(row) == ("D2", None, "address")
    assert (
        len(service.sql("SELECT 1 FROM line_events WHERE event = 'fulfilled' AND at > now() - interval '1 hour'")) >= 1
    )
    acts = service.sql(
        "SELECT act, customer_id FROM audit_events WHERE subject = $1 AND act LIKE 'parcel.%' ORDER BY id",
        f"parcel {parcel}",
    )
    assert [row["act"] for row in acts] == ["parcel.returned", "parcel.again"]
    assert all(row["customer_id"] for row in acts), "the customer reads it in its audit log"


def test_each_sending_of_a_parcel_is_mailed_once(service: Service, wade: Browser) -> None:
    [parcel] = wait_to_be_sent(service, 1)
    here = f"/office/parcels/{parcel}"
    letters: list[tuple[str, str, str | None]] = []

    async def send_twice(database: Database, vault: Vault) -> int:
        sent = [Sent(str(parcel), "DHL", f"D{len(letters)}", 1)]
        actor = await actor_on(database, vault)
        sends = await asyncio.gather(*(send_parcels(actor, vault, "production", "test", sent) for _ in range(2)))
        return sum(shipped for shipped, _ in sends)

    async def read_mail(database: Database, vault: Vault) -> list[Letter]:
        async with database.transaction(OPERATOR) as connection:
            return [one.letter for one in await take(connection, 1000, vault, lambda _: "https://gifts.example.com")]

    for _ in range(3):
        assert service.on_pool(send_twice) == 1
        assert service.on_pool(send_twice) == 0
        letters += [(one.kind, one.subject, one.tracking_number) for one in service.on_pool(read_mail)]
        wade.submit(here, f"{here}/returned", reason="address")
        service.sql("UPDATE messages SET state = 'sent', finished_at = now() WHERE kind LIKE 'returned%'")
        wade.submit(here, f"{here}/again")
    again = "Your parcel is on its way again"
    assert letters == [
        ("shipped", "Your gift is on its way", "D0"),
        ("shipped_2", again, "D1"),
        ("shipped_3", again, "D2"),
    ]


def test_mail_that_waits_when_its_parcel_comes_back_is_withdrawn(service: Service, wade: Browser) -> None:
    back, other = wait_to_be_sent(service, 2)
    for parcel in (back, other):
        here = f"/office/parcels/{parcel}"
        wade.submit(here, f"{here}/send", carrier="DHL", tracking_number="D1")
    of_order = "order_id = (SELECT order_id FROM shipments WHERE id = $1) AND kind LIKE 'shipped%'"
    service.sql(f"UPDATE messages SET state = 'held' WHERE {of_order}", other)
    here = f"/office/parcels/{back}"
    wade.submit(here, f"{here}/returned", reason="address")
    wade.submit(here, f"{here}/again")
    wade.submit(here, f"{here}/send", carrier="DHL", tracking_number="D2")
    mails = (
        f"SELECT edition, kind, state, finished_at IS NULL AS waits FROM messages WHERE {of_order} ORDER BY edition, id"
    )
    assert [tuple(one.values()) for one in service.sql(mails, back)] == [
        (1, "shipped", "cancelled", False),
        (1, "shipped_2", "pending", True),
        (2, "shipped", "held", True),
    ]


def test_the_recipients_page_says_that_the_parcel_came_back(service: Service, wade: Browser) -> None:
    recipient = Recipient(service)
    path = recipient.gift(service.send("gift", "hamper", codeQuantity=1).json()["codes"][0])
    recipient.post(f"{path}/address", key=form_of(recipient.get(path))["key"], **ADDRESS)
    here = f"/office/parcels/{service.sql('SELECT max(id) AS id FROM shipments')[0]['id']}"
    said = []
    for act, form in (
        ("send", {"carrier": "DHL"}),
        ("returned", {"reason": "address"}),
        ("again", {}),
        ("send", {"carrier": "UPS"}),
    ):
        assert wade.submit(here, f"{here}/{act}", **form).status_code == 303
        page = recipient.get(path).text
        said.append(("on its way" in page, "came back to us" in page, "to this address again" in page))
        assert ("If it does not arrive" in page) is said[-1][0], "whom to ask while it is on its way"
    assert said == [(True, False, False), (False, True, False), (False, True, True), (True, False, False)]


def test_the_customer_learns_that_a_parcel_came_back(service: Service, wade: Browser) -> None:
    [parcel] = wait_to_be_sent(service, 1)
    [order] = service.sql("SELECT reference FROM orders ORDER BY id DESC LIMIT 1")
    here, page = f"/office/parcels/{parcel}", f"/app/orders/{order['reference']}"
    ada = signed_in(service, "ada@acme.example")
    said = []
    for act, form in (("send", {"carrier": "DHL"}), ("returned", {"reason": "address"}), ("again", {})):
        assert wade.submit(here, f"{here}/{act}", **form).status_code == 303
        home = ada.read("/app")
        assert (page in ada.page.text.partition("Needs attention")[2].partition("Newest orders")[0]) is (
            "1 order has a parcel that came back" in home
        )
        said.append(("a parcel that came back" in home, "The address is wrong or unknown." in ada.read(page)))
    assert said == [(False, False), (True, True), (False, False)]
    cem = signed_in(service, "cem@acme.example")
    service.sql("UPDATE shipments SET again_at = NULL")
    assert "a parcel that came back" not in cem.read("/app"), "in an order that is not his"


def test_a_tracking_number_is_corrected_while_the_parcel_is_on_its_way(service: Service, wade: Browser) -> None:
    [parcel] = wait_to_be_sent(service, 1)
    here = f"/office/parcels/{parcel}"
    wade.get(here)
    assert wade.post(f"{here}/correct", carrier="DHL", tracking_number="D8").status_code == 422, "it is not sent yet"
    assert wade.submit(here, f"{here}/send", carrier="DHL", tracking_number="D7").status_code == 303
    sent = "SELECT carrier, tracking_number, shipped_at FROM shipments WHERE id = $1"
    [before] = service.sql(sent, parcel)
    assert wade.submit(here, f"{here}/correct", carrier="", tracking_number="D8").status_code == 422
    for _ in range(2):
        assert wade.submit(here, f"{here}/correct", carrier="UPS", tracking_number="D8").status_code == 303
    [after] = service.sql(sent, parcel)
    assert tuple(after) == ("UPS", "D8", before["shipped_at"])
    acts = service.sql(
        "SELECT customer_id, before::jsonb->>'tracking_number' AS before, after::jsonb->>'tracking_number' AS after"
        " FROM audit_events WHERE subject = $1 AND act = 'parcel.corrected'",
        f"parcel {parcel}",
    )
    assert [(row["before"], row["after"]) for row in acts] == [("D7", "D8")], "a repeat changes nothing"
    assert acts[0]["customer_id"], "the customer reads it in its audit log"
    assert wade.submit(here, f"{here}/returned", reason="address").status_code == 303
    assert wade.submit(here, f"{here}/correct", carrier="UPS", tracking_number="D9").status_code == 422
