"""The list of recipients: seen, searched, corrected and cut down before anything is paid, without script."""

import io
import re
from collections.abc import Sequence

import openpyxl
import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.console.sending import WORLD, begin, quote_in, ready

__all__ = ["WORLD"]


def draft(browser: Browser, service: Service, rows: str) -> str:
    """The path of a draft with these rows."""
    path = begin(browser, service)
    assert browser.submit(f"{path}/recipients", rows=rows).status_code == 303
    browser.get(f"{path}/recipients")
    return path


def save(browser: Browser, path: str, query: str = "", **columns: Sequence[str]) -> str:
    answer = browser._send("POST", f"{path}/rows{query}", data={"token": browser.token, **columns})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def test_all_rows_to_fix_are_corrected_in_one_form(service: Service, ada: Browser) -> None:
    path = begin(ada, service)
    rows = [f"p{n}@example.com;P{n};1" if n % 13 else f"p{n}.example.com;P{n};0" for n in range(1, 494)]
    ada.get(f"{path}/recipients")
    ada.upload(f"{path}/file", "\n".join(["E-Mail;Name;Anzahl", *rows]).encode("cp1252"))
    ada.sees(f"{path}/recipients", "All 493 Ready 456 To fix 37", "Continue with 456 Fix 37 rows")
    ada.get(f"{path}/recipients?state=fix")
    numbers = re.findall(r'name="number" value="(\d+)"', ada.page.text)
    assert len(numbers) == 37
    assert ada.page.text.count("The @ is missing, as in name@example.com.") == 37
    assert ada.page.text.count("The quantity is not a whole number") == 37

    handed = ada.get(f"{path}/rows-to-fix.csv")
    assert handed.text.count("\r\n") == 38
    assert handed.headers["content-disposition"] == 'attachment; filename="rows-to-fix.csv"'

    ada.get(f"{path}/recipients?state=fix")
    emails = [f"x{n}@example.com" for n in range(3)]
    columns = {"number": numbers[:3], "email": emails, "name": ["", "N", ""], "quantity": ["2", "1", "nope"]}
    assert save(ada, path, "?state=fix", **columns) == f"{path}/recipients?state=fix"
    assert "Ready 458 To fix 35" in ada.read(f"{path}/recipients?state=fix")
    assert 'value="nope"' in ada.page.text

    again = handed.text.replace(".example.com,", "@example.com,").replace(",0,", ",1,")
    ada.upload(f"{path}/file", again.encode(), taking="mend")
    ada.get(f"{path}/recipients")
    # The 37 of the file came to the 458: two of its rows had been corrected in place before.
    assert "Recipients 495 Gifts 496 Total £4,960.00" in ada.text
    ada.post(f"{path}/start-over")
    assert "Type or paste" in ada.read(f"{path}/recipients")


def test_one_of_five_thousand_is_found_with_one_search(service: Service, ada: Browser) -> None:
    lines = "\n".join(f"p{n}@example.com,Recipient {n},1" for n in range(1, 5_001))
    path = draft(ada, service, f"email,name,quantity\n{lines}\n")
    ada.says("All 5,000 Ready 5,000", "Page 1 of 100")
    ada.sees(f"{path}/recipients?q=recipient+4200", "1 recipient found", "p4200@example.com")
    ada.sees(f"{path}/recipients?page=100&sort=-row", "Page 100 of 100", "p1@example.com")
    assert "No recipient matches “nobody”." in ada.read(f"{path}/recipients?q=nobody")


def test_a_search_in_a_filter_does_not_say_that_nobody_matches(service: Service, cem: Browser) -> None:
    path = begin(cem, service)
    cem.submit(f"{path}/recipients", rows="ada@example.com,Ada\nnobody,N\nbo@example.com,Bo,0\n")
    page = cem.get(f"{path}/recipients?state=fix")
    assert re.findall(r'id="([\w-]+)"[^>]* autofocus', page.text) == ["email-2"], "the first that is wrong"
    page = cem.get(f"{path}/recipients?state=fix&q=ada")
    assert "No recipient in this filter matches “ada”. Search 3 recipients" in cem.text
    assert f'href="{path}/recipients?q=ada"' in page.text
    assert "autofocus" not in page.text
    assert "No recipient matches “zoe”. Show all" in cem.read(f"{path}/recipients?q=zoe")


