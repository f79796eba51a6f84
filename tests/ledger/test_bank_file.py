"""What banks write: delimiters, encodings, headings and amounts of several countries, and what is no such file."""

from decimal import Decimal
from pathlib import Path

import pytest

from largesse.base.errors import FileRefused, OperatorError
from largesse.ledger import bank_file
from largesse.ledger.bank_file import BankLine, Columns, is_no_payment, read_bank_file, read_decimal

ENGLISH = (
    "Date,Description,Amount (GBP),Currency\n2026-11-20,RF18 5390 0754 7034,1000.00,GBP\n\n2026-11-21,Fee,-4.50,GBP\n"
)
GERMAN = (
    "Kontoauszug;Muster AG\nvom;21.11.2026\n\n"
    'Buchungstag;Verwendungszweck;Betrag;Währung\n20.11.2026;"Für Geschenke;\nRF18 5390";1.000,00;eur\n'
)


def read(tmp_path: Path, text: str, columns: Columns | None = None, encoding: str = "utf-8") -> list[BankLine]:
    path = tmp_path / "bank.csv"
    path.write_bytes(text.encode(encoding))
    return read_bank_file(path.name, path.read_bytes(), columns or Columns())


def test_an_english_file(tmp_path: Path) -> None:
    first, second = read(tmp_path, ENGLISH)
    assert (first.line, first.amount, first.currency) == (2, "1000.00", "GBP")
    assert first.named == ("RF18539007547034",)
    assert (second.line, second.amount) == (4, "-4.50")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_german_file_with_lines_above_its_heading(tmp_path: Path, encoding: str) -> None:
    (line,) = read(tmp_path, GERMAN, encoding=encoding)
    assert (line.line, line.amount, line.currency) == (6, "1.000,00", "EUR")
    assert line.named == ()


def test_an_amount_of_a_page_of_dashes_is_none_and_cut(tmp_path: Path) -> None:
    """Looking for its sign would take minutes, while the process answers nobody."""
    (line,) = read(tmp_path, f"Text,Amount,Currency\nRF18 5390 0754 7034,{'-' * 1_000},GBP\n")
    assert len(line.amount) == bank_file._LONGEST_CELL
    assert not is_no_payment(line.amount)
    with pytest.raises(ValueError, match="is not an amount"):
        read_decimal(line.amount)


def test_of_a_heading_of_accents_alone_only_the_beginning_is_read(tmp_path: Path) -> None:
    accents = "a" + "\u0301\u0316" * 600
    [line] = read(tmp_path, ("\t".join([accents] * 20) + "\n") * 2 + "Amount\tCurrency\n10\tGBP\n")
    assert line.amount == "10"
    assert len(bank_file._folded(accents)) <= bank_file._LONGEST_WORD


def test_columns_may_be_named_and_the_currency_said(tmp_path: Path) -> None:
    text = "Date\tWhat\tValue in\n1 May\tRF18\t5\n2 May\tRF19\n"
    lines = read(tmp_path, text, Columns(amount="value IN", all_in="GBP"))
    assert [(line.amount, line.currency) for line in lines] == [("5", "GBP"), ("", "GBP")]
    both = read(tmp_path, "Betrag;Amount;CCY\n1;2;GBP\n", Columns(amount="Betrag"))
    assert both[0].amount == "1"


def test_a_line_in_another_currency_than_the_file_was_said_to_be_in_keeps_its_own(tmp_path: Path) -> None:
    text = "Amount,Currency\n5,EUR\n5,usd\n5,$\n5,\n5,gbp\n"
    lines = read(tmp_path, text, Columns(all_in="GBP"))
    assert [line.currency for line in lines] == ["EUR", "USD", "GBP", "GBP", "GBP"]


def test_commas_in_a_text_separate_no_columns(tmp_path: Path) -> None:
    head, row = "Betrag;Text;Währung\n", "1.000,00;RF18 5390 0754 7034, Rechnungen 1, 2, 3, 4;EUR\n"
    assert [(one.amount, one.named) for one in read(tmp_path, head + row)] == [("1.000,00", ("RF18539007547034",))]
    assert [one.amount for one in read(tmp_path, head + row, Columns(all_in="EUR"))] == ["1.000,00"]


