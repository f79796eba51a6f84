"""Home and Reports: figures that are those of the orders, of whom they are for, and what needs attention."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from datetime import date

import pytest
from tests.web.api.conftest import Service
from tests.web.claim.conftest import Recipient
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.orders import WORLD, ada, cem, changed, filled, send, sent_mail, work

from largesse.web.console.charts import Bar, bars
from largesse.web.console.periods import period_of

__all__ = ["WORLD", "ada", "cem", "filled"]


@pytest.mark.parametrize(
    ("name", "since", "until", "before_since", "before_until"),
    [
        ("this-month", "2030-03-01", "2030-03-15", "2030-02-01", "2030-02-28"),
        ("last-month", "2030-02-01", "2030-02-28", "2030-01-01", "2030-01-31"),
        ("3-months", "2030-01-01", "2030-03-15", "2029-10-01", "2029-12-31"),
        ("12-months", "2029-04-01", "2030-03-15", "2028-04-01", "2029-03-31"),
        ("nonsense", "2030-03-01", "2030-03-15", "2030-02-01", "2030-02-28"),
    ],
)
def test_periods_are_whole_months(
    name: str, since: str, until: str, before_since: str, before_until: str
) -> None:
    period = period_of(name, date(2030, 3, 15))
    told = (period.since, period.until, period.before_since, period.before_until)
    assert tuple(map(str, told)) == (since, until, before_since, before_until)


def test_a_chart_has_a_place_for_each_day_or_month() -> None:
    today = date(2030, 3, 15)
    assert period_of("this-month", today).steps()[::15] == [
        date(2030, 3, 1),
        date(2030, 3, 16),
        date(2030, 3, 31),
    ]
    assert len(period_of("last-month", today).steps()) == 28
    assert period_of("3-months", today).steps() == [date(2030, 1, 1), date(2030, 2, 1), date(2030, 3, 1)]
    assert period_of("12-months", today).steps()[0] == date(2029, 4, 1)


def test_a_chart_says_what_it_shows_and_bars_are_as_high_as_their_values() -> None:
    drawn = bars(
        "Spent <b>", "all of it", [Bar("1 Jan", (100, 50), "said & done"), Bar("2 Jan", (0, 25), "")]
    )
    root = ET.fromstring(str(drawn))  # noqa: S314 - our own
    assert [child.text for child in root[:2]] == ["Spent <b>", "all of it"]
    heights = [float(rect.get("height", "")) for rect in root.iter("rect")]
    assert heights[0] == pytest.approx(2 * heights[1]) == pytest.approx(4 * heights[3])
    assert heights[2] == 0
    assert "style=" not in str(drawn)
    assert 'height="0.0"' not in str(bars("Nothing", "", []))


def test_a_report_adds_up_what_there_is(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    codes = service.send("gift", "coffee", value=5, codeQuantity=4, source="survey").json()
    Recipient(service).gift(codes["codes"][0])
    work(service)
    ada.get("/app/reports?by=source")
    assert "survey 1 £20.00 1 £0.00" in ada.text
    assert "crm 1 £30.00 0 £0.00" in ada.text
    assert "Spent and claimed in GBP" in ada.text
    assert "Within an hour 1 of 13" in ada.text
    assert "<svg" in ada.page.text
    ada.get("/app/reports?by=placed_by&period=12-months")
    assert "HR bot 3 £80.00 1 £0.00" in ada.text
    assert "Cem 1 £30.00 0 £0.00" in ada.text
    ada.get("/app/reports?period=last-month&by=x")
    assert "will stand here" in ada.text


def test_a_report_is_of_ones_own_for_a_member(cem: Browser, filled: dict[str, str]) -> None:
    cem.get("/app/reports?by=source")
    assert "web 1 £30.00" in cem.text
    assert "crm" not in cem.text
    assert "Spent £30.00" in cem.text


def test_a_report_comes_as_a_file_for_who_may_export(
    ada: Browser, service: Service, filled: dict[str, str]
) -> None:
    answer = ada.get("/app/reports.csv?by=source")
    rows = list(csv.reader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert rows[0][:4] == ["by", "orders", "codes", "spent"]
    assert ["crm", "1", "3", "30.00"] in [row[:4] for row in rows]
    vic = signed_in(service, "vic@acme.example")
    assert vic.get("/app/reports").status_code == 200
    assert "reports.csv" not in vic.page.text
    assert vic.get("/app/reports.csv").status_code == 403


def test_home_shows_what_needs_attention_and_where(
    ada: Browser, cem: Browser, service: Service, filled: dict[str, str]
) -> None:
    reference = send(service)
    work(service)
    sent_mail(service, reference, "bounced", "recipient")
    old = send(service)
    service.sql("UPDATE orders SET created_at = created_at - interval '40 days' WHERE reference = $1", old)
    changed(service, old)
    service.sql(
        "UPDATE api_keys SET created_at = created_at - interval '91 days', last_seen_at = NULL WHERE key = 'crm'"
    )
    work(service)
    ada.get("/app")
    assert "Orders with mail that was refused: 1" in ada.text
    assert "Orders unclaimed for 30 days: 1" in ada.text
    assert "API keys unused for 90 days: 1" in ada.text
    assert "Acme float" in ada.text
    assert "This month" in ada.text
    ada.get("/app/orders?state=bounced")
    assert reference in ada.page.text
    cem.get("/app")
    assert "refused" not in cem.text
    assert filled["own"] in cem.page.text
    assert reference not in cem.page.text


def test_home_of_somebody_new_says_what_to_do(service: Service) -> None:
    gil = signed_in(service, "gil@globex.example")
    gil.get("/app")
    assert "Send a gift" in gil.text
