"""CAMT files as banks write them, in versions 2 and 8, and XML that is no such file."""

import re

import pytest

from largesse.base.errors import FileRefused
from largesse.ledger import bank_file
from largesse.ledger.bank_file import BankLine, Columns, is_no_payment, is_taken_back, read_bank_file, read_decimal

REFERENCE = "RF18539007547034"
PAID = f"<NtryDtls><TxDtls><RmtInf><Ustrd>Gifts {REFERENCE}</Ustrd></RmtInf></TxDtls></NtryDtls>"


def entry(amount: str, rest: str = PAID, *, currency: str = "EUR", out: bool = False, status: str = "BOOK") -> str:
    direction = "DBIT" if out else "CRDT"
    return (
        f'<Ntry><Amt Ccy="{currency}">{amount}</Amt><CdtDbtInd>{direction}</CdtDbtInd><Sts>{status}</Sts>'
        f"<BookgDt><Dt>2026-11-20</Dt></BookgDt>{rest}</Ntry>"
    )


def document(*entries: str, version: str = "02", encoding: str = "UTF-8") -> bytes:
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?>\n<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.{version}">'
        f"<BkToCstmrStmt><Stmt><Id>1</Id><Bal><Amt Ccy='EUR'>9.00</Amt></Bal>{''.join(entries)}</Stmt></BkToCstmrStmt></Document>"
    )
    return text.encode(encoding)


def read(*entries: str, **options: str) -> list[BankLine]:
    return read_bank_file("november.xml", document(*entries, **options), Columns())


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1", "UTF-16"])
def test_payments_are_read_with_their_amount_currency_and_reference(encoding: str) -> None:
    (line,) = read(entry("1234.50", PAID.replace("Gifts", "Für Geschenke")), encoding=encoding)
    assert (line.line, line.amount, line.currency, line.named) == (1, "1234.50", "EUR", (REFERENCE,))
    assert read(entry("5"))[0].mark == read(entry("7"), entry("5"))[1].mark, "it is the same in the next file"
    assert read(entry("5"), entry("5"))[0].mark != read(entry("5"), entry("5"))[1].mark


def test_a_point_always_stands_before_decimals() -> None:
    lines = read(entry("1.234", currency="KWD"), entry("100000", currency="JPY"), entry("1000.000"))
    assert [read_decimal(line.amount) for line in lines] == [read_decimal("1.2340"), 100_000, 1_000]


def test_what_was_paid_out_is_pending_or_was_reversed_is_no_payment() -> None:
    version_8 = entry("4.00").replace("<Sts>BOOK</Sts>", "<Sts><Cd>PDNG</Cd></Sts>")
    reversal = entry("5.00", "<RvslInd>true</RvslInd>" + PAID)
    lines = read(entry("1.00"), entry("2.00", out=True), entry("3.00", status="PDNG"), version_8, reversal)
    assert [is_no_payment(line.amount) for line in lines] == [False, True, True, True, True]
    assert [is_taken_back(line.amount) for line in lines] == [False, True, False, False, True]


def test_each_transaction_of_an_entry_is_a_line_if_it_has_an_amount() -> None:
    other = "RF71000000000001"
    parts = [
        f"<TxDtls><AmtDtls><TxAmt><Amt Ccy='EUR'>{amount}</Amt></TxAmt></AmtDtls><RmtInf><Strd><CdtrRefInf><Ref>{reference}</Ref>"
        "</CdtrRefInf></Strd></RmtInf></TxDtls>"
        for amount, reference in (("10.00", REFERENCE), ("20.00", other))
    ]
    both = f"<NtryDtls>{''.join(parts)}</NtryDtls>"
    first, second = read(entry("30.00", both))
    assert (first.amount, first.named, second.amount) == ("10.00", (REFERENCE,), "20.00")
    (whole,) = read(entry("30.00", both.replace("AmtDtls", "Other")))
    assert whole.amount == "30.00", "what the parts are worth is not known"


@pytest.mark.parametrize(
    "content",
    [
        document(*["<Ntry/>"] * 50),
        document(entry("1.00", "<NtryDtls>" + "<TxDtls><Amt/></TxDtls>" * 50 + "</NtryDtls>")),
    ],
)
def test_a_file_with_far_too_many_lines_is_not_read_to_its_end(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = bank_file._camt_row
    monkeypatch.setattr(bank_file, "_camt_row", lambda *parts: made.append(parts) or make(*parts))
    with pytest.raises(FileRefused, match="more than 10 lines"):
        read_bank_file("november.xml", content, Columns(), most=10)
    assert len(made) == 11
    assert len(read_bank_file("november.xml", content, Columns(), most=50)) == 50


def test_names_of_elements_have_no_namespace() -> None:
    """The address of a namespace would be written into the name of every element: 1 MB of a file could stop the process for minutes."""
    text = document(entry("1.00")).decode()
    prefixed = re.sub("<(/?)([A-Z])", r"<\1bank:\2", text).replace("xmlns=", "xmlns:bank=")
    for content in (text, prefixed):
        root = bank_file._camt_root(content)
        assert root is not None
        assert {one.tag for one in root.iter()} >= {"Document", "Ntry", "TxDtls", "Ustrd"}
    assert read_bank_file("prefixed.xml", prefixed.encode(), Columns()) == read(entry("1.00"))


def test_what_transactions_share_is_read_once_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = f"<AcctSvcrRef>{'7' * 5_000}</AcctSvcrRef><NtryDtls>{'<TxDtls><Amt>1</Amt></TxDtls>' * 20}</NtryDtls>"
    looked_at: list[str] = []
    texts_in = bank_file._texts_in
    monkeypatch.setattr(
        bank_file, "_texts_in", lambda of: looked_at.append("" if of is None else of.tag) or texts_in(of)
    )
    rows = bank_file._camt_rows("november.xml", document(entry("20", shared)).decode(), 500)
    assert len(rows) == 21
    assert [looked_at.count(name) for name in ("AcctSvcrRef", "Sts")] == [1, 1]
    assert max(len(cell) for _, cells in rows for cell in cells) < 200


def test_an_empty_statement_has_no_lines() -> None:
    assert read() == []


@pytest.mark.parametrize(
    "content",
    [
        b"<html><table><tr><td>Amount</td></tr></table></html>",
        b"<Document><Ntry>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><Document>&b;</Document>',
        document(entry("1.00")).replace(b"<Document", b"<Documents").replace(b"</Document", b"</Documents"),
    ],
)
def test_other_xml_is_refused(content: bytes) -> None:
    with pytest.raises(FileRefused, match="neither a CSV file nor a CAMT file"):
        read_bank_file("november.xml", content, Columns())