def test_a_row_of_several_addresses_counts_as_its_recipients_everywhere(service: Service, ada: Browser) -> None:
    draft(ada, service, "email,name\nzoe@x.com;yan@x.com,\nbo@x.com,Bo\nnobody,No\n")
    ada.says("All 4 Ready 3 To fix 1", "Recipients 3 Gifts 3")


def test_a_recipient_is_edited_added_and_removed_in_the_list(service: Service, ada: Browser) -> None:
    path = draft(ada, service, "zoe@x.com,Zoë\nbo@x.com,Bo\nzoe@x.com,Zoë\n")
    ada.says("All 3 Ready 3 Duplicates 1", "Same address as row 1")
    assert "<input" not in ada.page.text.partition("<tbody>")[2].partition("</tbody>")[0]
    ada.get(f"{path}/recipients?q=bo&edit=2")
    back = save(ada, path, "?q=bo", number=["2"], email=["bob@x.com"], name=["Bob"], quantity=["3"])
    assert back == f"{path}/recipients?q=bo"
    ada.get(f"{path}/recipients?edit=new")
    save(ada, path, number=["new"], email=["cy@x"], name=["Cy"], quantity=[""])
    assert "Recipients 2 Gifts 5" in ada.read(f"{path}/recipients"), "an address in two rows is one recipient"
    ada.says("The part after @ is incomplete.", "Use cy@x.com")
    ada.post(f"{path}/suggestions", suggestion="4")
    assert "cy@x.com" in ada.read(f"{path}/recipients")
    removed = ada.post(f"{path}/remove?state=ready", remove="4")
    assert removed.headers["location"] == f"{path}/recipients?state=ready"
    assert "Removed Cy." in ada.read(f"{path}/recipients")
    assert ada.post(f"{path}/remove", remove="99").status_code == 303
    assert "Remove 1 duplicate" in ada.read(f"{path}/recipients?state=repeated")
    ada.post(f"{path}/remove-repeated")
    assert "All 2 Ready 2 Recipients" in ada.read(f"{path}/recipients")
    for number in ("1", "2"):
        ada.post(f"{path}/remove", remove=number)
        ada.get(f"{path}/recipients")
    assert "Type or paste" in ada.text, "with nobody left, the ways to add recipients are back"


def test_a_domain_that_looks_mistyped_is_questioned_until_the_send(service: Service, ada: Browser) -> None:
    path = ready(ada, service, rows="zoe@x.com,Zoë,1\nBo@Gmail.con,Bo,1\ncy@gmial.com,Cy,2\n")
    ada.sees(f"{path}/recipients", "Ready 3 To check 2", "Check 2 addresses", "Use Bo@gmail.com")
    ada.sees(f"{path}/recipients?state=doubtful", "Use all 2 corrections")
    assert ada.page.text.count('data-label="E-mail address"') == 2
    ada.post(f"{path}/suggestions", suggestion="2")
    ada.sees(f"{path}/recipients", "To check 1", "Check 1 address", "Bo@gmail.com", "Mistyped?")
    ada.sees(f"{path}/review", "1 address looks mistyped.", "Send 4 gifts")


def test_a_form_that_is_refused_keeps_what_was_typed(service: Service, ada: Browser) -> None:
    path = draft(ada, service, "zoe@x.com,Zoë\nbad,Bo\n")
    columns = {
        "number": ["2", "new"],
        "email": ["b" * 1_001, "new@x.com"],
        "name": ["Bob", "Newt"],
        "quantity": ["7", ""],
    }
    answer = ada._send("POST", f"{path}/rows", data={"token": ada.token, **columns})
    assert answer.status_code == 422
    for kept in ("b" * 1_001, "Bob", 'value="7"', "new@x.com", "Newt", "A cell of row 2 has more than 1,000"):
        assert kept in answer.text
    assert f'action="{path}/rows' in answer.text


