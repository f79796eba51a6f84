"""Home and Reports: figures that are those of the orders, of whom they are for, and what needs attention."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.web.api.conftest import OF_ORDER, Service
from tests.web.claim.conftest import Recipient
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.orders import WORLD, ada, cem, changed, fill, filled, put_away, send, sent_mail, work

from largesse.base.i18n.languages import LANGUAGES
from largesse.reports import listing
from largesse.web.console.charts import Bar, bars, rule_step
from largesse.web.console.periods import MOST_DAYS, free_period, period_of

__all__ = ["WORLD", "ada", "cem", "filled"]


@pytest.mark.parametrize(
    ("name", "since", "until", "before_since", "before_until"),
    [
        ("this-month", "2030-03-01", "2030-03-15", "2030-02-01", "2030-02-15"),
        ("last-month", "2030-02-01", "2030-02-28", "2030-01-01", "2030-01-31"),
        ("3-months", "2030-01-01", "2030-03-15", "2029-10-01", "2029-12-15"),
        ("12-months", "2029-04-01", "2030-03-15", "2028-04-01", "2029-03-15"),
        ("30-days", "2030-02-14", "2030-03-15", "2030-01-15", "2030-02-13"),
        ("nonsense", "2030-02-14", "2030-03-15", "2030-01-15", "2030-02-13"),
    ],
)
def test_periods_are_whole_months_or_30_days(
    name: str, since: str, until: str, before_since: str, before_until: str
) -> None:
    period = period_of(name, date(2030, 3, 15))
    told = (period.since, period.until, period.before_since, period.before_until)
    assert tuple(map(str, told)) == (since, until, before_since, before_until)


def test_a_chart_has_a_place_for_each_day_or_month() -> None:
    today = date(2030, 3, 15)
    assert period_of("this-month", today).steps()[::15] == [date(2030, 3, 1), date(2030, 3, 16), date(2030, 3, 31)]
    assert len(period_of("last-month", today).steps()) == 28
    recent = period_of("30-days", today)
    assert (recent.grain, len(recent.steps()), recent.steps()[-1]) == ("day", 30, today)
    assert period_of("3-months", today).steps() == [date(2030, 1, 1), date(2030, 2, 1), date(2030, 3, 1)]
    assert period_of("12-months", today).steps()[0] == date(2029, 4, 1)


def test_a_free_period_is_compared_with_as_many_days_before() -> None:
    period = free_period(date(2030, 3, 10), date(2030, 3, 12))
    assert (period.before_since, period.before_until) == (date(2030, 3, 7), date(2030, 3, 9))
    assert (period.grain, len(period.steps())) == ("day", 3)
    long = free_period(date(2029, 11, 30), date(2030, 2, 1))
    assert long.grain == "month"
    assert [str(day) for day in long.steps()] == ["2029-11-01", "2029-12-01", "2030-01-01", "2030-02-01"]
    assert free_period(date(2030, 1, 1), date(2030, 3, 3)).grain == "day"
    last = date(2030, 1, 1) + timedelta(days=MOST_DAYS - 1)
    assert len(free_period(date(2030, 1, 1), last).steps()) == 61
    for since, until in (
        (date(2030, 1, 1), last + timedelta(days=1)),
        (date(2030, 1, 2), date(2030, 1, 1)),
        (date.min, date(1, 1, 5)),
    ):
        with pytest.raises(ValueError, match="days"):
            free_period(since, until)


def test_the_end_of_a_month_is_compared_with_the_end_of_the_month_before() -> None:
    period = period_of("this-month", date(2030, 3, 31))
    assert (period.before_since, period.before_until) == (date(2030, 2, 1), date(2030, 2, 28))


def chart(*points: Bar) -> ET.Element:
    drawn = str(bars("Spent <b>", "all of it", points, lambda value: f"£{value}"))
    assert "style=" not in drawn
    return ET.fromstring(drawn)  # noqa: S314 - our own


def test_labels_have_room_on_a_phone_and_stay_in_the_picture() -> None:
    root = chart(*(Bar(f"{day} Mar", (day,), "") for day in range(1, 32)))
    texts = list(root.iter("text"))
    assert [text.text for text in texts[:5]] == ["£0", "£10", "£20", "£30", "£40"]
    assert {text.get("x") for text in texts[:5]} == {"-8"}, "values stand before the first bar, not on it"
    labels = texts[5:]
    assert len(labels) == 8
    assert [label.get("class") for label in labels] == [None, "minor"] * 4
    assert [label.get("text-anchor") for label in labels] == [None] * 7 + ["end"]
    assert all(label.get("x", "").endswith("%") for label in labels), "letters keep their size on any screen"


def test_a_chart_says_what_it_shows_and_bars_are_as_high_as_their_values() -> None:
    root = chart(Bar("1 Jan", (100, 50), "said & done"), Bar("2 Jan", (0, 25), ""))
    assert [child.text for child in root[:2]] == ["Spent <b>", "all of it"]
    heights = [float(rect.get("height", "")) for rect in root.iter("rect") if rect.get("class") != "air"]
    assert heights[0] == pytest.approx(2 * heights[1]) == pytest.approx(4 * heights[3])
    assert heights[2] == 0
    # Under the pointer, anywhere above the place.
    [first, _] = [group for group in root.iter("g") if group.get("class") == "place"]
    assert first[0].text == "said & done"
    assert [text.text for text in chart().iter("text")] == ["£0"]
    # More came back than was spent: nothing is drawn below the axis, and the scale begins at zero.
    assert [text.text for text in chart(Bar("1 Jan", (-100, 0), "")).iter("text")] == ["£0", "1 Jan"]


@pytest.mark.parametrize(
    ("highest", "apart"),
    [(0, 1), (1, 1), (4, 1), (5, 2), (31, 10), (100, 25), (101, 50), (75_000, 20_000), (2**53, 2_500_000_000_000_000)],
)
def test_rules_of_an_axis_are_round_values_and_at_most_four(highest: int, apart: int) -> None:
    assert rule_step(highest) == apart
    assert -(-highest // apart) <= 4


def test_a_report_adds_up_what_there_is(own_service: Service) -> None:
    service, ada = own_service, signed_in(own_service, "ada@acme.example")
    fill(service)
    codes = service.send("gift", "coffee", value=5, codeQuantity=4, source="survey").json()
    Recipient(service).gift(codes["codes"][0])
    work(service)
    ada.sees("/app/reports?by=source", "survey 1 £20.00 1 £0.00", "crm 1 £30.00 0 £0.00", "Spent and claimed in GBP")
    ada.says("Up to an hour 1 of 13")
    assert "<svg" in ada.page.text
    ada.sees("/app/reports?by=placed_by&period=12-months", "HR bot 3 £80.00 1 £0.00", "Cem 1 £30.00 0 £0.00")
    assert "appear here" in ada.read("/app/reports?period=last-month&by=x")
    assert service.send("gift", "books", value=20, account="eur", country="IE").status_code == 200
    work(service)
    for table in ("parts", "time", "claims"):  # as the page: the currency with the most orders first
        rows = list(csv.DictReader(io.StringIO(ada.get(f"/app/reports.csv?of={table}").text)))
        assert list(dict.fromkeys(row["Currency"] for row in rows)) == ["GBP", "EUR"]
    assert re.search(r"Breakdown .*£.*€20.00 .*Over time .*£.*€20.00 ", ada.read("/app/reports"))
    assert re.search(r"orders, £[\d.]+ · 1 order, €20.00", ada.read("/app/orders"))


def test_spent_is_net_of_what_was_returned_everywhere(ada: Browser, service: Service) -> None:
    codes = service.send("gift", "coffee", value=5, codeQuantity=4, source="refunded").json()
    Recipient(service).gift(codes["codes"][0])
    service.client("hr").post(f"/orders/{codes['reference']}/cancel")
    service.send("gift", "coffee", value=5, codeQuantity=2, source="less")
    work(service)
    assert "refunded 1 £5.00 1 £15.00" in ada.read("/app/reports?by=source")
    [total] = re.findall(r'Spent</p>\s*<p class="figure">£([0-9.]+)<', ada.page.text)
    [[refunded]] = service.sql("SELECT sum(refunded_minor) FROM report_sums WHERE grain = 'day'")
    assert re.search(rf'Refunded</p>\s*<p class="figure">£{refunded / 100:.2f}<', ada.page.text)
    day = re.search(
        r"Over time .*When Orders Spent Gifts claimed Refunded \S+ \S+ (\d+) £([0-9.]+) (\d+) £15.00", ada.text
    )
    assert day is not None
    assert day[2] == total
    assert f"spent £{total}" in ada.page.text  # in the words of the chart
    assert f"Spent this month £{total}" in ada.read("/app")
    for table in ("time", "parts"):
        rows = list(csv.reader(io.StringIO(ada.get(f"/app/reports.csv?by=source&of={table}").text)))
        spent, back = rows[0].index("Spent"), rows[0].index("Refunded")
        assert sum(Decimal(row[spent]) for row in rows[1:]) == Decimal(total)
        assert sum(Decimal(row[back]) for row in rows[1:]) == Decimal("15.00")
    amounts = [Decimal(row[spent]) for row in rows[1:]]
    assert amounts == sorted(amounts, reverse=True), "the groups"


def test_a_report_is_of_ones_own_for_a_member(cem: Browser, filled: dict[str, str]) -> None:
    assert "web 1 £30.00" in cem.read("/app/reports?by=source")
    assert "crm" not in cem.text
    assert re.search(r'Spent</p>\s*<p class="figure">£30.00<', cem.page.text)


def test_a_report_comes_as_a_file_for_who_may_export(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    answer = ada.get("/app/reports.csv?by=source")
    rows = list(csv.reader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert rows[0][:4] == ["Source", "Orders", "Codes", "Spent"]
    assert ["crm", "1", "3", "30.00"] in [row[:4] for row in rows]
    vic = signed_in(service, "vic@acme.example")
    assert vic.get("/app/reports").status_code == 200
    assert "reports.csv" not in vic.page.text
    assert vic.get("/app/reports.csv").status_code == 403


def test_a_report_is_of_any_days(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    today = datetime.now(UTC).date()
    long_ago = today - timedelta(days=400)
    ada.sees(f"/app/reports?period=days&since={long_ago}&until={today}&by=user", "Cem 1 £30.00", "API keys ")
    ada.says(f"{long_ago:%-d %B %Y} \N{EN DASH} {today:%-d %B %Y} · Compared with")
    yesterday = f"{today - timedelta(days=1):%-d %B %Y}"
    ada.sees(f"/app/reports?period=days&since={today}&until={today}", f"{today:%-d %B %Y} · Compared with {yesterday}.")
    assert "HR bot " in ada.read(f"/app/reports?period=days&since={long_ago}&until={today}&by=service_account")
    assert "People 1 £30.00" in ada.text
    # Typed beside a choice that was left as it was; and a choice after days.
    assert "appear here" in ada.read(f"/app/reports?was=this-month&period=this-month&since={long_ago}&until={long_ago}")
    assert "appear here" not in ada.read(f"/app/reports?was=days&period=this-month&since={long_ago}&until={long_ago}")
    for query, said in (
        ("since=x&until=2030-01-01", "Type a date"),
        ("since=2030-01-01&until=", "Type a date"),
        ("since=2030-01-02&until=2030-01-01", "Choose a day that is not before the first one."),
        ("since=2020-01-01&until=2030-01-01", "Choose at most 1,830 days."),
        ("since=0001-01-01&until=9999-12-31", "Choose at most 1,830 days."),
    ):
        answer = ada.get(f"/app/reports?period=days&{query}")
        assert (answer.status_code, said in answer.text) == (422, True), query


def test_days_are_written_as_the_language_writes_them(ada: Browser, filled: dict[str, str]) -> None:
    today = datetime.now(UTC).date()
    ada.headers["Accept-Language"] = "de"
    try:
        page = ada.read(f"/app/reports?period=days&since={today}&until={today}")
    finally:
        ada.headers["Accept-Language"] = "en"
    assert LANGUAGES["de"].short_day(today, with_year=False) in page


@pytest.mark.parametrize(
    ("of", "heading", "row"),
    [
        ("time", ["Day", "Orders"], 1),
        ("claims", ["Claimed", "Codes claimed", "Codes", "Currency"], 6),
        ("parts", ["Gift", "Orders"], 1),
    ],
)
def test_each_table_of_a_report_comes_as_a_file(
    ada: Browser, filled: dict[str, str], of: str, heading: list[str], row: int
) -> None:
    ada.get("/app/reports")
    assert any(link.endswith(f"of={of}") for link in ada.links)
    answer = ada.get(f"/app/reports.csv?of={of}")
    rows = list(csv.reader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    assert rows[0][: len(heading)] == heading
    assert len(rows) > row


def test_cancelled_codes_are_not_called_unclaimed(ada: Browser, service: Service, filled: dict[str, str]) -> None:
    def others() -> list[list[str]]:
        text = ada.get("/app/reports.csv?of=claims").text
        return [row for row in csv.reader(io.StringIO(text)) if row[0] == "Unclaimed or cancelled"]

    [[_, before, *_]] = others()
    reference = send(service)
    service.client("hr").post(f"/orders/{reference}/cancel")
    work(service)
    [[_, after, *_]] = others()
    assert int(after) == int(before) + 3


def test_a_report_names_all_that_it_adds_up(
    ada: Browser, filled: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many groups of orders there are, of which the list of orders offers the newest as filters."""
    monkeypatch.setattr(listing, "MAX_CHOICES", 1)
    for by, unnamed in (("gift", "product-"), ("placed_by", "person-|key-"), ("account", "[0-9]+")):
        rows = list(csv.reader(io.StringIO(ada.get(f"/app/reports.csv?by={by}&period=this-month").text)))
        assert len(rows) > 1
        assert [row[0] for row in rows if re.match(unnamed, row[0])] == []


