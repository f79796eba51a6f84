"""Contacts in the web application: made, searched, changed, imported with all that is wrong said at once, and sent to."""

import html
import re

import pytest
from tests.reports.conftest import take_all
from tests.web.api.conftest import RICH_WORLD, Service
from tests.web.console.conftest import Browser, SignIn

WORLD = RICH_WORLD
NONE, FORGED = "\N{EN DASH}", ("[" * 10_000, "[" + "[1, []]," * 5_001 + '[1, ["a"]]]')
FILE = (
    "Name,E-mail,Birthday,Start date,Group,Street,Postcode,Town\n"
    "Ada Byron,ada@example.com,10/12,2024-03-01,Sales,1 High St,SW1,London\n"
    "Bo,bo@example,31/02\n"
    "Cy,cy@example.com,14 Tober 1990,soon\n"
    "Di,di@example.com,29/02,,Sales\n"
)


@pytest.fixture
def ada(service: Service, sign_in: SignIn) -> Browser:
    service.sql("DELETE FROM contacts")
    service.sql("DELETE FROM contact_groups")
    service.sql("DELETE FROM contact_fields")
    return sign_in("ada@acme.example")


def create(browser: Browser, **fields: str) -> str:
    """Creates a contact, and returns the path of its page."""
    made = browser.submit("/app/contacts/new", "/app/contacts", **fields)
    assert made.status_code == 303, made.text
    return made.headers["location"]


def test_a_contact_is_made_changed_and_deleted(service: Service, ada: Browser) -> None:
    path = create(
        ada, name="Ada Byron", email="Ada@example.com", birthday="29/02", address="1 High St", groups="Sales, London"
    )
    ada.get(path)
    for said in ('value="29/02"', "1 High St", 'value="Sales" checked', 'value="London" checked'):
        assert said in ada.page.text
    assert b"High" not in service.sql("SELECT sealed_address FROM contacts")[0][0]
    changed = ada.post(path, email="ada@example.com", name="Ada", group="London", left="yes")
    assert changed.status_code == 303
    assert f"Ada ada@example.com London {NONE} {NONE} Has left" in ada.read("/app/contacts")
    assert ada.submit(f"{path}/remove").headers["location"] == "/app/contacts"
    assert ada.get(path).status_code == 404
    acts = service.sql(
        "SELECT act, before::text, after::text FROM audit_events WHERE act LIKE 'contact.%' ORDER BY id DESC LIMIT 3"
    )
    assert [row["act"] for row in acts] == ["contact.removed", "contact.changed", "contact.created"]
    assert not any("ada" in f"{row['before']}{row['after']}".lower() for row in acts), "nobody is named"


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("birthday", "25-12", "No year has this day. Type the day first, such as 14/03."),
        ("birthday", "14/03/1990", "Leave out the year."),
        ("start_date", "soon", "Type a date, such as 31/03/2024."),
        ("email", "nobody", "The @ is missing"),
        ("email", "TAKEN@example.com", "Another contact has this address."),
        ("external_id", "7", "Another contact has this id."),
        ("groups", "x" * 61, "The name of a group has more than 60 characters."),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_lost(
    ada: Browser, field: str, typed: str, said: str
) -> None:
    create(ada, email="taken@example.com", external_id="7")
    ada.get("/app/contacts/new")
    refused = ada.post("/app/contacts", **{"email": "new@example.com", "name": "Zoë", field: typed})
    assert refused.status_code == 422
    (error,) = re.findall(f'id="{field}-error">([^<]*)', refused.text)
    assert said in html.unescape(error)
    assert 'value="Zoë"' in refused.text
    assert f'value="{typed}"' in refused.text


def test_all_fields_are_checked_at_once_and_the_first_wrong_one_has_the_focus(ada: Browser) -> None:
    refused = ada.submit("/app/contacts/new", "/app/contacts", email="x@acme", birthday="31/02", start_date="soon")
    assert re.findall(r'id="(\w+)-error"', refused.text) == ["email", "birthday", "start_date"]
    assert re.findall(r'id="(\w+)"[^>]* autofocus', refused.text) == ["email"]