def test_rows_to_fix_are_left_out_and_stay_in_the_draft(service: Service, ada: Browser) -> None:
    path = ready(ada, service, rows="zoe@x.com,Zoë\nbad,Bo\nbo@x.com,Bo\n")
    assert "Add recipients, and fix the rows with errors." in ada.read(f"{path}/review")
    assert ada.submit(f"{path}/recipients", f"{path}/leave-out").headers["location"] == f"{path}/message"
    assert "1 row to fix is left out. Continue with 2" in ada.read(f"{path}/recipients")
    assert "Send 2 gifts for £20.00" in ada.read(f"{path}/review")
    quote = quote_in(ada)
    # Whatever changes the rows asks again.
    ada.post(f"{path}/suggestions", suggestion="99")
    assert ada.submit(f"{path}/recipients", f"{path}/place", quote=quote).status_code == 409
    ada.submit(f"{path}/recipients?state=fix", f"{path}/remove-invalid")
    ada.get(f"{path}/review")
    assert ada.post(f"{path}/place", quote=quote_in(ada)).headers["location"] == f"{path}/sent"


@pytest.mark.parametrize(
    ("pasted", "shown"),
    [
        ("Ada Byron <ada@x.com>; bo@x.com", ["Ada Byron ada@x.com 1 Ready", " bo@x.com 1 Ready"]),
        ("Name\tMail\tQty\nAda\tada@x.com\t2\n", ["Ada ada@x.com 2 Ready"]),
        ("ada@x.com, Ada, 3", ["Ada ada@x.com 3 Ready"]),
        ("Bo <bo@x.com>, 2\nada@x.com, Ada, 3", ["Bo bo@x.com 2 Ready", "Ada ada@x.com 3 Ready"]),
    ],
)
def test_a_to_line_and_cells_of_a_spreadsheet_become_rows(
    service: Service, ada: Browser, pasted: str, shown: list[str]
) -> None:
    draft(ada, service, pasted)
    for row in shown:
        assert row in ada.text