def test_home_shows_what_needs_attention_and_where(
    ada: Browser, cem: Browser, service: Service, filled: dict[str, str]
) -> None:
    reference = send(service)
    work(service)
    sent_mail(service, reference, "bounced", "recipient")
    old = send(service)
    service.sql("UPDATE orders SET created_at = now() - interval '40 days' WHERE reference = $1", old)
    changed(service, old)
    service.sql(
        "UPDATE api_keys SET created_at = created_at - interval '91 days', last_seen_at = NULL WHERE key = 'crm'"
    )
    work(service)
    ada.sees("/app", "1 order has mail that bounced", "1 order has unclaimed gifts For more than 30 days.")
    ada.says("1 API key is unused", "Balance, GBP", "Spent this month")
    assert {"/app/orders?state=bounced", "/app/keys"} <= set(ada.links)
    ada.get("/app/orders?state=bounced")
    assert reference in ada.page.text
    assert "bounced" not in cem.read("/app")
    assert filled["own"] in cem.page.text
    assert reference not in cem.page.text


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster does not add an interval to a column")
def test_gifts_that_have_not_left_are_not_among_those_of_which_a_share_was_claimed(
    ada: Browser, service: Service, filled: dict[str, str]
) -> None:
    batch = service.send("gift", "coffee", value=5, codeQuantity=2).json()
    for code in batch["codes"]:
        Recipient(service).gift(code)
    references = [batch["reference"], send(service, sendAt="2999-01-01T09:00:00Z")]
    for reference in references:
        service.sql("UPDATE orders SET created_at = now() - interval '10 days' WHERE reference = $1", reference)
        service.sql(f"UPDATE line_events SET at = at - interval '10 days' WHERE {OF_ORDER}", reference)
        changed(service, reference)
    work(service)
    assert re.search(r"Claimed within 7 days 100%", ada.read("/app"))
    for reference in references:
        put_away(service, reference)


def test_home_of_somebody_new_says_what_to_do(service: Service) -> None:
    gil = signed_in(service, "gil@globex.example")
    assert "Send a gift" in gil.read("/app")


@pytest.mark.parametrize("path", ["/app/reports", "/app/reports.csv", "/app/orders", "/app/orders.csv"])
def test_the_last_days_of_the_calendar_have_nothing(ada: Browser, filled: dict[str, str], path: str) -> None:
    for since, until in (("9999-12-15", "9999-12-20"), ("9999-12-15", "9999-12-31"), ("9999-12-31", "")):
        assert ada.get(f"{path}?period=days&since={since}&until={until}").status_code in {200, 422}, (since, until)
