"""After the claim: choosing, vouchers, addresses and parcels, over HTTP."""

import csv
import io
import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from tests.chained import actor_on
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Codes, form_of, link

from largesse.base.i18n.languages import country_codes
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR
from largesse.encryption.vault import Vault
from largesse.fulfilment.inventory import list_inventory
from largesse.fulfilment.shipments import export_shipments, import_shipments
from largesse.fulfilment.vouchers import allocate_all_waiting
from largesse.mail.letter import Letter
from largesse.mail.messages import take
from largesse.web.claim.addresses import address_fields
from largesse.web.claim.gift import read_session

WORLD = """
customers:
  - key: acme
    name: Acme Ltd
    plan: enterprise
    funding: balance
    service_accounts: [{key: hr-bot, name: HR bot}]
    api_keys:
      - {key: hr, service_account: hr-bot, environment: production}
      - {key: hr-test, service_account: hr-bot, environment: staging}
    funding_accounts:
      - {key: gbp, name: Acme float, master: true, currency: GBP, balance: 1000000.00}
      - {key: usd, name: Dollars, master: true, currency: USD, balance: 1000000.00}
      - {key: test-gbp, name: Test float, master: true, currency: GBP, environment: staging, balance: 1000.00}
  - key: globex
    name: Globex
    plan: pro
    funding: invoiced
products:
  - {key: coffee, name: Coffee House e-gift, digital: true, currency: GBP, countries: [GB], denominations: [5, 10, 25]}
  - {key: tea, name: Tea Room e-gift, digital: true, currency: GBP, countries: [GB], denominations: [10]}
  - {key: shop, name: Shop e-gift, digital: true, currency: GBP, countries: [GB], min_amount: 20, max_amount: 100}
  - {key: irish, name: Irish e-gift, digital: true, currency: GBP, countries: [IE], denominations: [25]}
  - {key: euro, name: Euro e-gift, digital: true, currency: EUR, countries: [GB], denominations: [25]}
  - {key: club, name: Globex club, digital: true, currency: GBP, countries: [GB], denominations: [25], customers: [globex]}
  - {key: gone, name: Gone e-gift, digital: true, currency: GBP, countries: [GB], denominations: [25], active: false}
  - {key: flowers, name: Flowers, digital: false, currency: GBP, cost: 15.00, markup_percent: 10, postage: {GB: 2}, vat_percent: {GB: 20}}
  - {key: hamper, name: Hamper, digital: false, currency: GBP, cost: 35.00, markup_percent: 10, postage: {GB: 4.95}, vat_percent: {GB: 20}}
  - {key: mug, name: Trail mug, digital: false, currency: USD, cost: 12.50, postage: {US: 5.99}}
collections:
  - {key: treats, name: Treats, country: GB, currency: GBP, value_points: [10, 25, 50],
     products: [shop, coffee, tea, irish, euro, club, gone, flowers, hamper]}
  - {key: empty, name: Empty, country: GB, currency: GBP, value_points: [25], products: [tea, gone]}
"""