def workbook(**sheets: list[list[str]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def test_of_a_workbook_the_sheet_with_most_addresses_is_taken_and_another_chosen(
    service: Service, ada: Browser
) -> None:
    path = begin(ada, service)
    data = workbook(
        Notes=[["private", "from old@x.com"]],
        Staff=[["email", "name"], ["zoe@x.com", "Zoë, K"], ["bo@x.com", "Bo"]],
        Long=[["x" * 1001]],
        Board=[["email", "who"], ["cy@x.com", "Cy"]],
    )
    ada.get(f"{path}/recipients")
    assert ada.upload(f"{path}/file", data, file_name="people<b>.xlsx").status_code == 303
    ada.sees(f"{path}/recipients", "File: people<b>.xlsx", "Sheet Staff 2 of 4", "Read: email, name")
    ada.says("Zoë, K zoe@x.com 1 Ready")
    # A row that is edited stays so while another sheet is looked at.
    save(ada, path, number=["3"], email=["bob@x.com"], name=["Bob"], quantity=["1"])
    ada.submit(f"{path}/recipients", f"{path}/reading", sheet="3", email="0", name="1", heading="yes")
    ada.sees(f"{path}/recipients", "All 1 Ready 1 ", "cy@x.com")
    refused = ada.post(f"{path}/reading", sheet="2")
    assert refused.status_code == 422
    assert "A cell of row 1 has more than 1,000 characters." in refused.text
    assert ada.post(f"{path}/reading", sheet="4").status_code == 404
    ada.submit(f"{path}/recipients", f"{path}/reading", sheet="1")
    assert "Bob bob@x.com 1 Ready" in ada.read(f"{path}/recipients")
    ada.post(f"{path}/start-over")
    assert service.sql("SELECT count(*) FROM draft_rows WHERE draft_id = $1", path.rpartition("/")[2]) == [(0,)]


def test_odd_letters_are_noticed_and_the_file_read_in_another_encoding_with_one_press(
    service: Service, ada: Browser
) -> None:
    path = begin(ada, service)
    ada.get(f"{path}/recipients")
    text = "email,name\nivan@x.com,Иван Петров\nanna@x.com,Анна\nbo@x.com,Bo\n"
    ada.upload(f"{path}/file", text.encode("cp1251"))
    assert "Encoding Windows, western Europe" in ada.read(f"{path}/recipients")
    assert "Some names have odd letters: “Èâàí Ïåòðîâ” was probably “Иван Петров”." in ada.text
    assert "Read the file as Windows, Cyrillic" in ada.text
    save(ada, path, number=["4"], email=["bo@x.com"], name=["Bö"], quantity=["1"])
    ada.get(f"{path}/recipients")
    assert ada.post(f"{path}/letters", encoding="utf-8").status_code == 404, "not what the file can be read in"
    ada.submit(f"{path}/recipients", f"{path}/letters", encoding="cp1251")
    ada.sees(f"{path}/recipients", "Encoding Windows, Cyrillic", "Иван Петров", "Анна", "Bö bo@x.com")
    assert "odd letters" not in ada.text
    ada.post(f"{path}/reading", encoding="cp1252", email="0", name="1", heading="yes")
    assert "odd letters" in ada.read(f"{path}/recipients")
    assert "Bö bo@x.com" in ada.text, "what was typed is no letter of the file"


def test_names_that_were_encoded_twice_are_repaired_with_one_press(service: Service, ada: Browser) -> None:
    path = draft(ada, service, "zoe@x.com," + "Zoë".encode().decode("cp1252"))
    assert "Repair these names" in ada.text
    ada.post(f"{path}/letters", encoding="twice")
    assert "Zoë zoe@x.com 1 Ready" in ada.read(f"{path}/recipients")
    assert "odd letters" not in ada.text


def test_wrong_rows_are_removed_and_columns_chosen_and_remembered(service: Service, ada: Browser) -> None:
    table = "private,work,who\na@home.example,a@work.example,A\nb@home.example,,B\n"
    for turn in (1, 2):
        path = draft(ada, service, table)
        if turn == 1:
            assert "All 2 Ready 2" in ada.text
            wrong = ada.post(f"{path}/reading", email="2", name="2", heading="yes")
            assert wrong.status_code == 422
            assert ada.post(f"{path}/reading", email="9", heading="yes").status_code == 422
            ada.post(f"{path}/reading", email="1", name="2", heading="yes")
            # A window that was opened before puts nothing back.
            old = re.search(r'name="was_reading" value="([^"]*)"', ada.get(f"{path}/recipients").text)
            assert old
            ada.post(f"{path}/reading", was_reading=old[1], email="1", name="2", quantity="0", heading="yes")
            ada.page = ada.submit(f"{path}/recipients", f"{path}/reading", was_reading=old[1], email="1", heading="yes")
            assert ada.page.status_code == 422
            ada.says(
                "Another window has changed how the list is read. Nothing was saved: look at it, and choose again."
            )
            ada.submit(f"{path}/recipients", f"{path}/reading", email="1", name="2", heading="yes")
            ada.get(f"{path}/recipients")
        ada.says("All 2 Ready 1 To fix 1", "The e-mail address is missing.")
    ada.post(f"{path}/remove-invalid")
    assert "Recipients 1 Gifts 1 Total £10.00" in ada.read(f"{path}/recipients")


def test_the_review_says_who_gets_several_gifts(service: Service, ada: Browser) -> None:
    path = ready(ada, service, rows="email\nzoe@example.com\nbo@example.com\nZOE@example.com\n")
    assert "1 row has the address of an earlier row, whose recipient gets the gifts" in ada.read(f"{path}/review")
    assert f"{path}/recipients?state=repeated" in ada.links
    ada.submit(f"{path}/recipients", f"{path}/remove-repeated")
    assert "an earlier row" not in ada.read(f"{path}/review")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("email,2026,name,empty,Team\nzoe@example.com,50,Zoë,,Sales\n", "Not read: 2026, Team"),
        ("zoe@example.com,Zoë,2,a note\n", "Not read: Column 4 (“a note”)"),
        (f"zoe@example.com,Zoë,2,{'n' * 31}\n", f"Not read: Column 4 (“{'n' * 30}…”)"),
        ("email,name\nzoe@example.com,Zoë\n", None),
    ],
)
def test_columns_that_are_not_read_are_named(service: Service, ada: Browser, rows: str, said: str | None) -> None:
    path = begin(ada, service)
    assert ada.submit(f"{path}/recipients", rows=rows).status_code == 303
    shown = ada.read(f"{path}/recipients")
    assert said in shown if said else "Not read" not in shown


