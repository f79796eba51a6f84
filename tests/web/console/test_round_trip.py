"""What our own files of contacts and recipients say comes back unchanged when they are imported, in every language of the pages."""

import csv
import html
import io
import re
from datetime import date

import msgspec
import pytest
from tests.drafts.conftest import finished
from tests.web.api.conftest import RICH_WORLD, Service
from tests.web.console.conftest import Browser, SignIn

from largesse.drafts.checking import bad_rows_file, check_rows
from largesse.drafts.columns import guess_columns
from largesse.drafts.sheet import FILES
from largesse.drafts.text_sheet import read_text_file, read_text_sheet

WORLD = RICH_WORLD
LANGUAGES = ("en", "de", "fr")
NAMES = (
    "Ada (12)", "“Bo”", "„Cy“", "«Di»", "\N{LEFT SINGLE QUOTATION MARK}Ev\N{RIGHT SINGLE QUOTATION MARK}", "'=Fy", "=SUM(1)", "+44", "-", "@gil", "a;=b, 'c';'=d", '"Ike" "', "Byron, Ada", "007", "1138",
    "Ada Byron <ada@example.com>", "ada@example.com", "mailto:a@example.com", "Zoë | Müller", "EMP-0012", "Name", "x\N{ZERO WIDTH JOINER}y",
)  # fmt: skip
OWN = ("Name", "First name", "E-mail", "Country", "=Cost @ home", "State")
_READ = """
    SELECT email, name, language, country, birthday, start_date, external_id, own_fields::text, left_at IS NULL AS is_active,
           (SELECT array_agg(g.name ORDER BY g.name) FROM contact_members m JOIN contact_groups g ON g.id = m.group_id
            WHERE m.contact_id = c.id) AS groups
    FROM contacts c ORDER BY email
"""

_ADD = """
    INSERT INTO contacts (customer_id, environment, email, email_key, name, sought, language, country, birthday, start_date, external_id,
                          own_fields, left_at)
    SELECT $1, 'production', email, email, name, '', language, country, birthday, start_date, external_id, own::jsonb,
           CASE WHEN has_left THEN clock_now() END
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::date[], $8::text[], $9::text[], $10::bool[])
         AS r(email, name, language, country, birthday, start_date, external_id, own, has_left)
"""
_JOIN = """
    INSERT INTO contact_members (customer_id, environment, group_id, contact_id, joined_on)
    SELECT c.customer_id, 'production', group_id, c.id, '2026-01-01'
    FROM contacts c JOIN unnest($2::text[], $3::int[]) AS m(email, group_id) ON m.email = c.email WHERE c.customer_id = $1
"""


@pytest.fixture
def ada(service: Service, sign_in: SignIn) -> Browser:
    for table in ("contacts", "contact_groups", "contact_fields"):
        service.sql(f"DELETE FROM {table}")
    return sign_in("ada@acme.example")


def fill(service: Service, ada: Browser) -> None:
    """Creates a contact for each hostile name, and a birthday for each day of the year."""
    for name in OWN:
        assert ada.submit("/app/contacts/fields", name=name).status_code == 303
    assert ada.submit(
        "/app/contacts/new", "/app/contacts", email="first@example.com", groups='"A, ""B""", ""C"", 0815, Sales; Choir'
    ).is_redirect
    service.sql("DELETE FROM contacts")
    keys = [row[0] for row in service.sql("SELECT key FROM contact_fields ORDER BY key")]
    groups = [row[0] for row in service.sql("SELECT id FROM contact_groups ORDER BY id")]
    days = [
        (month * 100 + day)
        for month in range(1, 13)
        for day in range(1, 32 if month in {1, 3, 5, 7, 8, 10, 12} else 30)
    ]
    rows, members = [], []
    for number, birthday in enumerate(days):
        email = f"p{number}@example.com" if number else "'+plus@example.com"
        name = NAMES[number % len(NAMES)]
        own = {key: NAMES[(number + at) % len(NAMES)] for at, key in enumerate(keys)}
        country = ("GB", "NA", "DE", "CI")[number % 4]
        start = date(2000 + number % 20, 1 + number % 12, 1 + number % 28)
        external_id = ("007", "'008", "123456789012", "=1", "E1")[number % 5] + ("" if number < 5 else f"-{number}")
        typed = msgspec.json.encode(own).decode()
        language = LANGUAGES[number % 3]
        rows.append((email, name, language, country, birthday, start, external_id, typed, number % 3 == 0))
        members += [(email, group) for group in groups[: number % 5]]
    acme = service.ids["customers"]["acme"]
    service.sql(_ADD, acme, *map(list, zip(*rows, strict=True)))
    service.sql(_JOIN, acme, *map(list, zip(*members, strict=True)))