def test_a_text_may_have_signs_that_break_lines_elsewhere(tmp_path: Path) -> None:
    (line,) = read(tmp_path, "Text;Betrag;Währung\nRF18 5390\v0754 7034\x1c;5,00;EUR\n")
    assert (line.amount, line.named) == ("5,00", ("RF18539007547034",))


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("Datum;Betrag;Soll;Haben;Währung", "20.11.;;;5,00;EUR"),
        ("Datum;Währung;Belastung;Gutschrift", "20.11.;EUR;;5,00"),
        ("Date;Débit euros;Crédit euros;Devise", "20/11;;5,00;EUR"),
        ("Date;De\u0301bit;Cre\u0301dit;Devise", "20/11;;5,00;EUR"),
        ("Datum;Betrag in Fremdwährung;Betrag;Währung", "20.11.;;5,00;EUR"),
        ("Date;Paid out;Paid in;Currency", "20/11;;5,00;EUR"),
    ],
)
def test_the_column_of_what_came_is_found(tmp_path: Path, head: str, row: str) -> None:
    (line,) = read(tmp_path, f"{head}\n{row}\n")
    assert (line.amount, line.currency) == ("5,00", "EUR")


@pytest.mark.parametrize(
    ("head", "out", "came"),
    [
        ("Betrag;Währung;Soll/Haben", "5,00;EUR;S", "5,00;EUR;H"),
        ("Amount;Currency;CR/DR", "5,00;EUR;DR", "5,00;EUR;CR"),
        ("Amount;Currency;Credit Debit Indicator", "5,00;EUR;DBIT", "5,00;EUR;CRDT"),
        ("Sens;Montant;Devise", "Débit;5,00;EUR", "Crédit;5,00;EUR"),
        ("D/C;Amount;Currency", "D;-5,00;EUR", "C;+5,00;EUR"),
        ("Amount;Currency", "5,00 DR;EUR", "5,00 CR;EUR"),
        ("Amount;Currency", "5,00Dr;EUR", "5,00Cr;EUR"),
        ("Betrag;Währung", "5,00 S;EUR", "5,00 H;EUR"),
        ("Betrag;Währung;Af Bij", "5,00;EUR;Af", "5,00;EUR;Bij"),
        ("Währung;Umsatz; ", "EUR;5,00;S", "EUR;5,00;H"),
        ("Transaction Type;Amount;Currency", "Debit;5,00;EUR", "Credit;5,00;EUR"),
    ],
)
def test_a_column_may_say_what_was_paid_out(tmp_path: Path, head: str, out: str, came: str) -> None:
    """Else what was sent back to a customer, with the reference of their top-up, would be credited."""
    lines = read(tmp_path, f"{head}\n{out}\n{came}\n")
    assert [read_decimal(line.amount) for line in lines] == [Decimal(-5), Decimal(5)]
    assert [is_no_payment(line.amount) for line in lines] == [True, False]


@pytest.mark.parametrize(
    ("head", "not_booked", "booked"),
    [
        ("State;Amount;Currency", "PENDING;5.00;GBP", "COMPLETED;5.00;GBP"),
        ("State;Amount;Currency", "REVERTED;+5.00;GBP", "COMPLETED;+5.00;GBP"),
        ("Status;Amount;Currency", "Refunded;5.00;GBP", "Completed;5.00;GBP"),
        ("Statut;Montant;Devise", "Annulée;5,00;EUR", "Exécutée;5,00;EUR"),
        ("Status;Betrag;Währung", "Vorgemerkt;5,00;EUR", "Gebucht;5,00;EUR"),
        ("Betrag;Währung;Info", "5,00;EUR;Umsatz vorgemerkt", "5,00;EUR;Umsatz gebucht"),
    ],
)
def test_a_column_may_say_that_the_money_has_not_come(tmp_path: Path, head: str, not_booked: str, booked: str) -> None:
    """Else it would be credited although the bank never books it, or takes it back."""
    lines = read(tmp_path, f"{head}\n{not_booked}\n{booked}\n")
    assert [is_no_payment(line.amount) for line in lines] == [True, False]
    assert read_decimal(lines[1].amount) == 5


