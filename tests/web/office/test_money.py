"""Money in the back office: a bank's file, payments of invoiced customers, statements, and corrections by two people."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient
from tests.web.console.conftest import Browser, signed_in
from tests.web.office.conftest import staff_in

from largesse.ledger.top_ups import new_transfer_reference, spelled_reference
from largesse.verify.ledger import CORRECTIONS, LEDGER

FILES = "/office/money/bank-files"


@pytest.fixture
def service(own_service: Service) -> Service:
    """A service with a new database for each test: the back office counts what waits of all customers."""
    return own_service


@pytest.fixture
def fay(service: Service) -> Browser:
    """In finance."""
    return staff_in(service, "finance", "fay@largesse.example")


@pytest.fixture
def max_(service: Service) -> Browser:
    """In finance, too."""
    return staff_in(service, "finance", "max@largesse.example")


def account(service: Service, key: str = "gbp") -> int:
    return int(service.ids["funding_accounts"][key])


def balance(service: Service, key: str = "gbp") -> int:
    return int(service.sql("SELECT balance_minor FROM accounts WHERE id = $1", account(service, key))[0][0])


def wait_for(service: Service, count: int, amount_minor: int = 100_00) -> list[str]:
    """Top-ups of an account that wait for their transfer."""
    references = [new_transfer_reference() for _ in range(count)]
    service.sql(
        """
        INSERT INTO top_ups (customer_id, environment, account_id, reference, amount_minor, requested_at, expires_at)
        SELECT a.customer_id, a.environment, a.id, new, $2, now(), now() + interval '30 days' FROM accounts a, unnest($3::text[]) AS new
        WHERE a.id = $1 RETURNING 1
        """,
        account(service),
        amount_minor,
        references,
    )
    return references


def bank_file(rows: list[tuple[str, str, str]]) -> bytes:
    return "\n".join(["Date,What,Amount,Currency", *(f"2026-11-20,{a},{b},{c}" for a, b, c in rows)]).encode()


def forty(references: list[str]) -> bytes:
    """40 lines: 36 that fit, another amount, another currency, a reference of nobody, and one without any."""
    rows = [(spelled_reference(one), "100.00", "GBP") for one in references[:36]]
    rows += [
        (references[36], "99.00", "GBP"),
        (references[37], "100.00", "EUR"),
        (new_transfer_reference(), "5.00", "GBP"),
    ]
    return bank_file([*rows, ("Rent", "-10.00", "GBP")])


def test_a_file_of_40_lines_is_matched_confirmed_and_the_rest_decided(service: Service, fay: Browser) -> None:
    references, before = wait_for(service, 38), balance(service)
    content = forty(references)
    assert "Bank files" in fay.read(FILES)
    read = fay.upload(FILES, content, file_name="november.csv", decimals="")
    assert read.status_code == 303, read.text
    here = read.headers["location"]
    fay.sees(here, "To decide: 3", "Matched: 36", "Ignored: 1")
    fay.says("£99.00 arrived, but £100.00 was requested.")
    fay.says("It is in another currency", "There is no top-up RF", "names no reference")
    assert balance(service) == before, "nothing is credited before somebody says so"
    assert fay.post(f"{here}/confirm").status_code == 303
    assert balance(service) == before + 36 * 100_00
    fay.sees(here, "36 top-ups credited.", "Credited: 36")
    line = re.findall(r"/lines/(\d+)/credit", fay.page.text if fay.page else "")
    assert line == ["38"], "only another amount can be credited"
    assert fay.post(f"{here}/lines/38/credit").status_code == 303
    assert balance(service) == before + 36 * 100_00 + 99_00
    fay.get(here)
    for dismissed in (39, 40):
        assert fay.post(f"{here}/lines/{dismissed}/dismiss").status_code == 303
        fay.get(here)
    assert "To decide" not in fay.text
    # The file again, under another name, and once more with one line more: nothing is credited twice.
    again = fay.upload(FILES, content, file_name="again.csv", decimals="")
    assert again.headers["location"] == here
    assert "read before" in fay.read(here)
    more = fay.upload(FILES, content + b"\n2026-11-21,Fee,-1.00,GBP\n", decimals="")
    fay.sees(more.headers["location"], "Credited: 37", "Dismissed: 2")
    assert fay.post(f"{more.headers['location']}/confirm").status_code == 303
    assert balance(service) == before + 36 * 100_00 + 99_00
    acts = service.sql(
        "SELECT DISTINCT actor FROM audit_events WHERE act IN ('top_up.confirmed', 'bank_file.read', 'bank_line.dismissed')"
    )
    assert [row["actor"] for row in acts] == ["staff"]


def test_older_files_are_a_page_further(service: Service, fay: Browser) -> None:
    service.sql(
        "INSERT INTO bank_files (digest, name, read_at) SELECT sha256(n::text::bytea), 'file-' || n, now() FROM generate_series(1, 51) AS n"
        " RETURNING 1"
    )
    assert "file-1 " not in fay.read(FILES) + " "
    (before,) = re.findall(r"before=([0-9]+)", fay.page.text)
    assert "file-1 " in fay.read(f"{FILES}?before={before}") + " "
    assert "file-2 " not in fay.text + " "
    assert "before=" not in fay.page.text


def test_a_line_is_decided_on_its_page_of_the_list(service: Service, fay: Browser) -> None:
    fay.get(FILES)
    rows = [(new_transfer_reference(), "5.00", "GBP") for _ in range(51)]
    here = fay.upload(FILES, bank_file(rows), decimals="").headers["location"]
    fay.get(f"{here}?page=1")
    [path] = re.findall(rf'action="({here}/lines/52/dismiss[^"]*)"', fay.page.text if fay.page else "")
    assert fay.post(path).headers["location"] == f"{here}?page=1"


def test_a_mistyped_reference_is_decided_by_a_person(service: Service, fay: Browser) -> None:
    [meant], before = wait_for(service, 1, 73_00), balance(service)
    wrong = meant[:9] + str((int(meant[9]) + 1) % 10) + meant[10:]
    lost = meant[:9] + meant[10:]
    # The word keeps the amount from completing the second reference, which one in 97 would.
    rows = [(spelled_reference(wrong), "73.00", "GBP"), (f"{lost} deposit", "70.00", "GBP"), ("Rent", "-10.00", "GBP")]
    fay.get(FILES)
    here = fay.upload(FILES, bank_file(rows), decimals="").headers["location"]
    fay.sees(here, "To decide: 2", f"It names {spelled_reference(wrong)}. The top-up beside it differs in one digit")
    assert f"There is no top-up {spelled_reference(lost)}." in fay.text, "the amount differs, too"
    assert "2 lines of bank files wait" in fay.read("/office")
    assert fay.submit(here, f"{here}/confirm").status_code == 303
    assert balance(service) == before, "only a person decides that it was meant"
    assert fay.submit(here, f"{here}/lines/2/credit").status_code == 303
    assert balance(service) == before + 73_00
    assert "Credited: 1" in fay.read(here)
    assert fay.post(f"{here}/lines/2/credit").status_code == 303
    assert balance(service) == before + 73_00
    assert "1 line of a bank file waits" in fay.read("/office")
    assert fay.submit(here, f"{here}/lines/3/dismiss").status_code == 303
    assert "of a bank file waits" not in fay.read("/office")


def test_late_money_for_an_account_that_was_closed_says_why_it_is_not_credited(service: Service, fay: Browser) -> None:
    [late] = wait_for(service, 1, 64_00)
    service.sql("UPDATE top_ups SET expires_at = now() WHERE reference = $1", late)
    fay.get(FILES)
    here = fay.upload(FILES, bank_file([(spelled_reference(late), "64.00", "GBP")]), decimals="").headers["location"]
    closing = "UPDATE accounts SET closed_at = $2 WHERE id = $1"
    service.sql(closing, account(service), datetime.now(UTC))
    assert fay.submit(here, f"{here}/lines/2/credit").status_code == 303
    assert "or its account is closed." in fay.read(here)
    service.sql(closing, account(service), None)
    assert fay.submit(here, f"{here}/lines/2/credit").status_code == 303
    assert "Credited: 1" in fay.read(here)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "The file is empty: it has 0 bytes."),
        (b"Datum;Text\n1;2\n", "the format of this bank is not supported"),
        (b"\x00\x01", "not a text file"),
        (bank_file([("x", "1.00", "GBP")] * 501), "more than 500 lines"),
        (b"x" * (1024 * 1024 + 1), "larger than 1 MB"),
    ],
)
def test_a_file_that_is_none_is_refused_and_says_why(fay: Browser, content: bytes, said: str) -> None:
    fay.get(FILES)
    fay.page = fay.upload(FILES, content, decimals="", amount_column="Amount")
    assert fay.page.status_code == 422
    assert said in fay.text
    assert 'value="Amount"' in fay.page.text, "nothing that was typed is lost"


def test_what_is_paid_out_waits_for_nobody(service: Service, fay: Browser) -> None:
    [ours, waits], before = wait_for(service, 2, 41_00), balance(service)
    out = ("-41.00", "41.00-", "\N{MINUS SIGN}41.00", "(41.00)", "0.00")
    rows = [(name, amount, "GBP") for name in (ours, new_transfer_reference()) for amount in out]
    fay.get(FILES)
    here = fay.upload(FILES, bank_file([*rows, (waits, "41.00", "\N{POUND SIGN}")]), decimals="").headers["location"]
    fay.sees(here, "Ignored: 10", "Matched: 1")
    assert "To decide" not in fay.text
    assert "1 line of a bank file waits" in fay.read("/office")
    assert fay.submit(here, f"{here}/confirm").status_code == 303
    assert balance(service) == before + 41_00
    assert "of a bank file waits" not in fay.read("/office")


def test_the_one_currency_of_a_file_is_one_in_use(service: Service, fay: Browser) -> None:
    [reference] = wait_for(service, 1, 42_00)
    content = f"Text;Betrag\n{reference};42,00\n".encode()
    for typed in ("XYZ", "EU", "Q"):
        fay.get(FILES)
        fay.page = fay.upload(FILES, content, decimals="", currency=typed)
        assert fay.page.status_code == 422
        assert f"{typed} is not a currency in use." in fay.text
    for typed in ("$", "\N{YEN SIGN}", "kr."):
        fay.get(FILES)
        fay.page = fay.upload(FILES, content, decimals="", currency=typed)
        assert fay.page.status_code == 422
        assert f"“{typed}” can mean several currencies." in fay.text
    for typed in ("gbp", "\N{POUND SIGN}"):
        fay.get(FILES)
        assert "Matched: 1" in fay.read(fay.upload(FILES, content, decimals="", currency=typed).headers["location"])


def test_top_ups_are_listed_page_by_page(service: Service, fay: Browser) -> None:
    references, listed, path = wait_for(service, 101), [], "/office/money"
    for shown in (50, 50, 1):
        page = fay.get(path).text
        found = re.findall(r'top-ups/(RF[0-9]+)"', page)
        assert len(found) == shown
        listed += found
        path = "/office/money?after=" + "".join(re.findall(r'[?&;]after=([0-9]+)"', page))
    assert (sorted(listed), path) == (sorted(references), "/office/money?after=")


def test_a_top_up_is_credited_by_hand_once(service: Service, fay: Browser) -> None:
    [reference], before = wait_for(service, 1), balance(service)
    here = f"/office/money/top-ups/{reference}"
    for typed in (reference, "-".join((reference[:4], reference[4:8], reference[8:12], reference[12:])).lower(), "ACM"):
        assert reference in fay.get("/office/money?q=" + typed).text
    nothing = fay.read("/office/money?q=nothing")
    assert "No top-up that waits has this reference or customer." in nothing
    assert "No top-up waits for its transfer." not in nothing
    assert fay.submit(here, amount="nonsense").status_code == 422
    fay.get(here)
    for other in ("", "9000"):  # another amount than the requested one is asked for once more, and each other one
        asked = fay.post(here, amount="90" if not other else "91", other=other)
        assert asked.status_code == 422
        came = "£91.00" if other else "£90.00"
        assert f"£100.00 was requested. If {came} came, press the button again." in asked.text
        assert f"Credit {came}" in asked.text
    assert balance(service) == before
    for _ in range(2):  # clicked twice
        assert fay.post(here, amount="90", other="9000").status_code == 303
    assert balance(service) == before + 90_00
    assert "£90.00" in fay.read(here)
    assert "Credit the account" not in fay.text


def test_two_people_correct_what_an_account_holds(service: Service, fay: Browser, max_: Browser) -> None:
    before, here = balance(service), f"/office/money/accounts/{account(service)}"
    assert "Propose a correction" in fay.read(here)
    wrong = fay.submit(f"{here}/correct", kind="credit", amount="0", order="x", reason="")
    assert wrong.status_code == 422
    assert "Only a refund names an order." in wrong.text
    fay.get(f"{here}/correct")
    proposed = fay.post(
        f"{here}/correct", kind="credit", amount="12.50", order="", reason="The bank named another company."
    )
    assert proposed.status_code == 303
    one = proposed.headers["location"]
    assert "Approve and post" not in fay.read(one), "nobody approves their own"
    forged = fay.post(f"{one}/approve")
    assert forged.status_code == 409
    assert "Somebody else has to decide" in forged.text
    assert balance(service) == before
    assert "1 correction waits" in max_.get("/office/money").text
    assert "The bank named another company." in max_.read(one)
    for _ in range(2):
        assert max_.post(f"{one}/approve").status_code == 303
    assert balance(service) == before + 12_50
    assert "Approved" in max_.read(one)
    assert max_.post(f"{one}/decline", token=max_.get(here).text and max_.token).status_code in {409, 422}
    assert balance(service) == before + 12_50
    assert "Correction" in fay.read(here)
    assert "12.50" in fay.get(f"{here}/statement.csv").text


def test_the_audit_log_names_accounts(service: Service, fay: Browser) -> None:
    here = f"/office/money/accounts/{account(service)}/correct"
    assert fay.submit(here, kind="credit", amount="7.25", order="", reason="It is missing.").status_code == 303
    said = re.sub(r"<[^>]+>", "", staff_in(service, "auditor").get("/office/audit").text)
    assert "proposed a correction of £7.25 for Acme float" in said


def test_a_refund_is_corrected_by_two_and_never_more_than_the_order_cost(
    service: Service, fay: Browser, max_: Browser
) -> None:
    sent = service.send("gift", "coffee", value=10, codeQuantity=3).json()
    order = sent["reference"]
    before, here = balance(service), f"/office/money/accounts/{account(service)}/correct"

    def propose(amount: str, reference: str = order, at: str = here) -> tuple[int, str]:
        answer = fay.submit(at, kind="refund", amount=amount, order=reference, reason="It came broken.")
        return answer.status_code, answer.headers.get("location", answer.text)

    assert "At most £0.00 of the order" in propose("0.01")[1], "what nobody has claimed is cancelled"
    for code in sent["codes"][:2]:
        assert Recipient(service).claim(code).status_code == 303
    assert "At most £20.00 of the order" in propose("20.01", order.lower())[1]
    assert "no order with that reference" in propose("1", "0WBQK7M2PXR4D9VA1C3E")[1]
    other = f"/office/money/accounts/{account(service, 'team')}/correct"
    assert "paid from another account" in propose("1", at=other)[1]
    tokens = [fay.get(here) and fay.token for _ in range(4)]
    fields = {"kind": "refund", "amount": "15.00", "order": order, "reason": "It came broken."}
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda token: fay.post(here, token=token, **fields), tokens))
    assert sorted(answer.status_code for answer in answers) == [303, 422, 422, 422], "together they are above the order"
    [one] = [answer.headers["location"] for answer in answers if answer.status_code == 303]
    assert "At most £5.00" in propose("5.01")[1], "what waits counts"
    assert max_.submit(one, f"{one}/approve").status_code == 303
    assert balance(service) == before + 15_00
    statement = fay.get(f"/office/money/accounts/{account(service)}").text
    assert order in statement
    theirs = signed_in(service, "ada@acme.example").get(f"/app/orders/{order}").text
    assert re.search(r"<dt>Refunded</dt><dd>£15.00</dd>", theirs), "the customer sees it in the order"
    assert "Correction" in theirs
    cancelled = service.client("hr").post(f"/orders/{order}/cancel")
    assert (cancelled.status_code, balance(service)) == (200, before + 25_00), "the third code, and no other"
    assert "At most £5.00" in propose("5.01")[1]
    assert [check.name for check in (*LEDGER, *CORRECTIONS) if service.sql(check.sql)] == []


def test_payments_of_invoiced_customers(service: Service, fay: Browser) -> None:
    assert service.send("gift", "coffee", key="initech", account=None, value=10, codeQuantity=3).status_code == 200
    listed = fay.get("/office/money/due")
    [here] = re.findall(r'href="(/office/money/due/\d+)"', listed.text)
    assert "£30.00" in fay.read(here)
    assert fay.get(f"/office/money/due/{account(service)}").status_code == 404, "a funding account owes nothing"
    fay.get(here)
    refused = fay.post(here, amount="30.01", reference="INV-1")
    assert "At most £30.00 is due." in refused.text
    assert fay.submit(here, amount="20", reference="INV-1").status_code == 303
    assert "£10.00" in fay.read(here)
    assert fay.post(here, amount="20", reference="INV-1").status_code == 303
    fay.sees(here, "recorded before", "£10.00")
    other = fay.post(here, amount="9", reference="INV-1")
    assert other.status_code == 422
    assert "has another amount" in other.text
    fay.get(here)
    of_another_tab = fay.token
    fay.submit(here, amount="10", reference="INV-2")
    assert "At most £0.00 is due." in fay.post(here, token=of_another_tab, amount="10", reference="INV-3").text
    said = staff_in(service, "auditor").get("/office/audit?kind=money").text
    assert "Amount due: <ins>£0.00</ins>" in said.replace("  ", " "), "in its currency"


def test_money_needs_a_fresh_proof(service: Service, fay: Browser) -> None:
    [reference], before = wait_for(service, 1), balance(service)
    here = f"/office/money/top-ups/{reference}"
    fay.get(here)
    service.sql("UPDATE staff_sessions SET proved_at = now() - interval '1 day' RETURNING 1")
    asked = fay.post(here, amount="100")
    assert "Confirm" in asked.text
    assert balance(service) == before


def test_margins_are_shown(service: Service, fay: Browser) -> None:
    add = """
        INSERT INTO supplier_costs (supplier, product_id, currency, day, bought, kept, value_minor, cost_minor)
        VALUES ($1, $2, $3, $4, 3, 0, 30000, 27000) RETURNING 1
    """
    days = [datetime.now(UTC).date() - timedelta(days=age) for age in range(32)]
    for supplier, currency, age in (
        ("today", "GBP", 0),
        ("month-ago", "GBP", 30),
        ("too-old", "GBP", 31),
        ("euros", "EUR", 0),
    ):
        service.sql(add, supplier, service.ids["products"]["coffee"], currency, days[age])

    def bought(query: str = "") -> list[str]:
        return re.findall(r'<th scope="row">([\w-]+)', fay.get(f"/office/money/margins{query}").text)

    assert bought() == ["euros", "month-ago", "today"]
    assert fay.text.count("£30.00 10%") == 2, "there is no margin between two currencies"
    assert bought(f"?since={days[31]}&until={days[31]}") == ["too-old"]
    assert bought(f"?since={days[29]}&until={days[1]}") == []
    for odd in ("since=never", "until=9999-12-31", "until=0001-01-01", "since=9999-12-31&until=0001-01-01"):
        assert fay.get(f"/office/money/margins?{odd}").status_code == 200, odd
    assert "Choose a day that is not before the first one." in fay.text
    assert "Nothing was bought" not in fay.text
    service.sql("DELETE FROM supplier_costs RETURNING 1")
