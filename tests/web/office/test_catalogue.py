"""The catalogue in the office: a product from its form to its buyers, two who edit, a seed file's product, and CSV files."""

import csv
import io
import json
import re
from typing import Any

from tests.catalogue.images import png
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.office.conftest import SignIn

from largesse.catalogue import content, sheet

COFFEE = {
    "kind": "digital", "currency": "GBP", "name": "Coffee at home", "active": "yes", "countries": "GB", "denominations": "5, 10",
    "min_amount": "", "max_amount": "", "customers": "", "suppliers": "", "description": "", "how_to_redeem": "", "terms": "", "key": "",
}  # fmt: skip
TYPED = {name: value for name, value in COFFEE.items() if name not in {"kind", "currency", "key"}}


def value(service: Service, query: str, *arguments: Any) -> Any:
    return service.sql(query, *arguments)[0][0]


def seen(page: str) -> str:
    return re.findall(r'name="seen" value="(\d+)"', page)[0]


def started(browser: Browser, path: str) -> dict[str, str]:
    """The hidden fields of the form of a product, and what it shows."""
    page = browser.get(path).text
    text_of = re.findall(r'name="started" value="([^"]*)"', page)[0]
    return {"seen": seen(page), "started": text_of.replace("&#34;", '"').replace("&#39;", "'").replace("&amp;", "&")}


def made(browser: Browser, **typed: str) -> str:
    """The path of a new product."""
    browser.get("/office/catalogue/new?kind=digital&currency=GBP")
    answer = browser.post("/office/catalogue/new", **{**COFFEE, **typed})
    assert answer.status_code == 303
    return str(answer.headers["location"])


