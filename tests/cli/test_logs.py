"""`largesse audit`, what commands leave in it, and `largesse requests`."""

import csv
import io
import json
from typing import Any

import pytest
from tests.cli.conftest import Run, assert_refused, sql


def told(run: Run, *arguments: str) -> list[dict[str, Any]]:
    result = run("audit", "--json", *arguments)
    assert result.exit_code == 0, result.output
    listed: list[dict[str, Any]] = json.loads(result.stdout)
    return listed


@pytest.mark.slow
def test_commands_say_what_they_did(run: Run, loaded: dict[str, Any]) -> None:
    made = run(
        "keys",
        "create",
        "--customer=acme",
        "--service-account=hr-bot",
        "--environment=staging",
        "--name=trial",
        "--json",
    )
    key = json.loads(made.stdout)
    for _ in range(2):  # of which the second changes nothing
        assert run("top-up", "gbp", "5.50", "--reference", "t-1").exit_code == 0
    assert run("keys", "delete", str(key["id"])).exit_code == 0
    assert run("keys", "delete", str(key["id"])).exit_code == 1
    assert run("mail", "requeue", "--since", "2026-01-01", "--reason", "530").exit_code == 0
    assert run("mail", "requeue", "--since", "2026-01-01", "--dry-run").exit_code == 0
    acts = [(event["act"], event["customer"], event["subject"]) for event in told(run)]
    assert acts == [
        ("world.loaded", None, "file world.yaml"),
        ("key.created", "acme", f"API key {key['id']}"),
        ("account.topped_up", "acme", f"account {loaded['ids']['funding_accounts']['gbp']}"),
        ("key.deleted", "acme", f"API key {key['id']}"),
        ("mail.requeued", None, "mail"),
    ]
    load, create, credit, delete, _ = told(run)
    assert load["after"] == {
        "products": 1,
        "collections": 1,
        "templates": 1,
        "funding_accounts": 4,
        "customers": 2,
        "service_accounts": 2,
        "api_keys": 1,
    }
    assert create["after"] == {"name": "trial", "service_account": "hr-bot", "scopes": None, "networks": None}
    assert credit["after"] == {"amount_minor": 550, "reference": "t-1", "balance_minor": 10550}
    assert delete["before"] == {"name": "trial"}
    assert {event["actor"] for event in told(run)} == {"command"}
    assert create["actor_name"].startswith("largesse keys create (")
    assert key["secret"] not in run("audit", "--json").stdout
    assert run("verify").exit_code == 0


def test_the_log_is_shown_by_customer_and_time(run: Run, database: str, loaded: dict[str, Any]) -> None:
    assert run("top-up", "acme/gbp", "1").exit_code == 0
    assert run("top-up", "globex/shared", "2").exit_code == 0
    shared = loaded["ids"]["funding_accounts"]["globex/shared"]
    assert [event["subject"] for event in told(run, "--customer", "globex")] == [f"account {shared}"]
    assert len(told(run, "--since", "2026-01-01")) == 3
    sql(database, "UPDATE clock SET ahead_by = '-2 days'")
    assert run("top-up", "acme/gbp", "3").exit_code == 0
    sql(database, "UPDATE clock SET ahead_by = '0'")
    assert [event["after"].get("amount_minor") for event in told(run)] == [300, None, 100, 200]
    shown = run("audit").stdout.splitlines()
    assert shown[0].split() == ["at", "customer", "who", "act", "subject", "address"]
    assert "account.topped_up" in shown[-1]
    rows = run("audit", "--csv").stdout.splitlines()
    assert rows[0].startswith("id,at,customer,environment,actor")
    assert len(rows) == 5


def test_what_cannot_be_listed(run: Run, loaded: dict[str, Any]) -> None:
    assert_refused(run("audit", "--customer", "nobody"), "there is no customer 'nobody'")
    assert_refused(run("audit", "--since", "soon"), "--since must be an instant")
    assert_refused(run("audit", "--since", "2999-01-01"), "must not lie in the future")


def test_an_empty_log_says_so(run: Run, database: str) -> None:
    assert run("audit").stdout == "Nothing was done.\n"
    assert json.loads(run("audit", "--json").stdout) == []


FILL = """
    INSERT INTO api_requests (customer_id, environment, at, key_id, method, route, path, status, problem, duration_us, request_id, address)
    SELECT c.id, 'production', now() - ago, coalesce(k.id, 0), 'GET', route, path, status, problem, 1234, request_id, '192.0.2.7'
    FROM (VALUES
        ('acme', interval '1 hour', '/me', NULL, 200, NULL, 'first'),
        ('acme', interval '1 minute', '/orders/{reference}', '/orders/x', 404, 'not-found', 'second'),
        ('globex', interval '2 minutes', '/me', NULL, 503, 'unavailable', 'third'),
        ('acme', interval '9 days', '/me', NULL, 200, NULL, 'old'))
        AS new (customer, ago, route, path, status, problem, request_id)
    JOIN customers c ON c.key = new.customer LEFT JOIN api_keys k ON k.customer_id = c.id
"""


def ids(run: Run, *arguments: str) -> list[str]:
    result = run("requests", "--json", *arguments)
    assert result.exit_code == 0, result.output
    return [row["request_id"] for row in json.loads(result.stdout)]


def test_requests_are_listed_and_filtered(run: Run, loaded: dict[str, Any], database: str) -> None:
    sql(database, FILL)
    assert ids(run) == ["first", "third", "second"]
    assert ids(run, "--customer=acme") == ["first", "second"]
    assert ids(run, "--status=4xx") == ["second"]
    assert ids(run, "--customer=acme", "--status=5xx") == []
    assert ids(run, "--request-id=old") == ["old"]
    assert ids(run, "--request-id=old", "--customer=globex") == []
    assert ids(run, "--since=2020-01-01") == ["old", "first", "third", "second"]
    (row,) = csv.DictReader(io.StringIO(run("requests", "--csv", "--status=4xx").stdout))
    row.pop("at"), row.pop("id"), row.pop("key_id")
    assert row == {
        "customer": "acme",
        "environment": "production",
        "method": "GET",
        "path": "/orders/x",
        "route": "/orders/{reference}",
        "status": "404",
        "problem": "not-found",
        "duration_ms": "1.2",
        "request_id": "second",
        "key": "acme-prod",
        "service_account": "HR bot",
        "address": "192.0.2.7",
    }
    shown = run("requests").stdout
    assert "/orders/x" in shown
    assert "192.0.2.7" in shown


def test_requests_that_cannot_be_listed_are_refused(run: Run, loaded: dict[str, Any]) -> None:
    assert run("requests").stdout == "There are no such requests in the log.\n"
    assert_refused(run("requests", "--status=404"), "--status must be one of: 2xx, 4xx, 5xx")
    assert_refused(run("requests", "--customer=nobody"), "nobody")
    assert_refused(run("requests", "--since=soon"), "--since must be an instant")