def test_a_window_opened_before_somebody_left_brings_nobody_back(service: Service, ada: Browser) -> None:
    path = create(ada, email="ada@example.com", name="Ada")
    old = {"email": "ada@example.com", "name": "Ada B.", "was_left": ""}
    assert ada.submit(path, email="ada@example.com", name="Ada", was_left="", left="yes").status_code == 303
    refused = ada.submit(path, **(old | {"birthday": "31/02"}))
    assert 'name="was_left" value=""' in refused.text
    assert ada.submit(path, **old).status_code == 303
    assert f"Ada B. ada@example.com {NONE} {NONE} {NONE} Has left" in ada.read("/app/contacts")
    assert 'name="was_left" value="yes"' in ada.get(path).text
    assert ada.post(path, **(old | {"was_left": "yes"})).status_code == 303
    assert "Has left" not in ada.read("/app/contacts").partition("Ada B.")[2][:60]


def test_new_groups_are_typed_as_a_file_has_them(service: Service, ada: Browser) -> None:
    create(ada, email="ada@example.com", groups='Sales; Berlin, "HR, Paris"')
    assert {row["name"] for row in service.sql("SELECT name FROM contact_groups")} == {"Sales", "Berlin", "HR, Paris"}


def test_a_file_without_a_column_of_addresses_asks_for_it(ada: Browser) -> None:
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", b"Name,Telephone\nAda,123\n")
    ada.says("Choose the column of the e-mail addresses, and one column for each of the others.")
    ada.page = ada.upload("/app/contacts/import", b"Name,Email\n")
    ada.says("It has headings, and no rows below them.")
    ada.page = ada.upload("/app/contacts/import", b"BEGIN:VCARD\r\nEMAIL:ada@example.com\r\nEND:VCARD\r\n")
    ada.says("This is neither a CSV file nor a workbook of Excel (XLSX) or OpenDocument (ODS).")


def test_a_file_is_imported_and_all_that_is_wrong_with_it_is_said(service: Service, ada: Browser) -> None:
    create(ada, email="ADA@example.com", name="A", groups="London")
    ada.get("/app/contacts/import")
    checked = ada.upload("/app/contacts/import", FILE.encode())
    assert checked.status_code == 200
    ada.page = checked
    ada.says("2 rows are ready. 2 rows to fix.")
    ada.says("bo@example Bo The part after @ is incomplete. Birthday “31/02”: No year has this day.")
    ada.says(
        "cy@example.com Cy Birthday “14 Tober 1990”: Type a day and a month, such as 14/03. Start date “soon”: Type a date, such as 31/03/2024."
    )
    ada.says("Leave out the rows to fix and import 2 contacts")
    sheet = html.unescape(re.findall(r'name="sheet" value="([^"]*)"', checked.text)[0])
    selects = re.findall(r'name="(\w+)"><option value="">(.*?)</select>', checked.text, re.DOTALL)
    chosen = {name: at for name, options in selects for at in re.findall(r'value="(\d+)" selected', options)}
    assert chosen == {
        "email": "1",
        "name": "0",
        "birthday": "2",
        "start_date": "3",
        "groups": "4",
        "address": "5",
        "address_2": "6",
        "address_3": "7",
    }
    again = ada.upload("/app/contacts/check", b"", sheet=sheet, heading="yes", email="1", birthday="0")
    assert again.status_code == 200
    assert "Type a day and a month" in again.text
    ada.page = again
    taken = ada.upload("/app/contacts/check", b"", sheet=sheet, heading="yes", then="import", **chosen)
    assert taken.headers["location"] == "/app/contacts"
    rows = service.sql("SELECT email, name, birthday FROM contacts ORDER BY sought")
    assert [tuple(row) for row in rows] == [("ada@example.com", "Ada Byron", 1210), ("di@example.com", "Di", 229)]
    members = service.sql(
        "SELECT g.name, count(*) FROM contact_groups g JOIN contact_members m ON m.group_id = g.id GROUP BY 1"
    )
    assert dict(members) == {"Sales": 2, "London": 1}
    [found] = service.sql("SELECT id FROM contacts WHERE email = 'ada@example.com'")
    assert "1 High St\nSW1\nLondon" in html.unescape(ada.get(f"/app/contacts/{found['id']}").text)