def test_equal_lines_are_told_apart_and_known_again(tmp_path: Path) -> None:
    head, line = "Amount,Currency,Text\n", "5,GBP,RF18\n"
    once, twice = read(tmp_path, head + line), read(tmp_path, head + line + "1,GBP,x\n" + line)
    assert twice[0].mark == once[0].mark
    assert len({one.mark for one in twice}) == 3
    assert [one.mark for one in read(tmp_path, head + line + line)] == [twice[0].mark, twice[2].mark]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line is a heading"),
        ("Date,Text\n1,2\n", "no line is a heading"),
        ("Amount,Text\n1,2\n", "name the columns"),
        ("Amount,Currency\n" + '"' + "x" * 200_000, "is not a CSV file"),
        ("Amount,Currency\n" + "," * 200 + "\n", "line 2 has more than 200 columns"),
        ("\0" * 9, "is not text"),
        ("\ufeffAmount,Currency\n1,\0\n", "is not text"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("content", "format_"),
    [
        (b"%PDF-1.7\n1 0 obj", "PDF"),
        (b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml", "XLSX"),
        (b"PK\x03\x04" + b"\0" * 26 + b"camt.xml", "ZIP"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "XLS"),
        (b":20:STARTUMS\r\n:25:10020030/1234567\r\n", "MT940"),
        (b"{1:F01BANKDEFFXXXX0}{2:O940}{4:\r\n:20:STARTUMS\r\n", "MT940"),
        (b"BANKNL2A\n940\nBANKNL2A\n:20:STARTUMS\n", "MT940"),
        (b"OFXHEADER:100\r\nDATA:OFXSGML\r\n", "OFX"),
        (b'<?xml version="1.0"?>\n<?OFX OFXHEADER="200"?>', "OFX"),
        (b"!Type:Bank\nD01/12/2030\n", "QIF"),
    ],
)
def test_what_banks_offer_beside_is_named(tmp_path: Path, content: bytes, format_: str) -> None:
    with pytest.raises(FileRefused, match=f"has the format {format_}: import the CSV or CAMT file"):
        read_bank_file("bank", content, Columns())


@pytest.mark.slow
def test_files_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "Amount,Currency\n"
    assert len(read(tmp_path, head + "1,GBP" + "," * 198 + "\n")) == 1, "200 columns"
    monkeypatch.setattr(bank_file, "MAX_LINES", 2)
    assert len(read(tmp_path, head + "1,GBP\n" * 2)) == 2
    with pytest.raises(OperatorError, match="more than 2 lines"):
        read(tmp_path, head + "1,GBP\n" * 3)
    monkeypatch.setattr(bank_file, "MAX_BYTES", 1024 * 1024)
    fits = head + "\n" * (1024 * 1024 - len(head))
    assert read(tmp_path, fits) == []
    with pytest.raises(OperatorError, match="more than 1 MB"):
        read(tmp_path, fits + "\n")


def test_a_file_with_far_too_many_lines_is_not_read_to_its_end(tmp_path: Path) -> None:
    many = ("\n" * 20 + "Amount,Currency\n" + "1,GBP\n,\n" * 50).encode()
    far_off = many + b"1,GBP" + b"," * 199
    assert len(read_bank_file("november.csv", many, Columns(), most=50)) == 50
    with pytest.raises(FileRefused, match="more than 49 lines"):
        read_bank_file("november.csv", many, Columns(), most=49)
    with pytest.raises(FileRefused, match="more than 10 lines"):
        read_bank_file("november.csv", far_off, Columns(), most=10)
    with pytest.raises(FileRefused, match="line 122 has more than 200 columns"):
        read_bank_file("november.csv", far_off, Columns(), most=50)


def test_a_file_of_blank_lines_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty megabytes of them took six seconds."""
    monkeypatch.setattr(bank_file, "_MAX_ROWS", 1_000)
    most = b"Amount,Currency\n1,GBP\n" + b"\n" * 997 + b"2,GBP\n"
    assert len(read_bank_file("blank.csv", most, Columns())) == 2
    with pytest.raises(FileRefused, match="1,000 lines, with the blank ones") as refused:
        read_bank_file("blank.csv", most + b'"not closed', Columns())
    assert (refused.value.code, refused.value.values) == ("too_many_lines", {"most": 1_000})


def test_a_line_with_far_too_many_columns_is_not_searched_for_a_heading(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    folded = bank_file._folded
    monkeypatch.setattr(bank_file, "_folded", lambda name: searched.append(name) or folded(name))
    with pytest.raises(FileRefused, match="line 1 has more than 200 columns"):
        read_bank_file("november.csv", b"Amount," * 300, Columns())
    assert len(searched) < 200


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1000", "1000"),
        ("1000.5", "1000.5"),
        ("1000,50", "1000.50"),
        ("1,234.50", "1234.50"),
        ("1.234,50", "1234.50"),
        ("1.234.567", "1234567"),
        ("1,234,567.8", "1234567.8"),
        ("1 234,50", "1234.50"),
        ("1\N{NO-BREAK SPACE}234,50", "1234.50"),
        ("1'234.50", "1234.50"),
        ("+5", "5"),
        ("-5,00", "-5.00"),
        ("\N{MINUS SIGN}5,00", "-5.00"),
        ("5,00-", "-5.00"),
        ("5,00 -", "-5.00"),
        ("5,00+", "5.00"),
        ("(5.00)", "-5.00"),
        ("25,-", "25"),
        ("-25,-", "-25"),
    ],
)
def test_amounts_as_banks_write_them(text: str, amount: str) -> None:
    assert read_decimal(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1,234",
        "1.234",
        "1.2.3",
        "1,23,456.0",
        "1.5,5,5",
        "1e5",
        "NaN",
        "--5",
        "-5-",
        "5-5",
        "5 GBP",
        "£5",
        "\N{ARABIC-INDIC DIGIT ONE}",
    ],
)
def test_what_is_no_amount_or_could_be_two_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an amount|could be two amounts"):
        read_decimal(text)


def test_the_decimal_sign_may_be_said() -> None:
    assert read_decimal("1,234", ".") == 1234
    assert read_decimal("1,234", ",") == Decimal("1.234")
    with pytest.raises(ValueError, match="is not an amount"):
        read_decimal("1,23", ".")


def test_a_sign_of_the_currency_may_stand_beside_an_amount() -> None:
    assert read_decimal("£1,234.50", currency="GBP") == Decimal("1234.50")
    for typed in ("-5,00 EUR", "EUR -5,00", "5,00- EUR", "-EUR 5,00"):
        assert read_decimal(typed, currency="EUR") == Decimal("-5.00"), typed
    with pytest.raises(ValueError, match="is not an amount"):
        read_decimal("$5", currency="GBP")


@pytest.mark.parametrize(
    ("amount", "is_none"),
    [
        *(
            (one, True)
            for one in ("-5", "\N{MINUS SIGN}5,00", "5,00-", "EUR -5,00", "5,00- EUR", "(5.00)", "0", "0,00")
        ),
        *((one, False) for one in ("5", "+5", "25,-", "0,50", "5,00 EUR", "1.000", "", "x", "Soll - Haben")),
    ],
)
def test_what_is_no_payment_in(amount: str, is_none: bool) -> None:
    assert is_no_payment(amount) is is_none


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("Datum;Af Bij;Bedrag (EUR);Mededelingen;Munt\n1;Bij;100,00;a;EUR\n1;Af;100,00;b;EUR\n", ["100,00", "-100,00"]),
        ("Fecha;Concepto;Importe;Divisa\n1;a;1.234,50;EUR\n", ["1.234,50"]),
        ("Data operacji;Kwota;Waluta\n1;1 234,50;PLN\n", ["1 234,50"]),
        ("ID,Direction,Amount,Currency\n1,IN,5.00,GBP\n2,OUT,5.00,GBP\n", ["5.00", "-5.00"]),
    ],
)
def test_headings_of_other_languages(tmp_path: Path, text: str, amounts: list[str]) -> None:
    assert [line.amount for line in read(tmp_path, text)] == amounts
