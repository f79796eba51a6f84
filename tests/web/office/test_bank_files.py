"""Files of banks that are no CSV, on pages of the back office."""

from tests.ledger.test_camt_file import REFERENCE, document, entry
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.office.test_money import FILES, balance, fay, service, wait_for

__all__ = ["fay", "service"]


def test_a_camt_file_credits_the_top_ups_that_it_pays(service: Service, fay: Browser) -> None:
    (reference,), before = wait_for(service, 1, 1_234_50), balance(service)
    paid, out = (
        entry("1234.50", currency="GBP").replace(REFERENCE, reference),
        entry("1234.50", currency="GBP", out=True),
    )
    fay.get(FILES)
    here = fay.upload(FILES, document(out, paid), file_name="camt.053.xml", decimals="").headers["location"]
    fay.sees(here, "Matched: 1", "Ignored: 1")
    assert fay.post(f"{here}/confirm").status_code == 303
    assert balance(service) == before + 1_234_50
    fay.get(FILES)
    later = fay.upload(FILES, document(paid, entry("7.00", "")), file_name="later.xml", decimals="").headers["location"]
    fay.sees(later, "Credited: 1", "Ignored: 1")
    empty = fay.upload(FILES, b"Date,Amount,Currency,Text\n", file_name="quiet.csv", decimals="")
    assert "The file has a heading, but no transfers below it." in empty.text
    assert service.sql("SELECT FROM bank_files WHERE name = 'quiet.csv'") == []
    assert (
        "This file has the format PDF. Import the CSV or CAMT file" in fay.upload(FILES, b"%PDF-1.7", decimals="").text
    )
    for xml in (b"<html></html>", b"<Document", b"<!DOCTYPE Document><Document/>"):
        page = fay.upload(FILES, xml, file_name="camt.xml", decimals="").text
        assert "This is neither a CSV file nor a CAMT file." in page


def test_a_payment_that_the_bank_took_back_waits_for_somebody(service: Service, fay: Browser) -> None:
    """It was credited although its reversal followed in the same file; and a later reversal was ignored."""
    (reference,), before = wait_for(service, 1, 77_00), balance(service)
    paid, pending = (
        entry("77.00", currency="GBP", status=status).replace(REFERENCE, reference) for status in ("BOOK", "PDNG")
    )
    back = entry("77.00", currency="GBP", out=True).replace(REFERENCE, reference)
    fay.get(FILES)
    here = fay.upload(FILES, document(paid, back), file_name="both.xml", decimals="").headers["location"]
    fay.sees(here, "To decide: 1", "Another line of this file takes the payment back.", "Ignored: 1")
    assert fay.post(f"{here}/lines/1/credit").status_code == 303
    assert balance(service) == before + 77_00
    fay.get(FILES)
    later = fay.upload(FILES, document(back, pending), file_name="later.xml", decimals="").headers["location"]
    fay.sees(later, "To decide: 1", "The top-up is credited, and this may take its money back.", "Ignored: 1")
    fay.sees("/office", "1 line of a bank file waits")
    assert fay.post(f"{later}/lines/1/dismiss").status_code == 303
    fay.sees(later, "Dismissed: 1", "Ignored: 1")