def test_the_own_field_whose_value_is_wrong_is_named(ada: Browser) -> None:
    assert ada.submit("/app/contacts/fields", "/app/contacts/fields", name="Shirt").status_code == 303
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", f"email,Shirt\na@example.com,{'x' * 201}\n".encode())
    ada.says(f"Shirt “{'x' * 60}…”: This has more than 200 characters.")


def test_dates_with_the_month_first_are_said_before_they_are_imported(ada: Browser) -> None:
    ada.get("/app/contacts/import")
    said = "Birthday: the month is read first, as in 03/14/2024, because some dates here have no other meaning."
    ada.page = ada.upload("/app/contacts/import", b"email,birthday\na@example.com,3/14/85\nb@example.com,3/4/85\n")
    ada.says("2 rows are ready.", said)
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", b"email,birthday\na@example.com,14/3/85\nb@example.com,3/4/85\n")
    assert said not in ada.text


def test_a_row_that_no_longer_fits_is_named_and_nothing_is_imported(service: Service, ada: Browser) -> None:
    create(ada, email="sam@example.com", external_id="7")
    ada.get("/app/contacts/import")
    checked = ada.upload("/app/contacts/import", b"email,id\nnobody,1\nada@example.com,8\nkim@example.com,7\n")
    sheet = html.unescape(re.findall(r'name="sheet" value="([^"]*)"', checked.text)[0])
    ada.page = checked
    chosen = {"email": "0", "external_id": "1"}
    ada.page = ada.upload("/app/contacts/check", b"", sheet=sheet, heading="yes", then="import", **chosen)
    ada.says("Some rows no longer fit your contacts.", "4 kim@example.com", "“7”: Another contact has this id.")
    assert service.sql("SELECT count(*) FROM contacts")[0][0] == 1


@pytest.mark.parametrize(
    ("name", "data", "button"),
    [("Иван Петров", "Иван Петров".encode("cp1251"), "Read the file as Windows, Cyrillic"),
     ("Zoë Peña", "Zoë Peña".encode().decode("cp1252").encode(), "Repair these names")],
    ids=["another encoding", "encoded twice"],
)  # fmt: skip
def test_names_with_odd_letters_are_read_again_with_one_press(
    service: Service, ada: Browser, name: str, data: bytes, button: str
) -> None:
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", b"email,name\nzoe@example.com," + data + b"\n")
    ada.says("Some names have odd letters:", f"was probably “{name}”.", button)
    for then in ("letters", "import"):
        kept = dict(re.findall(r'type="hidden" name="(sheet|encodings?|letters)" value="([^"]*)"', ada.page.text))
        given = {name: html.unescape(value) for name, value in kept.items()}
        ada.page = ada.upload("/app/contacts/check", b"", heading="yes", email="0", name="1", then=then, **given)
        if then == "letters":
            assert "odd letters" not in ada.page.text
    assert service.sql("SELECT name FROM contacts") == [(name,)]


@pytest.mark.parametrize("given", [{}, {"encoding": "rot13", "encodings": "rot13 hex"}, {"encoding": "cp1252"}])
def test_a_sheet_is_read_again_only_as_was_offered(ada: Browser, given: dict[str, str]) -> None:
    ada.get("/app/contacts/import")
    sheet = '[[1,["email","name"]],[2,["zoe@example.com","Zo\u2018"]]]'
    again = ada.upload("/app/contacts/check", b"", sheet=sheet, email="0", then="letters", letters="mac_roman", **given)
    assert again.status_code == 200
    assert "Zo\u2018" in html.unescape(again.text)


