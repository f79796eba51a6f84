"""`webhooks`: the list of subscriptions, and a new secret that is printed once."""

import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql

SUBSCRIPTION = "7f3c1e0a-5b52-4d0e-9c55-0f3f5d1c2b6a"


@pytest.fixture
def subscribed(loaded: dict[str, Any], database: str) -> str:
    """An installation with a subscription of Acme's to two events; its database."""
    sql(
        database,
        """
        INSERT INTO webhook_subscriptions (id, customer_id, environment, events, target_url, sealed_secret, service_account_id)
        SELECT $1::text::uuid, customer_id, 'production', '{order.created,gift.claimed}', 'https://hooks.example/', 'old', id
        FROM service_accounts WHERE key = 'hr-bot'
        """,
        SUBSCRIPTION,
    )
    return database


def test_a_secret_is_rotated_and_printed_once(run: Run, subscribed: str) -> None:
    [listed] = json.loads(run("webhooks", "list", "--json").stdout)
    assert (listed["id"], listed["customer"], listed["events"], listed["previous_until"]) == (
        SUBSCRIPTION,
        "acme",
        "order.created, gift.claimed",
        None,
    )
    rotated = run("webhooks", "rotate-secret", SUBSCRIPTION)
    assert rotated.exit_code == 0, rotated.output
    assert rotated.stdout.startswith("New secret: whsec_")
    again = json.loads(run("webhooks", "rotate-secret", SUBSCRIPTION, "--json").stdout)
    assert set(again) == {"id", "secret", "previous_until"}
    shown = run("webhooks", "list", "--customer", "acme")
    assert "hooks.example" in shown.stdout
    assert "whsec_" not in shown.stdout
    assert "There are no webhook subscriptions." in run("webhooks", "list", "--customer", "globex").stdout
    acts = sql(subscribed, "SELECT act FROM audit_events WHERE act LIKE 'webhook.%'")
    assert [row["act"] for row in acts] == ["webhook.secret_rotated"] * 2


@pytest.mark.usefixtures("loaded")
def test_what_is_no_subscription_is_refused(run: Run) -> None:
    assert_refused(run("webhooks", "rotate-secret", SUBSCRIPTION), "There is no subscription with that id.")
    assert_refused(run("webhooks", "rotate-secret", "7"), "7")
