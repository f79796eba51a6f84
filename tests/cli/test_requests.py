"""`largesse requests`: the request log for operators."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from tests.cli.conftest import Run, assert_refused, sql

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


def test_what_cannot_be_listed_is_refused(run: Run, loaded: dict[str, Any]) -> None:
    assert run("requests").stdout == "There are no such requests in the log.\n"
    assert_refused(run("requests", "--status=404"), "--status must be one of: 2xx, 4xx, 5xx")
    assert_refused(run("requests", "--customer=nobody"), "nobody")
    assert_refused(run("requests", "--since=soon"), "--since must be an instant")