def test_rows_of_one_address_are_counted_as_one_contact(ada: Browser) -> None:
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", b"email\nada@example.com\nADA@example.com\nbo@example.com\nnobody\n")
    ada.says("3 rows are ready. 1 row has the address of a row before it: both become one contact. 1 row to fix.")
    ada.says("Row 3 has the address of row 2.", "Leave out the rows to fix and import 2 contacts")


@pytest.mark.parametrize("sheet", ["", "[]", "{}", '[[1, "x"]]', "[[1, []]]", *FORGED])
def test_a_check_without_a_sheet_asks_for_the_file(ada: Browser, sheet: str) -> None:
    ada.get("/app/contacts/import")
    assert ada.upload("/app/contacts/check", b"", sheet=sheet, email="0").status_code == 422


def test_a_file_of_too_many_contacts_says_to_split_it(ada: Browser) -> None:
    ada.get("/app/contacts/import")
    refused = ada.upload("/app/contacts/import", b"a@example.com\n" * 5002)
    assert refused.status_code == 422
    assert "There are more than 5,000 rows. Split the file." in refused.text


def test_groups_and_fields(service: Service, ada: Browser) -> None:
    assert ada.submit("/app/contacts/groups", name="Sales").status_code == 303
    assert "This name is taken" in ada.submit("/app/contacts/groups", name="SALES").text
    [[group]] = service.sql("SELECT id FROM contact_groups")
    assert ada.submit(f"/app/contacts/groups/{group}", name="Sales UK").status_code == 303

    assert ada.submit("/app/contacts/fields", name="Cost centre").status_code == 303
    assert "{cost_centre}" in ada.read("/app/contacts/fields")
    path = create(ada, email="ada@example.com", field_cost_centre="1138", group="Sales UK")
    assert 'value="1138"' in ada.get(path).text
    assert ada.submit("/app/contacts/fields/cost_centre", name="Centre").status_code == 303
    assert ada.submit("/app/contacts/fields/cost_centre", "/app/contacts/fields/cost_centre/remove").status_code == 303
    assert service.sql("SELECT own_fields::text FROM contacts")[0][0] == "{}"
    assert ada.submit(f"/app/contacts/groups/{group}", f"/app/contacts/groups/{group}/remove").status_code == 303
    assert service.sql("SELECT count(*) FROM contact_members")[0][0] == 0


def test_lists_are_searched_paged_and_downloaded(service: Service, ada: Browser) -> None:
    ada.get("/app/contacts/import")
    rows = "".join(f"p{number:03}@example.com,Person {number:03},Sales\n" for number in range(120))
    checked = ada.upload("/app/contacts/import", f"email,name,group\n{rows}".encode())
    sheet = html.unescape(re.findall(r'name="sheet" value="([^"]*)"', checked.text)[0])
    ada.page = checked
    assert ada.upload(
        "/app/contacts/check", b"", sheet=sheet, heading="yes", then="import", email="0", name="1", groups="2"
    ).is_redirect
    seen: list[str] = []
    path = "/app/contacts?q=person"
    while path:
        page = ada.get(path)
        seen += re.findall(r"<small>(p\d+@example.com)</small>", page.text)
        path = next(iter(html.unescape(link) for link in re.findall(r'href="([^"]+)" rel="next"', page.text)), "")
    assert seen == [f"p{number:03}@example.com" for number in range(120)]
    previous = html.unescape(re.findall(r'href="([^"]+)" rel="prev"', page.text)[0])
    assert re.findall(r"<small>(p\d+)@", ada.get(previous).text)[0] == "p050"
    assert "1 contact" in (ada.get("/app/contacts?q=PERSON+007") and ada.text)
    assert "No contact matches." in (ada.get("/app/contacts?q=nobody") and ada.text)
    service.sql("UPDATE contacts SET left_at = clock_now() WHERE email = 'p111@example.com'")
    service.sql("UPDATE contacts SET external_id = '0110' WHERE email = 'p110@example.com'")
    lines = ada.get("/app/contacts.csv?q=p11").text.splitlines()
    assert len(lines) == 11
    assert lines[1:3] == [
        "p110@example.com,Person 110,,,,,'0110,Sales,Active",
        "p111@example.com,Person 111,,,,,,Sales,Has left",
    ]


