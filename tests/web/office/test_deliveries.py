"""Deliveries in the back office: what bounced is filtered, counted and sent again, and failing webhooks are delivered again."""

from datetime import timedelta

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.office.conftest import SignIn, mail_job

from largesse.mail import requeue


def bounce(
    service: Service, email: str, reason: str, state: str = "bounced", *, customer: str = "acme", days: int = 0
) -> str:
    more = {} if customer == "acme" else {"key": customer, "account": f"{customer}-gbp"}
    sent = service.send("gift", "coffee", value=5, recipients=[{"email": email, "name": "Kim"}], **more)
    reference: str = sent.json()["reference"]
    job = mail_job(service, reference)
    service.sql(
        """
        INSERT INTO messages (customer_id, order_id, environment, email, name, line_numbers, state, attempts, due_at, rank_at, created_at, finished_at, reason)
        VALUES ($1, $2, $3, $4, 'Kim', '{1}', $5, 1, now() - $7::interval, now(), now(), CASE WHEN $5 <> 'held' THEN now() - $7::interval END, $6)
        """,
        job["customer_id"],
        job["order_id"],
        job["environment"],
        email,
        state,
        reason,
        timedelta(days=days),
    )
    return reference


@pytest.fixture
def bounced(service: Service) -> dict[str, str]:
    service.sql("UPDATE messages SET state = 'sent' WHERE state IN ('bounced', 'exhausted', 'held')")
    return {
        "unknown": bounce(service, "kim@example.com", "550 5.1.1 <KIM@example.com> unknown"),
        "full": bounce(service, "lee@example.com", "452 mailbox full", "exhausted", days=3),
        "held": bounce(service, "max@example.com", "no mail server is set", "held"),
        "globex": bounce(service, "ann@example.com", "550 5.1.1 unknown", customer="globex"),
        "old": bounce(service, "old@example.com", "550 5.1.1 unknown", days=40),
    }


def shown(browser: Browser, bounced: dict[str, str], query: str = "") -> set[str]:
    page = browser.get(f"/office/deliveries{query}")
    assert page.status_code == 200
    return {name for name, reference in bounced.items() if reference in page.text}


def test_mail_is_filtered_by_customer_state_reason_and_age(
    service: Service, sign_in: SignIn, bounced: dict[str, str]
) -> None:
    browser = sign_in("auditor")
    globex = service.ids["customers"]["globex"]
    for query, names in (
        ("", {"unknown", "full", "held", "globex"}),
        ("?state=held", {"held"}),
        ("?state=exhausted", {"full"}),
        ("?state=moon", {"unknown", "full", "held", "globex"}),
        ("?q=UNKNOWN", {"unknown", "globex"}),
        ("?q=%25", set()),
        ("?period=1", {"unknown", "held", "globex"}),
        ("?period=365", {"unknown", "full", "held", "globex", "old"}),
        (f"?from={globex}", {"globex"}),
        (f"?from={globex}&state=held", set()),
    ):
        assert shown(browser, bounced, query) == names, query
    page = browser.get("/office/deliveries")
    assert "kim@example.com" not in page.text.lower()
    assert "k•••@example.com" in page.text
    assert browser.get("/office/deliveries?from=999999").status_code == 404


def test_what_passes_the_filter_is_counted_and_sent_again_up_to_a_bound(
    service: Service, sign_in: SignIn, bounced: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = sign_in("support")
    assert "2 mails are sent again." in browser.read("/office/deliveries/requeue?q=unknown")
    assert browser.post("/office/deliveries/requeue?q=unknown").status_code == 303
    assert shown(browser, bounced) == {"full", "held"}
    last = service.sql(
        "SELECT actor, after::text FROM audit_events WHERE act = 'mail.requeued' ORDER BY id DESC LIMIT 1"
    )[0]
    assert last["actor"] == "staff"
    assert '"unknown"' in last["after"]
    assert browser.post("/office/deliveries/requeue?q=%3CKIM@example.com%3E").status_code == 303
    logged = service.sql("SELECT after::text FROM audit_events WHERE act = 'mail.requeued' ORDER BY id DESC LIMIT 1")
    assert "\u2022@example.com>" in logged[0]["after"], "an address is erased, the log never is"
    assert "kim@" not in logged[0]["after"].lower()
    assert "0 mails are sent again." in browser.read("/office/deliveries/requeue?q=nothing")
    monkeypatch.setattr("largesse.web.office.deliveries.MOST_REQUEUED", 1)
    assert requeue.MOST_REQUEUED == 10_000
    assert "1 mail is sent again." in browser.read("/office/deliveries/requeue")
    browser.post("/office/deliveries/requeue")
    assert len(shown(browser, bounced)) == 1


def test_failing_webhooks_are_listed_and_delivered_again(service: Service, sign_in: SignIn) -> None:
    acme, globex = (service.ids["customers"][key] for key in ("acme", "globex"))
    rows = service.sql(
        """
        INSERT INTO webhook_subscriptions (id, customer_id, environment, event, target_url, sealed_secret, service_account_id)
        SELECT gen_random_uuid(), customer, 'production', 'order.created', 'https://hooks.example/secret-path', 'x', (SELECT min(id) FROM service_accounts s WHERE s.customer_id = customer) FROM unnest($1::int[]) AS customer
        RETURNING id, customer_id
        """,
        [acme, globex],
    )
    for row in rows:
        service.sql(
            "INSERT INTO subscription_queues (customer_id, subscription_id, due_at, failing) VALUES ($1, $2, 'infinity', true)",
            row["customer_id"],
            row["id"],
        )
        service.sql(
            "INSERT INTO deliveries (customer_id, subscription_id, event, state, attempts, attempts_left, due_at, created_at, finished_at, sample) "
            "VALUES ($1, $2, 'order.created', 'exhausted', 12, 0, now(), now(), now(), '{}')",
            row["customer_id"],
            row["id"],
        )
    browser = sign_in("support")
    page = browser.get("/office/deliveries/webhooks")
    assert page.text.count('<th scope="row">hooks.example<') == 2
    assert "secret-path" not in page.text
    assert browser.get(f"/office/deliveries/webhooks?from={globex}").text.count('<th scope="row">hooks.example<') == 1
    path = f"/office/deliveries/webhooks/{globex}/production/{rows[1]['id']}"
    assert browser.post(path).status_code == 303
    assert (
        service.sql("SELECT state FROM deliveries WHERE customer_id = $1 ORDER BY id DESC LIMIT 1", globex)[0][0]
        == "pending"
    )
    last = service.sql("SELECT actor, act FROM audit_events WHERE customer_id = $1 ORDER BY id DESC LIMIT 1", globex)[0]
    assert tuple(last) == ("staff", "webhook.redelivered")
    browser.get("/office/deliveries/webhooks")
    for wrong in (
        path.replace("production", "staging"),
        path.replace("production", "moon"),
        path.replace(f"/{globex}/", f"/{acme}/"),
    ):
        assert browser.post(wrong).status_code == 404
    service.sql("DELETE FROM webhook_subscriptions WHERE target_url LIKE '%secret-path'")
