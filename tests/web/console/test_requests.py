"""The pages of the request log."""

import csv
import html
import io
import re

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn

from largesse.request_log import store

FILL = """
    INSERT INTO api_requests (customer_id, environment, at, key_id, method, route, path, status, problem, duration_us, request_id, address)
    SELECT $1, $2, clock_now(), (SELECT id FROM api_keys WHERE customer_id = $1 AND environment = $2 ORDER BY id LIMIT 1),
        CASE n % 3 WHEN 0 THEN 'POST' ELSE 'GET' END, CASE n % 3 WHEN 0 THEN '/send/gift' ELSE '/orders/{reference}' END,
        CASE n % 3 WHEN 0 THEN NULL ELSE '/orders/x' || n END, CASE n % 2 WHEN 0 THEN 200 ELSE 404 END,
        CASE n % 2 WHEN 0 THEN NULL ELSE 'not-found' END, 1500, $3 || n, '192.0.2.7' FROM generate_series(1, $4::int) AS n
"""


def fill(service: Service, customer: str, environment: str, name: str, count: int) -> None:
    service.sql("DELETE FROM api_requests WHERE customer_id = $1", service.ids["customers"][customer])
    service.sql(FILL, service.ids["customers"][customer], environment, name, count)


def rows_of(browser: Browser, query: str = "") -> list[str]:
    browser.get(f"/app/requests{query}")
    return re.findall(r'<td class="less"[^>]*><code>([^<]+)</code>', browser.page.text)


def test_requests_are_listed_filtered_and_shown(service: Service, sign_in: SignIn) -> None:
    fill(service, "acme", "production", "req-", 6)
    ada = sign_in("ada@acme.example")
    assert rows_of(ada) == [f"req-{n}" for n in (6, 5, 4, 3, 2, 1)]
    assert rows_of(ada, "?status=4") == ["req-5", "req-3", "req-1"]
    assert rows_of(ada, "?method=POST") == ["req-6", "req-3"]
    assert rows_of(ada, "?path=/orders/x2") == ["req-2"]
    for typed in (
        "orders/x2",
        "/orders/x2/",
        "%20/orders/x2?limit=5%20",
        "https://gifts.example/orders/x2%23a",
        "orders/x2?",
    ):
        assert rows_of(ada, f"?path={typed}") == ["req-2"]
    assert rows_of(ada, "?path=/orders/{reference}&status=2") == ["req-4", "req-2"]
    assert len(rows_of(ada, "?path=%20")) == len(rows_of(ada, ""))
    assert rows_of(ada, "?request=req-1") == ["req-1"]
    assert rows_of(ada, "?status=5") == []
    assert "No requests match these filters." in ada.text
    for odd in ("status=9", "method=<b>", "key=x", "before=" + "9" * 30, "path=%00", "request=%27"):
        assert ada.get(f"/app/requests?{odd}").status_code == 200
    (link,) = [one for one in ada.get("/app/keys") and ada.links if "/app/requests?key=" in one][:1]
    assert len(rows_of(ada, link.removeprefix("/app/requests"))) == 6
    ada.get("/app/requests?request=req-5")
    (one,) = {link for link in ada.links if re.fullmatch(r"/app/requests/\d+", link)}
    shown = ada.get(one).text
    for said in ("req-5", "/orders/x5", "404", "/problems/not-found", "1.5 ms", "192.0.2.7"):
        assert said in shown
    assert ada.get("/app/requests/999999999999").status_code == 404
    assert ada.get(f"/app/requests/{'9' * 40}").status_code == 404
    file = ada.get("/app/requests.csv?status=4").text.lstrip("\ufeff")
    assert [row["Request ID"] for row in csv.DictReader(io.StringIO(file))] == ["req-5", "req-3", "req-1"]


def test_requests_of_a_deleted_key_say_whose_they_are(service: Service, sign_in: SignIn) -> None:
    fill(service, "acme", "production", "gone-", 2)
    ada = sign_in("ada@acme.example")
    [key] = service.sql("""
        INSERT INTO api_keys (customer_id, service_account_id, key, environment, deleted_at)
        SELECT customer_id, service_account_id, 'gone', environment, clock_now() FROM api_keys
        WHERE id IN (SELECT key_id FROM api_requests) RETURNING id
    """)
    service.sql("UPDATE api_requests SET key_id = $1", key["id"])
    assert len(rows_of(ada, f"?key={key['id']}")) == 2
    assert f'<option value="{key["id"]}" selected>gone</option>' in ada.page.text
    rows_of(ada)
    assert ">gone</option>" not in ada.page.text


def test_older_requests_are_a_page_away(service: Service, sign_in: SignIn) -> None:
    fill(service, "acme", "production", "page-", 51)
    ada = sign_in("ada@acme.example")
    assert len(rows_of(ada)) == 50
    (older,) = re.findall(r'href="([^"]+)" rel="next"', ada.page.text)
    assert rows_of(ada, older.removeprefix("/app/requests")) == ["page-1"]


def test_a_page_looks_at_a_bounded_number_of_requests(
    service: Service, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(service, "acme", "production", "req-", 6)
    service.sql("UPDATE api_requests SET status = 500 WHERE request_id = 'req-1'")
    monkeypatch.setattr(store, "LOOKED_AT", 5)
    ada = sign_in("ada@acme.example")
    assert rows_of(ada, "?status=5") == []
    assert "None of the 100,000 requests before this match. Look further back." in ada.text
    (older,) = re.findall(r'href="([^"]+)" rel="next"', ada.page.text)
    assert rows_of(ada, html.unescape(older).removeprefix("/app/requests")) == ["req-1"]
    assert "req-1" in ada.get("/app/requests.csv?status=5").text


def test_nobody_sees_what_another_customer_or_environment_asked(service: Service, sign_in: SignIn) -> None:
    fill(service, "acme", "production", "secret-", 3)
    (row,) = service.sql("SELECT max(id) AS id FROM api_requests")
    gil = sign_in("gil@globex.example")
    assert rows_of(gil) == []
    assert "secret-" not in gil.get("/app/requests.csv").text
    assert gil.get(f"/app/requests/{row['id']}").status_code == 404
    service.sql("UPDATE api_requests SET environment = 'staging'")
    ada = sign_in("ada@acme.example")
    assert rows_of(ada) == []
    assert ada.get(f"/app/requests/{row['id']}").status_code == 404