def test_everybody_sent_to_lately_becomes_a_contact(service: Service, ada: Browser, sign_in: SignIn) -> None:
    recipients = [{"email": "Sam@example.com", "name": "Sam"}, {"email": "kim@example.com"}]
    assert service.send("gift", "coffee", value=5, recipients=recipients).status_code == 200
    create(ada, email="sam@example.com", name="Samuel")
    service.sql(
        "UPDATE orders SET service_account_id = NULL, source = 'web', user_id = (SELECT id FROM users WHERE email = 'ada@acme.example')"
    )
    service.on_pool(lambda database, _: take_all(database))  # the orders reach the lists of orders
    cem = sign_in("cem@acme.example")
    cem.submit("/app/contacts", "/app/contacts/past")
    assert service.sql("SELECT count(*) FROM contacts")[0][0] == 1, "a member sees own orders alone"
    assert ada.submit("/app/contacts", "/app/contacts/past").status_code == 303
    names = {row["email"]: row["name"] for row in service.sql("SELECT email, name FROM contacts")}
    assert (names["sam@example.com"], names["kim@example.com"]) == ("Samuel", "")


def test_contacts_become_the_recipients_of_a_send(service: Service, ada: Browser) -> None:
    people = [
        create(ada, email=f"{name}@example.com", name=name.title(), groups="Sales") for name in ("ada", "bo", "cy")
    ]
    assert ada.submit(people[2], email="cy@example.com", name="Cy", group="Sales", left="yes").status_code == 303
    [[product]] = service.sql("SELECT id FROM products WHERE key = 'coffee'")
    ada.get(f"/app/send/gift?product={product}&country=GB")
    path = ada.post("/app/send/gift", product=str(product), country="GB", value="10").headers["location"]
    draft = path.removesuffix("/recipients")
    assert f"{draft}/contacts" in (ada.get(path) and ada.links)
    refused = ada.get(f"{draft}/contacts") and ada.post(f"{draft}/contacts")
    assert "autofocus>Choose at least one contact." in refused.text
    ids = [one.rpartition("/")[2] for one in people]
    assert ada.post(f"{draft}/contacts", contact=ids).headers["location"] == path
    ada.sees(path, "ada@example.com", "bo@example.com", "1 contact was not added: they have left, or were deleted.")
    assert "cy@example.com" not in ada.text, "who left gets nothing"
    [[group]] = service.sql("SELECT id FROM contact_groups")
    assert "cy@example.com" not in ada.read(f"{draft}/contacts")
    ada.get(f"{draft}/contacts?group={group}&q=ada")
    assert ada.post(f"{draft}/contacts", q="ada", group=str(group), all="yes").status_code == 303
    ada.sees(path, "1 contact was not added again: they are in the list.")
    assert service.sql("SELECT count(*) FROM draft_rows WHERE draft_id = $1", draft.rpartition("/")[2])[0][0] == 2


def begin(service: Service, browser: Browser, rows: str) -> str:
    """Begins a send to those rows, and returns the path of its draft."""
    [[product]] = service.sql("SELECT id FROM products WHERE key = 'coffee'")
    browser.get(f"/app/send/gift?product={product}&country=GB")
    path = browser.post("/app/send/gift", product=str(product), country="GB", value="10").headers["location"]
    assert browser.submit(path, rows=rows).status_code == 303
    return path.removesuffix("/recipients")


