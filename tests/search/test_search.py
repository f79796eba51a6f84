"""The search of the built documentation finds the answer first."""

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
    "postman collection": "docs/guides/testing#try-requests-in-postman-insomnia-or-bruno",
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
    "claim-by date and reminders": "docs/guides/sending#claim-by-date-and-reminders",
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
    "add a customer": "docs/customers#add-a-customer",
    "check the configuration": "docs/configure#check-the-configuration",
    "leaked secret": "docs/secure#if-a-secret-leaks",
    "metrics": "docs/metrics",
    "alerts": "docs/alerts",
    "LargesseQueueLate": "docs/alerts#largessequeuelate",
    "log events": "docs/log-events",
    "disk full": "docs/troubleshooting#database-disk-full",
    "erase personal data": "docs/privacy#erase-personal-data",
    "audit log": "docs/audit#audit-log",
    "campaign": "docs/guide-programmes#campaigns",
    "automation": "docs/guide-programmes#automations",
    "approval": "docs/guide-programmes#approvals",
    "budget": "docs/guide-money#budgets",
    "reconcile": "docs/guide-money#reconcile-the-figures",
    "birthday gift": "docs/guide-programmes",
    "paste recipients": "docs/guide-sender#recipients-from-a-file-or-a-spreadsheet",
    "thank-you note": "docs/guide-programmes#thank-you-notes",
    "supplier": "docs/suppliers",
    "branding": "docs/guide-branding",
    "logo": "docs/guide-branding",
    "contacts": "docs/guides/contacts",
    "back office": "docs/office",
    "events stream": "docs/guides/events",
}

# The same for people who do not know the documentation's words, or add words that it does not have.
IN_OTHER_WORDS = {
    "change signing key of a hook": "docs/guides/webhooks#rotate-a-webhook-secret",
    "signature mismatch": "docs/guides/webhooks#verify-signatures",
    "localhost webhook": "docs/guides/testing#receive-webhooks-on-your-machine",
    "ngrok tunnel": "docs/guides/testing#receive-webhooks-on-your-machine",
    "fast forward time": "docs/guides/testing#let-time-pass",
    "simulate bounce": "docs/guides/testing#test-addresses",
    "duplicate orders": "docs/guides/idempotency",
    "retry safely after timeout": "docs/guides/idempotency#repeat-a-request",
    "429 too many requests": "docs/guides/rate-limits",
    "permissions of an api key": "docs/guides/authentication#scopes-and-networks",
    "undo an order": "docs/guides/sending#cancel-and-refund-orders",
    "void codes": "docs/guides/sending#cancel-and-refund-orders",
    "gift arrived?": "docs/guides/sending#delivery-status",
    "bulk send gifts": "docs/guides/sending#many-recipients",
    "price preview before sending": "docs/guides/quotes",
    "cursor next page": "docs/guides/pagination",
    "javascript sdk": "sdk/typescript/README",
    "environment variables": "docs/settings",
    "smtp": "docs/mail",
    "lost encryption key": "docs/master-key",
    "zero downtime deploy": "docs/upgrades/rolling",
    "rollback": "docs/upgrades/rolling",
    "kubernetes helm": "docs/containers#kubernetes",
    "gdpr delete": "docs/privacy",
    "502 bad gateway": "docs/deploy#reverse-proxy-and-tls",
    "test mode": "docs/guides/testing#sandbox",
    "verify hmac": "docs/guides/webhooks#verify-signatures",
    "logo in emails": "docs/guide-branding",
}
ALL = QUESTIONS | IN_OTHER_WORDS


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
    return {question: "".join(results[0]) if results else "" for question, results in answers(*ALL).items()}


@pytest.mark.parametrize("question", ALL)
def test_the_answer_comes_first(first: dict[str, str], question: str) -> None:
    expected = ALL[question]
    assert first[question] == expected if "#" in expected else first[question].partition("#")[0] == expected


def test_pages_for_contributors_come_last(first: dict[str, str]) -> None:
    """A decision that has the word in its title comes after the page for users."""
    (results,) = answers("quotes").values()
    pages = [page for page, _ in results]
    assert pages.index("docs/guides/quotes") < pages.index("docs/decisions/0019-quotes")
