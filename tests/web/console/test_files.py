"""CSV files follow the language of the person's pages, and the import of contacts reads its own in each language."""

import csv
import html
import io
import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.test_requests import fill

CONTACT = """SELECT name, email, language, country, birthday, start_date, external_id,
    (SELECT array_agg(g.name ORDER BY g.name) FROM contact_members m JOIN contact_groups g ON g.id = m.group_id WHERE m.contact_id = c.id)
    FROM contacts c"""

ROWS = {
    ("/app/people.csv", "de"): {"Name": "Ada", "Rolle": "Administrator", "Aktiv": "Ja", "Zweiter Schritt": "Nein"},
    ("/app/people.csv", "fr"): {"Nom": "Ada", "Rôle": "Administrateur", "Actif": "Oui", "Seconde étape": "Non"},
    ("/app/keys.csv", "de"): {
        "Name": "hr",
        "Dienstkonto": "HR bot",
        "Berechtigungen": "Alles",
        "Erlaubte Netze": "Alle Netze",
    },
    ("/app/service-accounts.csv", "fr"): {
        "Nom": "HR bot",
        "État": "Actif",
        "Plus grande commande": "",
        "En un jour (UTC)": "",
    },
    ("/app/requests.csv", "de"): {
        "Anfrage-ID": "req-1",
        "Pfad": "/orders/x1",
        "Dauer (ms)": "1,5",
        "Netzwerkadresse": "192.0.2.7",
    },
}


def rows_of(browser: Browser, path: str, language: str) -> list[dict[str, str]]:
    browser.headers["Accept-Language"] = language
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text.lstrip("\ufeff")), delimiter=";"))


@pytest.mark.parametrize(("path", "language"), ROWS)
def test_a_file_is_in_the_language_of_its_page(service: Service, ada: Browser, path: str, language: str) -> None:
    fill(service, "acme", "production", "req-", 2)
    wanted = ROWS[path, language]
    name = next(iter(wanted))
    rows = rows_of(ada, path, language)
    assert set(wanted) <= set(rows[0]), rows[0]
    row = next(row for row in rows if row[name] == wanted[name])
    assert {key: row[key] for key in wanted} == wanted
    assert not [heading for heading in row if "_" in heading]


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_the_file_of_contacts_is_read_again_in_each_language(service: Service, ada: Browser, language: str) -> None:
    service.sql("DELETE FROM contacts")
    typed = {"email": "zoe@example.com", "name": "Zoë", "language": "fr", "country": "FR", "birthday": "12 October"}
    typed |= {"start_date": "2024-03-01", "external_id": "000123", "groups": "Sales, London"}
    if not service.sql("SELECT 1 FROM contact_groups WHERE name = 'Paris, Lyon'"):
        assert ada.submit("/app/contacts/groups", "/app/contacts/groups", name="Paris, Lyon").status_code == 303
    typed["group"] = "Paris, Lyon"
    assert ada.submit("/app/contacts/new", "/app/contacts", **typed).status_code == 303
    before = [tuple(row) for row in service.sql(CONTACT)]
    ada.headers["Accept-Language"] = language
    file = ada.get("/app/contacts.csv").content
    assert b"'000123" in file  # a spreadsheet would drop the zeros
    assert {"en": "12 Oct", "de": "12. Okt.", "fr": "12 oct."}[language].encode() in file
    service.sql("DELETE FROM contacts")
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", file)
    fields = {"sheet": html.unescape(re.findall(r'name="sheet" value="([^"]*)"', ada.page.text)[0])}
    for name, options in re.findall(r'<select id="[^"]*" name="([^"]+)">(.*?)</select>', ada.page.text, re.DOTALL):
        fields[name] = "".join(re.findall(r'value="(\d+)" selected', options))
    assert {"en": "Not read:", "de": "Nicht gelesen:", "fr": "Non lu :"}[language] not in ada.text
    assert ada.upload("/app/contacts/check", b"", heading="yes", then="import", **fields).status_code == 303
    assert [tuple(row) for row in service.sql(CONTACT)] == before
    assert before[0][-1] == ["London", "Paris, Lyon", "Sales"]