@pytest.mark.slow
def test_a_message_has_placeholders(service: Service, ada: Browser) -> None:
    ada.submit("/app/contacts/fields", name="Cost centre")
    create(ada, email="bo@example.com", name="Bo Diddley", field_cost_centre="4100")
    draft = begin(service, ada, "email,name\nbo@example.com,\nada@example.com,Dr. Ada Byron\n")
    ada.get(f"{draft}/message")
    for said in ("{first_name}", "{name}", "{company}", "{cost_centre}"):
        assert f'data-insert="{said}"' in ada.page.text
    refused = ada.post(
        f"{draft}/message", wrapping_key="gold", from_name="", message="Dear {firstname}, {nope}, yours", then="go"
    )
    assert refused.status_code == 422
    (error,) = re.findall('id="message-error">([^<]*)', refused.text)
    assert html.unescape(error) == "Unknown: {firstname}, {nope}. Choose from the placeholders below."
    assert "Dear {firstname}, {nope}, yours" in html.unescape(refused.text)

    ada.page = refused
    text = "Dear {first_name|friend} of {cost_centre|nowhere}"
    taken = ada.post(f"{draft}/message", wrapping_key="gold", from_name="", message=text, then="look")
    assert taken.status_code == 303
    assert "Dear Bo of 4100" in html.unescape(ada.get(f"{draft}/mail?lang=en").text), "as its first recipient reads it"

    [[account]] = service.sql("SELECT id FROM accounts WHERE key = 'gbp'")
    ada.submit(f"{draft}/delivery", when="now", account=str(account), reference="")
    page = ada.get(f"{draft}/review").text
    quote = re.findall(r'name="quote" value="([^"]+)"', page)[0]
    assert ada.post(f"{draft}/place", quote=quote).status_code == 303
    rows = service.of_order(draft.rpartition("/")[2], "message", "line_messages", "ORDER BY number")
    assert [row["message"] for row in rows] == ["Dear Bo of 4100", "Dear Ada of nowhere"]


def test_a_field_that_was_deleted_meanwhile_is_asked_about_before_sending(service: Service, ada: Browser) -> None:
    ada.submit("/app/contacts/fields", name="Cost centre")
    draft = begin(service, ada, "email,name\nbo@example.com,Bo\n")
    ada.submit(f"{draft}/message", wrapping_key="gold", from_name="", message="{cost_centre}", then="go")
    service.sql("DELETE FROM contact_fields")
    assert "The message cannot be used." in ada.read(f"{draft}/review")


def test_countries_are_offered_in_the_order_of_their_names(service: Service, sign_in: SignIn) -> None:
    ada = sign_in("ada@acme.example")
    ada.headers["Accept-Language"] = "de"
    for page, names in (
        ("/app/contacts/new", ["Oman", "Österreich", "Pakistan"]),
        ("/app/send", ["Irland", "Vereinigtes Königreich"]),
    ):
        offered = re.findall(r'<option value="[A-Z]{2}"[^>]*>([^<]+)<', ada.get(page).text)
        assert [one for one in offered if one in names] == names


def test_counts_of_many_contacts_end_at_a_limit(service: Service, ada: Browser) -> None:
    service.sql(
        """
        WITH g AS (INSERT INTO contact_groups (customer_id, environment, name) VALUES (1, 'production', 'All') RETURNING id),
        c AS (
            INSERT INTO contacts (customer_id, environment, email, email_key, name, sought)
            SELECT 1, 'production', n || '@many.example', n || '@many.example', 'P', 'p ' || n || '@many.example' FROM generate_series(1, 10001) AS n
            RETURNING id)
        INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
        SELECT 1, 'production', g.id, c.id, '2026-01-01' FROM g, c
        """
    )
    page = ada.read("/app/contacts")
    assert "10,000+ contacts" in page
    assert "All (1,000+)" in page
    assert "1,000+" in ada.read("/app/contacts/groups")
    assert len(ada.get("/app/contacts.csv").text.splitlines()) == 10_002