def import_all(ada: Browser, data: bytes) -> None:
    """Imports a file of contacts as the page proposes it."""
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", data)
    fields = {"sheet": html.unescape(re.findall(r'name="sheet" value="([^"]*)"', ada.page.text)[0]), "heading": "yes"}
    for name, options in re.findall(
        r'<select id="[^"]*-column" name="([^"]*)">(.*?)</select>', ada.page.text, re.DOTALL
    ):
        fields[name] = next(iter(re.findall(r'value="(\d+)" selected', options)), "")
    assert 'class="fault"' not in ada.page.text, ada.text
    taken = ada.upload("/app/contacts/check", b"", then="import", **fields)
    assert taken.is_redirect, taken.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_exported_contacts_come_back_as_they_were(service: Service, ada: Browser, language: str) -> None:
    fill(service, ada)
    before = [tuple(row) for row in service.sql(_READ)]
    ada.headers["Accept-Language"] = language
    data = ada.get("/app/contacts.csv").content
    for table in ("contact_members", "contacts", "contact_groups"):
        service.sql(f"DELETE FROM {table}")
    import_all(ada, data)
    after = [tuple(row) for row in service.sql(_READ)]
    assert after == before


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_recipients_of_an_order_come_back_as_they_were(service: Service, ada: Browser, language: str) -> None:
    people = [
        {"email": f"{language}{number}@example.com", "name": name, "quantity": 1 + number % 3}
        for number, name in enumerate(NAMES)
    ]
    sent = service.send("gift", "coffee", value=5, recipients=people)
    assert sent.status_code == 200, sent.text
    ada.headers["Accept-Language"] = language
    data = ada.get(f"/app/orders/{sent.json()['reference']}/recipients.csv").content
    sheet = finished(read_text_sheet(read_text_file(data).text))
    checked = finished(check_rows(sheet, guess_columns(sheet)))
    assert [(one.email, one.name, one.quantity) for one in checked.recipients] == [
        tuple(one.values()) for one in people
    ]


def test_rows_to_fix_come_back_as_they_were() -> None:
    text = io.StringIO()
    csv.writer(text).writerows(
        [("email", "name", "quantity", "row", "what is wrong"), *(("no", name, "2", "", "") for name in NAMES)]
    )
    sheet = finished(read_text_sheet(text.getvalue()))
    checked = finished(check_rows(sheet, guess_columns(sheet)))
    handed = finished(read_text_sheet(read_text_file(bad_rows_file(checked)).text))
    again = finished(check_rows(handed, guess_columns(handed)))
    assert [(row.email, row.name) for row in again.rows] == [(row.email, row.name) for row in checked.rows]


def test_our_files_have_the_headings_that_are_known(service: Service, ada: Browser) -> None:
    sent = service.send("gift", "coffee", value=5, recipients=[{"email": "headings@example.com"}])
    found = set()
    for language in LANGUAGES:
        ada.headers["Accept-Language"] = language
        for path in ("/app/contacts.csv", f"/app/orders/{sent.json()['reference']}/recipients.csv"):
            heading = ada.get(path).text.splitlines()[0].removeprefix("\ufeff").casefold().replace("\u2019", "'")
            found |= {known for known in FILES if re.split("[,;]", heading)[: len(known)] == list(known)}
    assert len(found) == 2 * len(LANGUAGES)