def test_two_columns_of_names_are_asked_about_unless_addresses_show_which_is_which(
    service: Service, ada: Browser
) -> None:
    asked = "Several columns may have names. Choose the ones to use."
    path = draft(ada, service, "ada.byron@example.com, Ada, Byron, 3")
    assert "Ada Byron ada.byron@example.com 3 Ready" in ada.text
    assert asked not in ada.text
    path = draft(ada, service, "ada@example.com, Ada, Byron, 3")
    ada.says(asked, "Not read: Column 3 (“Byron”)", "Ada ada@example.com 3 Ready")
    assert '<details class="panel reading" open>' in ada.page.text
    assert "data-at-once" not in ada.page.text, "both columns are chosen before the list is read again"
    update, go_on = '<button type="submit"{}>Update the list', '<a class="button {}" href="{}/message">Continue with 1'
    assert update.format("") in ada.page.text, "the question comes first"
    assert go_on.format("quiet", path) in ada.page.text
    assert ada.text.index(asked) < ada.text.index("Continue with 1")
    ada.submit(f"{path}/recipients", f"{path}/reading", email="0", name="1", name_2="2", quantity="3")
    ada.sees(f"{path}/recipients", "Ada Byron ada@example.com 3 Ready")
    assert asked not in ada.text
    assert update.format(' class="quiet"') in ada.page.text
    assert go_on.format("", path) in ada.page.text


def test_an_old_window_replaces_nobody_whom_another_one_has_entered(service: Service, ada: Browser) -> None:
    path = begin(ada, service)
    ada.get(f"{path}/recipients")
    assert ada.page.text.count('name="was_none" value="yes"') == 3, "pasted, from a file, and codes"
    assert ada.submit(f"{path}/recipients", rows="zoe@x.com", was_none="yes").status_code == 303
    others = "Another window has added recipients meanwhile. Nothing was saved: look at them, and try again."
    for form, fields in (("recipients", {"rows": "bo@x.com,Bo"}), ("codes", {"quantity": "5"})):
        ada.page = ada.submit(f"{path}/recipients", f"{path}/{form}", was_none="yes", **fields)
        assert ada.page.status_code == 422
        ada.says(others, "zoe@x.com 1 Ready")
    ada.page = ada.upload(f"{path}/file", b"bo@x.com", was_none="yes")
    ada.says(others, "zoe@x.com 1 Ready")
    ada.page = ada.submit(f"{path}/recipients", rows="bo@x.com,Bo", was_none="yes")
    assert ">bo@x.com,Bo</textarea>" in ada.page.text
    assert 'name="taking" value="add" checked' in ada.page.text
    assert ada.submit(f"{path}/recipients", rows="bo@x.com,Bo", taking="add").status_code == 303
    ada.sees(f"{path}/recipients", "All 2 Ready 2")


def test_a_recipient_is_added_after_another_window_started_over(service: Service, ada: Browser) -> None:
    path = draft(ada, service, "ann@example.com")
    ada.post(f"{path}/start-over")
    assert ada.get(f"{path}/recipients?edit=new").status_code == 200
    new = {"number": ["new"], "email": ["bob@example.com"], "quantity": ["1"]}
    refused = ada._send("POST", f"{path}/rows", data={"token": ada.token, "name": ["B" * 1_001], **new})
    assert refused.status_code == 422
    assert "A cell of row 1 has more than 1,000 characters." in refused.text
    save(ada, path, name=["Bob\0"], **new)
    assert "Bob bob@example.com 1 Ready" in ada.read(f"{path}/recipients")