def test_a_product_goes_from_its_form_to_its_buyers(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("catalogue")
    browser.get("/office/catalogue/new")
    path = made(browser)
    page = browser.get(path).text
    assert "Not on sale" in page
    assert value(service, "SELECT active FROM products WHERE key = 'coffee-at-home'") is False

    uploaded = browser.upload(path + "/picture", png(100, 100), file_name="a.png", field="picture", seen=seen(page))
    assert uploaded.status_code == 303
    page = browser.get(path).text
    assert "/pictures/" in page
    assert browser.post(path + "/publish", seen=seen(page)).headers["location"] == path

    assert "On sale" in browser.get(path).text
    assert value(service, "SELECT active AND picture IS NOT NULL FROM products WHERE key = 'coffee-at-home'") is True
    found = service.client("hr").get("/products?country=GB&limit=100").json()
    assert "Coffee at home" in json.dumps(found)
    browser.get(path)
    assert browser.post(path + "/undo", seen=seen(browser.get(path).text)).status_code == 303
    assert value(service, "SELECT active FROM products WHERE key = 'coffee-at-home'") is False


def test_mistakes_stand_beside_their_fields_and_nothing_typed_is_lost(sign_in: SignIn) -> None:
    browser = sign_in("catalogue")
    browser.get("/office/catalogue/new?kind=digital&currency=GBP")

    answer = browser.post(
        "/office/catalogue/new",
        **{**COFFEE, "denominations": "0", "countries": "", "terms": "t" * 4001, "name": "Kept"},
    )

    assert answer.status_code == 422
    assert 'id="denominations-error">An amount must be more than 0.' in answer.text
    assert 'id="countries-error">Name at least one country' in answer.text
    assert "4001 characters" in answer.text
    assert 'value="Kept"' in answer.text
    assert "t" * 4001 in answer.text


def test_a_key_with_a_nul_is_a_customer_that_is_not_known(sign_in: SignIn) -> None:
    browser = sign_in("catalogue")
    browser.get("/office/catalogue/new?kind=digital&currency=GBP")
    answer = browser.post("/office/catalogue/new", **{**COFFEE, "customers": "a\0b"})
    assert answer.status_code == 422
    assert 'id="customers-error"' in answer.text


def test_the_second_of_two_is_shown_what_changed_and_loses_nothing(service: Service, sign_in: SignIn) -> None:
    first, second = sign_in("catalogue"), sign_in("owner")
    path = made(first, key="two")
    mine, theirs = started(first, path), started(second, path)
    assert second.post(path, **{**TYPED, **theirs, "name": "Theirs", "terms": "Their terms"}).status_code == 303

    answer = first.post(path, **{**TYPED, **mine, "name": "Mine", "description": "My words"})

    assert answer.status_code == 409
    assert "owner@largesse.example saved this meanwhile" in answer.text
    assert 'value="Mine"' in answer.text
    assert "My words" in answer.text
    assert "Their terms" in answer.text
    assert "It is now: Theirs" in answer.text
    again = {
        "seen": seen(answer.text),
        "started": "{}",
        "name": "Mine",
        "description": "My words",
        "terms": "Their terms",
    }
    assert first.post(path, **{**TYPED, **again}).status_code == 303
    draft = json.loads(
        value(service, "SELECT content FROM catalogue_drafts d JOIN products p ON p.id = object_id WHERE key = 'two'")
    )
    assert (draft["name"], draft["description"], draft["terms"]) == ("Mine", "My words", "Their terms")


def test_what_the_seed_file_manages_is_read_only_until_it_is_released(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("catalogue")
    product_id = value(service, "SELECT min(id) FROM products WHERE managed = 'file' AND is_digital")
    path = f"/office/catalogue/{product_id}"
    page = browser.get(path)
    assert "Managed by the seed file" in page.text
    assert '<fieldset class="plain" disabled>' in page.text
    answer = browser.post(path, **{**TYPED, "seen": "0", "started": "{}"})
    assert answer.status_code == 409

    assert browser.post(path + "/release").status_code == 303

    assert "Save draft" in browser.get(path).text
    assert value(service, "SELECT managed FROM products WHERE id = $1", product_id) == "office"


def test_a_draft_of_before_an_undo_says_what_to_do(sign_in: SignIn) -> None:
    browser = sign_in("catalogue")
    path = made(browser, key="behind")
    browser.post(path + "/publish", seen=seen(browser.get(path).text))
    assert "What customers see<" in browser.get(path).text
    again = {**started(browser, path), "denominations": "5, 20"}
    assert browser.post(path, **{**TYPED, **again}).status_code == 303
    assert browser.post(path + "/undo", seen=seen(browser.get(path).text)).status_code == 303

    said = "Something else was published after this draft was saved."
    assert said in browser.get(path).text
    assert "What customers will see<" in browser.page.text
    refused = browser.post(path + "/publish", seen=seen(browser.page.text))
    assert refused.status_code == 409
    assert said in refused.text

    assert browser.post(path, **{**TYPED, **started(browser, path), "denominations": "5, 20"}).status_code == 303
    assert said not in browser.get(path).text
    assert browser.post(path + "/publish", seen=seen(browser.page.text)).status_code == 303


def test_a_draft_is_scheduled_and_discarded(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("catalogue")
    path = made(browser, key="later")
    for wrong in ("", "yesterday", "1999-01-01T00:00", "9999-12-31T00:00", "2020-01-01T00:00"):
        assert browser.post(path + "/schedule", seen=seen(browser.get(path).text), at=wrong).status_code == 422
    service.sql("UPDATE staff SET zone = 'America/New_York' WHERE role = 'catalogue'")
    assert browser.post(path + "/schedule", seen=seen(browser.get(path).text), at="2090-01-01T09:00").status_code == 303
    assert f"{value(service, 'SELECT max(publish_at) FROM catalogue_drafts'):%H:%M %Z}" == "14:00 UTC", "by their clock"
    service.sql("UPDATE staff SET zone = NULL")
    assert "Publishes itself" in browser.get(path).text
    assert re.search(r'"state waiting">Publishes <time [^>]+>', browser.get("/office/catalogue?state=scheduled").text)
    assert browser.post(path + "/unschedule", seen=seen(browser.get(path).text)).status_code == 303
    assert browser.submit(path, path + "/discard", seen="1").status_code == 409
    assert browser.post(path + "/discard", seen=seen(browser.get(path).text)).headers["location"] == "/office/catalogue"
    assert value(service, "SELECT count(*) FROM products WHERE key = 'later'") == 0
    assert browser.get(path).status_code == 404


def test_the_list_is_searched_and_filtered(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("auditor")
    made(sign_in("catalogue"), key="zebra-crossing", name="Zebra é ' % gift")

    assert "zebra-crossing" in browser.get("/office/catalogue?q=ZEB+gif").text
    assert "zebra-crossing" in browser.get("/office/catalogue?q=crossing&state=drafts&currency=gbp").text
    assert "Nothing matches" in browser.get("/office/catalogue?q=zebra&state=active").text
    assert "Nothing matches" in browser.get("/office/catalogue?q=zebra&currency=EUR").text
    assert browser.get("/office/catalogue?q=%27%26%7C%21%3A*()").status_code == 200
    assert "New product" not in browser.get("/office/catalogue").text
    assert browser.post("/office/catalogue/1/publish", seen="0").status_code == 403


def test_a_collection(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("owner")
    product = value(service, "SELECT key FROM products WHERE currency = 'GBP' AND active ORDER BY id LIMIT 1")
    typed = {"name": "Small treats", "active": "yes", "country": "GB", "value_points": "5, 10", "products": product}
    browser.get("/office/collections/new?currency=GBP")
    wrong = browser.post("/office/collections/new", currency="GBP", **{**typed, "products": "nothing"})
    assert "There is no product nothing." in wrong.text
    path = str(browser.post("/office/collections/new", currency="GBP", key="", **typed).headers["location"])
    assert browser.post(path + "/publish", seen=seen(browser.get(path).text)).status_code == 303
    assert "Small treats" in json.dumps(service.client("hr").get("/collections").json())
    assert "Small treats" in browser.get("/office/collections").text


def test_files_go_out_and_come_in(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("catalogue")
    file = browser.get("/office/catalogue.csv")
    assert file.text.lstrip("\ufeff").startswith("key,digital,currency,name")
    page = browser.get("/office/catalogue/import")
    assert page.status_code == 200
    for file, said in ((b"", "The file is empty"), (b"key,colour\na,b\n", "There is no column colour.")):
        refused = browser.upload("/office/catalogue/import", file)
        assert refused.status_code == 422
        assert f'id="file-error">{said}' in refused.text
        assert "to correct" not in refused.text
    wrong = b"key,digital,currency,name,countries,denominations\nnew-a,yes,GBP,,GB,0\nnew-b,yes,GBP,B,GB,5\n"
    answer = browser.upload("/office/catalogue/import", wrong)
    assert answer.status_code == 422
    assert "1 row to correct" in answer.text
    assert "An amount must be more than 0." in answer.text
    assert value(service, "SELECT count(*) FROM products WHERE key LIKE 'new-%'") == 0

    for key, name in (("new-a", "#N/A"), ("1.2E+11", "A"), ("new-a", "####")):
        spoilt = wrong.replace(b"new-a,yes,GBP,,GB,0", f"{key},yes,GBP,{name},GB,5".encode())
        browser.get("/office/catalogue/import")
        assert sheet.SPOILT in browser.upload("/office/catalogue/import", spoilt).text, name
    assert value(service, "SELECT count(*) FROM products WHERE key ~ '^(new-|1)'") == 0

    good = wrong.replace(b"GBP,,GB,0", b"GBP,A,GB,5")
    browser.get("/office/catalogue/import")
    answer = browser.upload("/office/catalogue/import", good)
    assert answer.headers["location"] == "/office/catalogue?state=drafts"
    later = made(browser, key="new-later")
    browser.post(later + "/schedule", seen=seen(browser.get(later).text), at="2090-01-01T09:00")
    assert "Publish 2 drafts" in browser.get("/office/catalogue?state=drafts&q=new").text
    published = browser.post("/office/catalogue/publish", q="new", currency="")
    assert published.headers["location"] == "/office/catalogue?state=drafts&q=new&currency="
    assert "new-later" in browser.get("/office/catalogue?state=drafts&q=new").text
    assert "draft</button>" not in browser.page.text
    assert value(service, "SELECT count(*) FROM products WHERE key LIKE 'new-%' AND active") == 2


def test_rows_of_a_file_show_all_their_mistakes_by_the_numbers_of_a_spreadsheet(
    service: Service, sign_in: SignIn
) -> None:
    key = value(service, "SELECT max(key) FROM products WHERE managed = 'file' AND is_digital")
    browser = sign_in("catalogue")
    path = "/office/catalogue/import"
    made(browser, key="begun")
    exported = list(csv.DictReader(io.StringIO(browser.get("/office/catalogue.csv").text.lstrip("\ufeff"))))
    theirs = next(row for row in exported if row["key"] == key)

    def rows_of(*rows: dict[str, str]) -> bytes:
        file = io.StringIO()
        writer = csv.DictWriter(file, list(theirs))
        writer.writeheader()
        writer.writerows(rows)
        return file.getvalue().encode()

    browser.get(path)
    assert browser.upload(path, rows_of(theirs)).headers["location"] == "/office/catalogue", "nothing differs"
    browser.get(path)
    begun = next(row for row in exported if row["key"] == "begun")
    assert browser.upload(path, rows_of(begun)).headers["location"] == "/office/catalogue", "its draft stays"
    browser.get(path)
    new = {"key": "new-lines", "digital": "yes", "currency": "GBP", "name": "N", "denominations": "5"}
    file = rows_of(
        {**new, "description": "one\ntwo\nthree", "countries": "GB"},
        {**theirs, "name": ""},
        {"key": "", "name": " "},
        {**theirs, "key": "begun", "name": "", "currency": "EUR"},
    )
    shown = re.sub(r"<[^>]+>", "|", browser.upload(path, file).text)
    wrong = [re.sub(r"\|+", "|", line).strip("|") for line in shown.splitlines() if re.match(r"\|+\d+\|", line)]
    assert wrong == [
        f"3|{key}|Key|{sheet.BY_FILE}",
        f"3|{key}|Name|{content.REQUIRED}",
        f"5|begun|Key|{sheet.HAS_DRAFT}",
        f"5|begun|Currency|{sheet.FIXED}",
        f"5|begun|Name|{content.REQUIRED}",
    ]


def test_files_of_collections(service: Service, sign_in: SignIn) -> None:
    browser = sign_in("catalogue")
    assert browser.get("/office/collections/import").status_code == 200
    product = value(service, "SELECT key FROM products WHERE currency = 'GBP' AND active ORDER BY id LIMIT 1")
    header = "key,currency,name,active,country,value_points,allow_custom_value,products"
    file = f'{header}\nsnacks,GBP,Snacks,yes,GB,"5, 10",no,{product}\n'
    answer = browser.upload("/office/collections/import", file.replace(str(product), "nothing").encode())
    assert (answer.status_code, "There is no product nothing." in answer.text) == (422, True)

    answer = browser.upload("/office/collections/import", file.encode())
    assert answer.headers["location"] == "/office/collections?state=drafts"
    assert "Publish 1 draft" in browser.get("/office/collections?state=drafts").text
    assert browser.post("/office/collections/publish", currency="").status_code == 303
    assert "Snacks" in json.dumps(service.client("hr").get("/collections").json())
    exported = browser.get("/office/collections.csv").text.lstrip("\ufeff").splitlines()
    assert exported[0] == header
    assert any(line.startswith("snacks,GBP,Snacks,yes,GB") for line in exported)
    browser.get("/office/collections/import")
    again = browser.upload("/office/collections/import", file.encode())
    assert again.headers["location"] == "/office/collections"
