"""The pages of webhooks: subscribe, try, see what became of deliveries, have them made again, remove."""

import csv
import io
import re
from html import unescape
from pathlib import Path

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, user_id

from largesse.web.console.webhooks import REFUSALS
from largesse.webhooks import targets


def subscribe(admin: Browser, url: str = "https://93.184.215.14/hook") -> str:
    """Subscribes by the page; returns the path of the subscription's page."""
    answer = admin.submit("/app/webhooks", target_url=url, event="order.created")
    assert answer.status_code == 200, answer.text
    assert "whsec_" in answer.text
    [path] = set(re.findall(r'href="(/app/webhooks/[0-9a-f-]{36})"', answer.text))
    return path


def id_in(path: str) -> str:
    return path.rpartition("/")[2]


def test_an_address_is_added_tried_and_removed(service: Service, ada: Browser) -> None:
    path = subscribe(ada)
    assert "Nothing sent yet" in ada.read("/app/webhooks")
    assert "whsec_" not in ada.text, "shown once"
    assert ada.submit(path, f"{path}/test").status_code == 303
    ada.sees(path, "The sample is being sent.", "Pending")
    assert ada.submit(f"{path}/remove").status_code == 303
    assert "The webhook was removed." in ada.read("/app/webhooks")
    assert ada.get(path).status_code == 404
    acts = service.sql("SELECT act FROM audit_events WHERE subject = $1 ORDER BY id", f"subscription {id_in(path)}")
    assert [row["act"] for row in acts] == ["webhook.created", "webhook.deleted"]


def test_what_became_of_deliveries_is_shown_and_what_failed_is_made_again(service: Service, ada: Browser) -> None:
    path = subscribe(ada)
    for _ in range(3):
        ada.submit(path, f"{path}/test")
    rows = service.sql("SELECT id FROM deliveries WHERE subscription_id = $1::text::uuid ORDER BY id", id_in(path))
    dropped, exhausted, delivered = (row["id"] for row in rows)
    for delivery, state in ((dropped, "dropped"), (exhausted, "exhausted"), (delivered, "delivered")):
        service.sql("UPDATE deliveries SET state = $2, finished_at = now() WHERE id = $1", delivery, state)
    service.sql(
        "INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms, status, answer) "
        "SELECT customer_id, id, 1, now(), 31, 410, '<script>gone' FROM deliveries WHERE id = $1",
        dropped,
    )
    ada.sees(path, "Refused permanently", "Given up", "Delivered", "410 (31 ms)")
    assert "<script>gone" not in ada.get(path).text
    assert "&lt;script&gt;gone" in ada.get(path).text
    assert ada.post(f"{path}/again", delivery="failed").status_code == 303
    assert "Deliveries to retry: 2" in ada.read(path)
    states = service.sql("SELECT state FROM deliveries WHERE subscription_id = $1::text::uuid ORDER BY id", id_in(path))
    assert [row["state"] for row in states] == ["pending", "pending", "delivered"]
    assert ada.post(f"{path}/again", delivery=str(delivered)).status_code == 303
    for nothing in ("0", "x", "9" * 30, ""):
        assert ada.submit(path, f"{path}/again", delivery=nothing).status_code == 404


def test_older_deliveries_are_a_page_away(service: Service, ada: Browser) -> None:
    path = subscribe(ada)
    service.sql(
        "INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at) "
        "SELECT customer_id, id, 'order.created', '{}', now(), now() "
        "FROM webhook_subscriptions, generate_series(1, 26) WHERE id = $1::text::uuid",
        id_in(path),
    )
    ada.get(path)
    assert ada.page.text.count("Deliver again<") == 25
    [older] = re.findall(r'href="([^"]+)" rel="next"', ada.page.text)
    ada.get(older)
    assert ada.page.text.count("Deliver again<") == 1
    assert "Newer" in ada.text


