"""The search of the built documentation finds the answer first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build/docs"  # built by `make docs`
SEARCH = Path(__file__).with_name("search.cjs")

# What somebody from outside types, and the page and section that answers it.
QUESTIONS = {
    "webhook secret": "docs/guides/webhooks#webhook-secret",
    "verify webhook signature": "docs/guides/webhooks#verify-signatures",
    "rotate webhook secret": "docs/guides/webhooks#rotate-a-webhook-secret",
    "retry webhook": "docs/guides/webhooks#responses-and-retries",
    "receive webhooks locally": "docs/guides/testing#receive-webhooks-on-your-machine",
    "idempotency key": "docs/guides/idempotency",
    "rotate api key": "docs/guides/authentication#key-rotation",
    "spending limit": "docs/guides/authentication#spending-limits",
    "rate limit": "docs/guides/rate-limits",
    "pagination": "docs/guides/pagination",
    "error types": "docs/guides/errors#error-types",
    "request id": "docs/guides/errors#request-ids",
    "quote expired": "docs/guides/quotes",
    "schedule a gift": "docs/guides/sending#scheduling",
    "cancel an order": "docs/guides/sending#cancel-and-refund-orders",
    "refund": "docs/guides/sending#cancel-and-refund-orders",
    "delivery status": "docs/guides/sending#delivery-status",
    "sandbox": "docs/guides/testing#sandbox",
    "test clock": "docs/guides/testing",
    "going live": "docs/guides/going-live",
    "first gift": "docs/quick-start",
    "python client": "docs/reference-client",
    "typescript": "sdk/typescript/README",
    "point-in-time recovery": "docs/backups#point-in-time-recovery",
    "restore a backup": "docs/backups#restore-a-backup",
    "master key": "docs/master-key",
    "install": "docs/install",
    "upgrade": "docs/upgrade",
    "reverse proxy": "docs/deploy#reverse-proxy-and-tls",
    "check the configuration": "docs/configure#check-the-configuration",
    "leaked secret": "docs/secure#if-a-secret-leaks",
    "metrics": "docs/metrics",
    "log events": "docs/log-events",
    "disk full": "docs/troubleshooting#database-disk-full",
    "erase personal data": "docs/privacy#erase-personal-data",
    "audit log": "docs/audit#audit-log",
    "campaign": "docs/customers#campaigns",
    "automation": "docs/customers#automations",
    "approval": "docs/customers#approvals",
    "budget": "docs/guide-money#budgets",
    "thank-you note": "docs/customers#thank-you-notes",
    "supplier": "docs/suppliers",
    "branding": "docs/guide-branding",
    "logo": "docs/guide-branding",
    "contacts": "docs/guides/contacts",
    "back office": "docs/office",
    "events stream": "docs/guides/events",
}


def answers(*questions: str) -> dict[str, list[tuple[str, str]]]:
    """For each question the results as (page, anchor), best first, as the site's own scripts order them."""
    done = subprocess.run(
        ["node", str(SEARCH), str(SITE), *questions], capture_output=True, text=True, timeout=60, check=True
    )
    found = json.loads(done.stdout)
    return {
        question: [(page, anchor) for page, _, anchor, _ in results]
        for question, results in zip(questions, found, strict=True)
    }


@pytest.fixture(scope="module")
def first() -> dict[str, str]:
    """The first result of each question."""
    if not os.environ.get("CI") and (shutil.which("node") is None or not (SITE / "searchindex.js").is_file()):
        pytest.skip("needs node, and the site that `make docs` builds")
    return {question: "".join(results[0]) for question, results in answers(*QUESTIONS).items()}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_comes_first(first: dict[str, str], question: str) -> None:
    expected = QUESTIONS[question]
    assert first[question] == expected if "#" in expected else first[question].partition("#")[0] == expected


def test_pages_for_contributors_come_last(first: dict[str, str]) -> None:
    """A decision that has the word in its title comes after the page for users."""
    (results,) = answers("quotes").values()
    pages = [page for page, _ in results]
    assert pages.index("docs/guides/quotes") < pages.index("docs/decisions/0019-quotes")