ADDRESS = {
    "name": "\u2068Sam Doe\u2069",
    "street_address": "Flat 2\r\n1 High Street",
    "city": "Leeds",
    "postal_code": "ls1 4dy",
}


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: what is in stock serves whoever waits, in whichever test."""
    return own_service


def choices_of(page: httpx.Response) -> list[int]:
    return [int(value) for value in re.findall(r'name="product" value="(\d+)"', page.text)]


def choose(recipient: Any, path: str, product_id: int) -> httpx.Response:
    offered = choices_of(recipient.get(path))
    key = form_of(recipient.get(f"{path}/choose?product={offered[0]}")).get("key", "") if offered else ""
    answer: httpx.Response = recipient.post(f"{path}/choose", key=key, product=str(product_id), sure="yes")
    return answer


def state(service: Any, path: str, recipient: Any) -> str:
    vault = Vault(service.settings.master_keys)
    now = service.sql("SELECT clock_now() AS now")[0]["now"]
    session = read_session(vault, "production", recipient.cookie, path.rsplit("/", 1)[1], now)
    assert session is not None
    row = service.sql(
        "SELECT state FROM line_states WHERE customer_id = $1 AND order_id = $2 AND number = $3", *session.line
    )
    return str(row[0]["state"])


def test_only_what_can_be_had_at_the_value_in_the_country_by_the_customer_is_offered(
    service: Any, recipient: Any, codes: Codes
) -> None:
    products = service.ids["products"]
    for value, names in ((10, ["coffee", "tea"]), (25, ["shop", "coffee", "flowers"]), (50, ["shop", "flowers"])):
        page = recipient.get(recipient.gift(codes("collection", "treats", value=value)[0]))
        assert choices_of(page) == [products[name] for name in names], value


def test_a_choice_is_confirmed_and_made_once(
    service: Any, recipient: Any, codes: Codes, stock: Callable[..., Any]
) -> None:
    products = service.ids["products"]
    stock("coffee", ["CHOSEN-1"], "25")
    path = recipient.gift(codes("collection", "treats", value=25)[0])
    question = f"{path}/choose?product={products['coffee']}"
    asked = recipient.get(question)
    assert asked.status_code == 200
    assert "Is this the one?" in asked.text
    assert recipient.post(f"{path}/choose", **{**form_of(asked), "sure": ""}).headers["location"] == question
    assert state(service, path, recipient) == "claimed"
    key = form_of(asked)["key"]
    assert choose(recipient, path, products["coffee"]).headers["location"] == f"{path}#open"
    assert state(service, path, recipient) == "fulfilled"
    assert "CHOSEN-1" in recipient.get(path).text
    assert recipient.get(question).headers["location"] == path, "who goes back sees the gift"
    again = recipient.post(f"{path}/choose", key=key, product=str(products["shop"]), sure="yes")
    assert again.status_code == 303
    assert "CHOSEN-1" in recipient.get(path).text


@pytest.mark.parametrize("name", ["irish", "euro", "club", "gone", "hamper", "tea"])
def test_nothing_else_can_be_chosen(service: Any, recipient: Any, codes: Codes, name: str) -> None:
    path = recipient.gift(codes("collection", "treats", value=25)[0])
    product = service.ids["products"][name]
    for refused in (choose(recipient, path, product), recipient.get(f"{path}/choose?product={product}&lang=en")):
        assert refused.status_code == 409
        assert "This gift is no longer available. Please choose another." in refused.text
        assert choices_of(refused) == choices_of(recipient.get(path))
    assert state(service, path, recipient) == "claimed"


def test_every_page_of_a_gift_has_its_languages(service: Any, recipient: Any, codes: Codes) -> None:
    path = recipient.gift(codes("collection", "treats", value=25)[0])
    asked = recipient.get(f"{path}/choose?product={service.ids['products']['coffee']}")
    [german] = re.findall(r'href="([^"]+)" lang="de"', asked.text)
    assert "Soll es dieses sein?" in recipient.get(f"{path}/choose{unescape(german)}").text
    path = recipient.gift(codes("gift", "hamper")[0])
    wrong = recipient.post(f"{path}/address", **form_of(recipient.get(path)))
    assert wrong.status_code == 422
    assert 'href="?lang=fr"' in wrong.text
    for form in ("address", "email", "thank"):
        assert recipient.get(f"{path}/{form}?lang=fr").headers["location"] == f"{path}?lang=fr"


def test_a_form_without_its_key_changes_nothing(service: Any, recipient: Any, codes: Codes) -> None:
    path = recipient.gift(codes("collection", "treats", value=25)[0])
    product = str(service.ids["products"]["coffee"])
    for form in ({}, {"key": ""}, {"key": "0" * 16}):
        assert recipient.post(f"{path}/choose", product=product, sure="yes", **form).status_code == 403
    assert state(service, path, recipient) == "claimed"


def test_a_collection_with_nothing_left_says_so(recipient: Any, codes: Codes) -> None:
    page = recipient.get(recipient.gift(codes("collection", "empty", value=25)[0]))
    assert "none of the gifts in this collection is available just now" in page.text


def test_out_of_stock_keeps_the_claim_and_the_next_import_serves_the_oldest_first(
    service: Any, recipient: Any, codes: Codes, stock: Callable[..., Any]
) -> None:
    waiting = []
    for code in codes("gift", "tea", 3):
        one = type(recipient)(service)
        path = one.gift(code)
        assert "Yours is reserved" in one.get(path).text
        assert state(service, path, one) == "chosen"
        waiting.append((one, path))

    async def levels(database: Database, _: Vault) -> Any:
        async with database.connection(OPERATOR) as connection:
            return await list_inventory(connection)

    [level] = [level for level in service.on_pool(levels) if level.product == "tea"]
    assert (level.free, level.waiting) == (0, 3)
    assert stock("tea", ["T1", "T2"]).served == 2
    texts = [one.get(path).text for one, path in waiting]
    assert "T1" in texts[0]
    assert "T2" in texts[1]
    assert "Yours is reserved" in texts[2]
    assert "added=2, duplicates=1, served=1" in repr(stock("tea", ["T2", "T3", "T4"]))
    assert "T3" in waiting[2][0].get(waiting[2][1]).text
    [level] = [level for level in service.on_pool(levels) if level.product == "tea"]
    assert (level.free, level.handed_out, level.waiting) == (1, 3, 0)


def test_who_waits_for_a_supplier_is_not_told_that_the_vouchers_have_run_out(
    service: Any, recipient: Any, codes: Codes
) -> None:
    service.sql("UPDATE products SET suppliers = '{cards}' WHERE key = 'tea'")
    page = recipient.get(recipient.gift(codes("gift", "tea")[0])).text
    assert "Your voucher is being prepared." in page
    assert "run out" not in page


def test_who_waits_is_mailed_when_it_is_ready(
    service: Any, recipient: Any, codes: Codes, stock: Callable[..., Any]
) -> None:
    path = recipient.gift(codes("gift", "coffee", value=5)[0])
    page = recipient.get(path)
    assert f'{path}/email" novalidate' in page.text, "the page says what is wrong, in its language"
    wrong = recipient.post(f"{path}/email", key=form_of(page)["key"], email="nobody")
    assert wrong.status_code == 422
    assert "This does not look right." in wrong.text
    assert recipient.post(f"{path}/email", key=form_of(page)["key"], email="Sam <sam@example.com>").status_code == 303
    assert 'name="email"' not in recipient.get(path).text
    assert [stock("coffee", [name], value).served for name, value in (("OTHER", "25"), ("READY-1", "5"))] == [0, 1]
    assert "READY-1" in recipient.get(path).text, "and no voucher of another value"
    rows = service.sql("SELECT kind, email, line_numbers, state FROM messages WHERE kind = 'voucher_ready'")
    assert ("voucher_ready", "sam@example.com", [1], "pending") in [tuple(row) for row in rows]


def test_an_address_is_asked_for_checked_sealed_exported_and_shipped(
    service: Any, recipient: Any, codes: Codes, tmp_path: Path
) -> None:
    path = recipient.gift(codes("gift", "hamper")[0])
    page = recipient.get(path)
    assert "Where shall we send it?" in page.text
    assert "£" not in page.text, "what it cost is between the sender and us"
    key = form_of(page)["key"]
    wrong = recipient.post(f"{path}/address", key=key, **(ADDRESS | {"postal_code": "75001", "city": ""}))
    assert wrong.status_code == 422
    assert wrong.text.count('aria-invalid="true"') == 2
    assert re.findall(r'name="(\w+)"[^>]* autofocus', wrong.text) == ["city"], "the first field to correct"
    assert 'value="75001"' in wrong.text, "nothing has to be typed twice"
    assert state(service, path, recipient) == "chosen"
    given = recipient.post(f"{path}/address", key=key, country_code="FR", email="sam@example.com", **ADDRESS)
    assert given.status_code == 303
    page = recipient.get(path)
    assert "LS1 4DY" in page.text
    assert "United Kingdom" in page.text
    assert recipient.post(f"{path}/address", key=key, **(ADDRESS | {"name": "Other"})).status_code == 303
    assert "Sam Doe" in recipient.get(path).text
    assert "High Street" not in str(service.sql("SELECT * FROM shipments"))

    async def export(database: Database, vault: Vault) -> str:
        file = io.StringIO()
        await export_shipments(await actor_on(database, vault), vault, "production", file)
        return file.getvalue()

    [row] = list(csv.DictReader(io.StringIO(service.on_pool(export))))
    assert (row["name"], row["street_address"], row["city"], row["postal_code"], row["country_code"]) == (
        "Sam Doe",
        "Flat 2\n1 High Street",
        "LEEDS",
        "LS1 4DY",
        "GB",
    )
    assert list(csv.DictReader(io.StringIO(service.on_pool(export)))) == [], "each is exported once"
    file = tmp_path / "shipped.csv"
    file.write_text(f"shipment,carrier,tracking_number\n{row['shipment']},Royal Post,AB123\n")

    async def ship(database: Database, vault: Vault) -> tuple[int, int]:
        return await import_shipments(await actor_on(database, vault), vault, "production", file)

    assert service.on_pool(ship) == (1, 0)
    assert service.on_pool(ship) == (0, 1)
    page = recipient.get(path)
    assert "Your parcel is on its way" in page.text
    assert "AB123" in page.text
    assert state(service, path, recipient) == "fulfilled"
    rows = service.sql("SELECT email FROM messages WHERE kind = 'shipped'")
    assert [row["email"] for row in rows] == ["sam@example.com"]


def test_a_recipient_is_written_to_in_the_language_they_went_on_in(
    service: Any, recipient: Any, codes: Codes, tmp_path: Path
) -> None:
    path = recipient.gift(codes("gift", "hamper")[0])
    recipient.language = "de"
    key = form_of(recipient.get(path))["key"]
    assert recipient.post(f"{path}/address", key=key, email="uwe@example.com", **ADDRESS).status_code == 303
    file = tmp_path / "shipped.csv"
    [row] = service.sql("SELECT id FROM shipments WHERE shipped_at IS NULL ORDER BY id DESC LIMIT 1")
    file.write_text(f"shipment,carrier,tracking_number\n{row['id']},DHL,AB124\n")

    async def ship_and_write(database: Database, vault: Vault) -> Letter:
        await import_shipments(await actor_on(database, vault), vault, "production", file)
        async with database.transaction(OPERATOR) as connection:
            taken = await take(connection, 1000, vault, lambda _: "https://gifts.example.com")
        [letter] = [one.letter for one in taken if one.letter.email == "uwe@example.com"]
        return letter

    letter = service.on_pool(ship_and_write)
    assert letter.subject == "Ihr Geschenk ist unterwegs"


def test_who_wants_no_language_of_ours_reads_that_of_the_gifts_country(
    service: Any, recipient: Any, codes: Codes
) -> None:
    service.sql("UPDATE products SET countries = '{GB,DE}' WHERE key = 'coffee'")
    [code] = codes("gift", "coffee", value=5, country="DE")
    recipient.language = "ja"
    page = recipient.get(link(code))
    assert page.headers["content-language"] == "de"
    assert "Ein Geschenk" in page.text
    path = recipient.gift(code)
    assert recipient.get(path).headers["content-language"] == "de"
    [row] = service.sql("SELECT language FROM line_states ORDER BY claimed_at DESC LIMIT 1")
    assert row["language"] is None
    assert recipient.get("/claim").headers["content-language"] == "en"
    recipient.language = "ja, fr;q=0.1"
    assert recipient.get(path).headers["content-language"] == "fr"


def test_the_address_form_is_the_countrys(recipient: Any, codes: Codes) -> None:
    page = recipient.get(recipient.gift(codes("gift", "mug", country="US", account="usd")[0]))
    assert '<option value="CA">California</option>' in page.text
    assert re.search(r"ZIP code\s*</label>\s*<span[^>]*>Such as 95014\.</span>", page.text)


def test_every_country_that_gifts_are_sold_in_has_an_address_form() -> None:
    assert all(address_fields(country) for country in country_codes())


def test_who_waits_for_stock_or_a_parcel_does_not_expire(
    service: Any, recipient: Any, codes: Codes, stock: Callable[..., Any], move_clock: Callable[[timedelta], None]
) -> None:
    code = codes("gift", "shop", value=20, expiryAfterDays=1)[0]
    recipient.gift(code)
    move_clock(timedelta(days=3))
    again = recipient.claim(code)
    path = re.findall(r'href="(/claim/gift/\w+)"', again.text)[0]
    assert "Yours is reserved" in recipient.get(path).text

    assert service.on_pool(allocate_all_waiting) == 0
    stock("shop", ["LATE-1"], "20")
    assert "LATE-1" in recipient.get(path).text


def test_a_line_that_cannot_be_served_stops_no_other(
    service: Any, recipient: Any, codes: Codes, stock: Callable[..., Any]
) -> None:
    """It waits longest, so it would come first each time, and the only number would stay with it."""
    (odd,) = codes("gift", "shop", value=35)
    (other,) = codes("gift", "shop", value=35)
    recipient.gift(odd)
    path = recipient.gift(other)
    # An address that cannot be decrypted, as after a restore without its master key.
    service.sql(
        """
        UPDATE line_states s SET sealed_email = 'odd' FROM (SELECT * FROM voucher_waits ORDER BY id DESC OFFSET 1 LIMIT 1) w
        WHERE s.customer_id = w.customer_id AND s.order_id = w.order_id AND s.number = w.number
        """
    )
    with structlog.testing.capture_logs() as logs:
        stock("shop", ["STUCK-1"], "35")
    assert "STUCK-1" in recipient.get(path).text
    assert service.sql("SELECT count(*) FROM voucher_waits WHERE value_minor = 3500")[0][0] == 1
    assert [one["event"] for one in logs] == ["voucher.not_handed_out"]
    service.sql("UPDATE line_states SET sealed_email = NULL WHERE sealed_email = 'odd'")
    stock("shop", ["STUCK-2"], "35")
    assert service.sql("SELECT count(*) FROM voucher_waits WHERE value_minor = 3500")[0][0] == 0


def test_the_pages_speak_three_languages(recipient: Any, codes: Codes) -> None:
    code = codes("collection", "treats", value=25)[0]
    for wanted, tag, text in (
        ("fr-CH, de;q=0.5", "fr", "Ouvrir mon cadeau"),
        ("es, de-AT;q=0.7, en;q=0.3", "de", "Mein Geschenk öffnen"),
        ("ja", "en", "Open my gift"),
    ):
        recipient.language = wanted
        page = recipient.get(link(code))
        assert f'<html lang="{tag}"' in page.text
        assert text in page.text
    recipient.language = "en"
    switched = recipient.get(f"{link(code)}?lang=de")
    assert "Mein Geschenk öffnen" in switched.text
    assert switched.headers["set-cookie"].startswith("language=de;")
    recipient.language = "fr"
    assert "une valeur de 25,00\N{NO-BREAK SPACE}£GB" in recipient.get(recipient.gift(code)).text