def test_an_old_window_changes_nobody_of_a_new_list(service: Service, ada: Browser) -> None:
    path = draft(ada, service, "ann@x.com\nbo@x.com\ncy@x\ndi@x")
    columns = {
        "number": re.findall(r'name="number" value="([^"]+)"', ada.page.text),
        "was": re.findall(r'name="was" value="([^"]+)"', ada.page.text),
        "email": ["cy@x.com", "di@x"],
        "name": ["", ""],
        "quantity": ["", ""],
    }
    assert (columns["number"], columns["was"]) == (["3", "4"], ["cy@x", "di@x"])
    ada.post(f"{path}/start-over")
    assert ada.submit(f"{path}/recipients", rows="eve@x.com\nfay@x.com\ngus@x.com\nhal@x.com").status_code == 303
    ada.get(f"{path}/recipients")
    ada.page = ada._send("POST", f"{path}/rows", data={"token": ada.token, **columns})
    assert ada.page.status_code == 422
    ada.says("The list was changed in another window, and nothing was saved.", "gus@x.com 1 Ready", "hal@x.com 1 Ready")
    assert re.findall(r'name="email" value="([^"]*)"', ada.page.text) == ["cy@x.com"], "what was typed, in a new row"
    # What another window corrected alike is no other row.
    path = draft(ada, service, "cy@x\ndi@x")
    save(ada, path, number=["1"], was=["cy@x"], email=["cy@x.com"], name=[""], quantity=[""])
    ada.get(f"{path}/recipients")
    save(ada, path, number=["1"], was=["cy@x"], email=["cy@x.com"], name=["Cy"], quantity=[""])
    ada.sees(f"{path}/recipients", "Cy cy@x.com 1 Ready")


def test_rows_that_are_added_lose_nothing_without_a_word(service: Service, ada: Browser) -> None:
    path = draft(ada, service, "zoe@x.com,Zoë")
    twice = "bo@x.com,Bo,bo@home.example\ncy@x.com,Cy,"
    refused = ada.post(f"{path}/recipients", rows=twice, taking="add")
    assert refused.status_code == 422
    assert "Row 1 has a second e-mail address in a column that is not read." in refused.text
    assert twice in refused.text
    assert ada.submit(f"{path}/recipients", rows="email,Team\ncy@x.com,Sales", taking="add").status_code == 303
    ada.sees(f"{path}/recipients", "Not read: Team", "All 2 Ready 2")
    assert ada.submit(f"{path}/recipients", rows="di@x.com,Di,Byron", taking="add").status_code == 303
    ada.sees(f"{path}/recipients", "Not read: Column 3 (“Byron”)", "All 3 Ready 3")


def test_the_hidden_rows_of_a_workbook_are_said(service: Service, ada: Browser) -> None:
    book = openpyxl.Workbook()
    for row in (["email"], ["zoe@x.com"], ["bo@x.com"]):
        book.active.append(row)
    book.active.row_dimensions[3].hidden = True
    file = io.BytesIO()
    book.save(file)
    said = "The workbook hides 1 row, as a filter does. It is in the list, too."
    path = begin(ada, service)
    ada.get(f"{path}/recipients")
    for fields in ({}, {"taking": "add"}):
        assert ada.upload(f"{path}/file", file.getvalue(), file_name="a.xlsx", **fields).status_code == 303
        ada.sees(f"{path}/recipients", said)
    ada.get("/app/contacts/import")
    ada.page = ada.upload("/app/contacts/import", file.getvalue())
    ada.says(said)
    [hidden] = re.findall(r'name="hidden" value="(\d+)"', ada.page.text)
    again = ada.upload("/app/contacts/check", b"", sheet='[[1,["a@x.com"]]]', email="0", hidden=hidden)
    assert said in again.text
    assert "hides" not in ada.read(draft(ada, service, "zoe@x.com") + "/recipients")
