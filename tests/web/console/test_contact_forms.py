"""Forms of contacts: dates that may have the day or the month first, and groups that are named without counting their members."""

import html
import re

import pytest
from tests.web.api.conftest import RICH_WORLD, Service
from tests.web.console.conftest import SignIn

from largesse.contacts import groups

WORLD = RICH_WORLD


def test_dates_that_can_have_either_first_are_named_and_their_order_chosen(service: Service, sign_in: SignIn) -> None:
    ada = sign_in("ada@acme.example")
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", b"email,birthday\na@example.com,12/10/1985\nb@example.com,1/1/90\n")
    ada.says("Birthday: “12/10/1985” is read with the day first.", "Order in dates")
    kept = re.findall(r'type="hidden" name="sheet" value="([^"]*)"', ada.page.text)[0]
    given = {"sheet": html.unescape(kept), "heading": "yes", "email": "0", "birthday": "1", "dates": "month"}
    ada.page = ada.upload("/app/contacts/check", b"", **given)
    assert "is read with the day first" not in ada.page.text
    assert '<option value="month" selected>' in ada.page.text
    ada.upload("/app/contacts/check", b"", then="import", **given)
    assert service.sql(
        "SELECT birthday FROM contacts WHERE email_key IN ('a@example.com', 'b@example.com') ORDER BY email_key"
    ) == [(1210,), (101,)]


def test_forms_that_only_name_groups_do_not_count_their_members(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = sign_in("ada@acme.example")
    made = ada.submit("/app/contacts/new", "/app/contacts", email="bo@example.com", groups="sales, Berlin")
    monkeypatch.setattr(groups, "_LIST", "SELECT members_of_millions")
    assert ada.get("/app/contacts/groups").status_code == 500
    for form in (made.headers["location"], "/app/contacts/new", "/app/automations/new"):
        page = ada.get(form).text
        assert page.index("Berlin") < page.index("sales"), form


@pytest.mark.parametrize(
    ("name", "typed", "one", "other", "clear", "shown"),
    [
        ("birthday", "3/4", "3 Apr", "4 Mar", "4 March", "04/03"),
        ("start_date", "3/4/2026", "3 April 2026", "4 March 2026", "4 March 2026", "04/03/2026"),
    ],
)
def test_english_forms_ask_which_day_is_meant_and_german_ones_show_dots(
    service: Service, sign_in: SignIn, name: str, typed: str, one: str, other: str, clear: str, shown: str
) -> None:
    ada = sign_in("ada@acme.example")
    email = f"{name}@example.com"
    ada.page = ada.submit("/app/contacts/new", "/app/contacts", email=email, **{name: typed})
    ada.says(f"Type the month as a word: “{typed}” can be {one} or {other}.")
    made = ada.submit("/app/contacts/new", "/app/contacts", email=email, **{name: clear}).headers["location"]
    assert f'value="{shown}"' in ada.get(made).text
    saved = ada.post(made, email=email, name="Bo", **{name: shown})
    assert saved.status_code == 303, "what the form showed is not asked"
    assert f'value="{shown}"' in ada.get(made).text
    ada.headers["Accept-Language"] = "de"
    dotted = shown.replace("/", ".")
    assert f'value="{dotted}"' in ada.get(made).text
    assert ada.post(made, email=email, name="Cy", **{name: dotted}).status_code == 303
    assert f'value="{dotted}"' in ada.get(made).text


def test_a_new_address_that_looks_mistyped_is_questioned_and_a_saved_one_is_not(
    service: Service, sign_in: SignIn
) -> None:
    ada = sign_in("ada@acme.example")
    typed = {"email": "kim@outlok.com", "name": "Kim"}
    ada.page = ada.submit("/app/contacts/new", "/app/contacts", **typed)
    ada.says("Did you mean kim@outlook.com?")
    made = ada.submit("/app/contacts/new", "/app/contacts", **typed, sure_email="kim@outlok.com").headers["location"]
    assert ada.submit(made, **typed | {"name": "Kim Lee"}).status_code == 303
    ada.page = ada.submit(made, email="kim@outlook.con", name="Kim Lee")
    ada.says("Did you mean kim@outlook.com?")
    assert ada.submit(made, email="kim@outlook.com", name="Kim Lee").status_code == 303


def test_addresses_of_a_file_that_look_mistyped_are_named_and_corrected_if_that_is_chosen(
    service: Service, sign_in: SignIn
) -> None:
    ada = sign_in("ada@acme.example")
    ada.get("/app/contacts/import")
    file = b"email,name\nlu@gmail.com,Lu\nLu@gmail.con,Lu Li\nno@gmail,No\nmo@hotmial.com,Mo\n"
    ada.page = ada.upload("/app/contacts/import", file)
    ada.says(
        "3 rows are ready. 1 row to fix.", "2 addresses look mistyped. Row 3: Lu@gmail.com? Row 5: mo@hotmail.com?"
    )
    assert "has the address of row" not in ada.text
    kept = re.findall(r'type="hidden" name="sheet" value="([^"]*)"', ada.page.text)[0]
    given = {"sheet": html.unescape(kept), "heading": "yes", "email": "0", "name": "1", "correct": "yes"}
    ada.page = ada.upload("/app/contacts/check", b"", **given)
    ada.says("Row 3 has the address of row 2.", "2 addresses look mistyped.")
    assert 'name="correct" value="yes" checked' in ada.page.text
    ada.upload("/app/contacts/check", b"", then="import", **given)
    saved = service.sql("SELECT email, name FROM contacts WHERE name IN ('Lu', 'Lu Li', 'Mo') ORDER BY email_key")
    assert [tuple(row) for row in saved] == [("Lu@gmail.com", "Lu Li"), ("mo@hotmail.com", "Mo")]