def in_file(admin: Browser, path: str) -> list[dict[str, str]]:
    answer = admin.get(f"{path}/deliveries.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.text.lstrip("\ufeff"))))


def test_all_deliveries_come_as_a_file_in_which_nothing_is_computed(service: Service, ada: Browser) -> None:
    path = subscribe(ada)
    assert ada.submit(path, f"{path}/test").status_code == 303
    [sample] = service.sql("SELECT id FROM deliveries WHERE subscription_id = $1::text::uuid", id_in(path))
    service.sql(
        """INSERT INTO delivery_attempts (customer_id, delivery_id, number, started_at, duration_ms, status, answer)
        SELECT customer_id, id, n, now(), 31, 500 + n, '=HYPERLINK("https://evil.example")'
        FROM deliveries, generate_series(1, 2) AS n WHERE id = $1""",
        sample["id"],
    )
    service.sql(
        "INSERT INTO deliveries (customer_id, subscription_id, event, sample, due_at, created_at) "
        "SELECT customer_id, id, 'order.created', '{}', now(), now() "
        "FROM webhook_subscriptions, generate_series(1, 2500) WHERE id = $1::text::uuid",
        id_in(path),
    )
    ada.get(path)
    assert f"{path}/deliveries.csv" in ada.links
    *later, first = in_file(ada, path)
    assert len(later) == 2500, "whole, though read a thousand at a time"
    ids = [int(row["Delivery"]) for row in (*later, first)]
    assert ids == sorted(set(ids), reverse=True)
    assert (first["Order"], first["Attempts"], first["Last status"]) == ("Sample", "2", "502")
    assert first["Last answer"].startswith("'=HYPERLINK")
    [taken] = service.sql(
        "SELECT count(*) FROM audit_events WHERE act = 'file.exported' AND subject LIKE '%' || $1 || '%'", id_in(path)
    )
    assert taken[0] == 1


def test_deliveries_of_orders_are_told_by_reference_and_those_of_others_not_at_all(
    service: Service, ada: Browser, gil: Browser
) -> None:
    path = subscribe(ada)
    reference = service.send("gift", "coffee", value=5, codeQuantity=1).json()["reference"]
    service.sql(
        """INSERT INTO deliveries (customer_id, subscription_id, event, event_id, due_at, created_at)
        SELECT e.customer_id, $1::text::uuid, 'order.created', e.id, now(), now()
        FROM events e JOIN orders o ON o.customer_id = e.customer_id AND o.id = e.order_id WHERE o.reference = $2""",
        id_in(path),
        reference,
    )
    assert [row["Order"] for row in in_file(ada, path)] == [reference]
    assert gil.get(f"{path}/deliveries.csv").status_code == 404


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"target_url": ""}, "target_url"),
        ({"target_url": "http://93.184.215.14/"}, "target_url"),
        ({"target_url": "https://127.0.0.1/"}, "target_url"),
        ({"target_url": "https://x.example/" + "x" * 2048}, "target_url"),
        ({"event": "order.eaten"}, "event"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(ada: Browser, fields: dict[str, str], wrong: str) -> None:
    answer = ada.submit("/app/webhooks", **{"target_url": "https://93.184.215.14/", "event": "order.created", **fields})
    assert answer.status_code == 422
    assert re.findall(r'id="(\w+)-error"', answer.text) == [wrong]


def test_a_refused_address_is_explained_in_the_language_of_the_page(sign_in: SignIn) -> None:
    code = re.sub(r"\s+", " ", Path(targets.__file__).read_text())
    assert set(re.findall(r'"(`target_url` [^"{]+)"', code)) == set(REFUSALS), "each sentence of the API, and no other"
    ada = sign_in("ada@acme.example")
    ada.headers["Accept-Language"] = "fr"
    answer = ada.submit("/app/webhooks", target_url="http://10.0.0.1/", event="order.created")
    assert "Saisissez une adresse HTTPS, par exemple https://example.com/hook." in unescape(answer.text)


def test_an_address_receives_several_events(service: Service, ada: Browser) -> None:
    page = ada.get("/app/webhooks").text
    assert re.findall(r'name="event" value="([a-z.]+)" checked', page) == ["order.created"]
    refused = ada.post("/app/webhooks", target_url="https://93.184.215.14/several")
    assert (refused.status_code, "Choose at least one of the options." in refused.text) == (422, True)
    assert re.search(r'<fieldset aria-describedby="event-error" tabindex="-1" autofocus>', refused.text)
    chosen = ["gift.bounced", "gift.claimed"]
    answer = ada.post("/app/webhooks", target_url="https://93.184.215.14/several", event=chosen)
    assert answer.status_code == 200, answer.text
    [path] = set(re.findall(r'href="(/app/webhooks/[0-9a-f-]{36})"', answer.text))
    assert "Events gift.bounced , gift.claimed" in ada.read(path)
    assert ada.post(f"{path}/test", event="gift.claimed").status_code == 303
    ada.get(path)
    rows = service.sql("SELECT event FROM deliveries WHERE subscription_id = $1::text::uuid", id_in(path))
    assert [row["event"] for row in rows] == ["gift.claimed"]
    assert ada.post(f"{path}/test", event="gift.sent").status_code == 400


def test_a_secret_is_replaced(ada: Browser) -> None:
    path = subscribe(ada, "https://93.184.215.14/rotated")
    assert "For 24 hours after you replace the secret, deliveries are signed with both." in ada.read(path)
    answer = ada.post(f"{path}/rotate")
    assert answer.status_code == 200, answer.text
    assert "The secret was replaced" in answer.text
    assert "whsec_" in answer.text
    assert "Deliveries are signed with the previous secret too until" in ada.read(path)
    assert "whsec_" not in ada.text, "shown once"


def test_the_webhooks_of_somebody_who_is_removed_are_named(service: Service, ada: Browser) -> None:
    """Somebody may have sent the events to a program of their own."""
    path, removing = (
        subscribe(ada, "https://93.184.215.14/own"),
        f"/app/people/{user_id(service, 'ada@acme.example')}/remove",
    )
    assert "https://93.184.215.14/own" in ada.read(removing)
    ada.submit("/app", "/app/environment", environment="staging")
    assert "https://93.184.215.14/own (Live)" in ada.read(removing)
    ada.submit("/app", "/app/environment", environment="production")
    ada.submit(f"{path}/remove")
    assert "https://93.184.215.14/own" not in ada.read(removing)
