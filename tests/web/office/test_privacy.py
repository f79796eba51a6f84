"""Requests about personal data in the back office: taken in, done by a file or an erasure, with a receipt."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.waiting import until
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser
from tests.web.office.conftest import SignIn

from largesse.db.pool import Database
from largesse.db.roles import Role
from largesse.db.session import COMMANDS
from largesse.encryption.vault import Vault
from largesse.jobs.registry import WorkerContext
from largesse.privacy.tasks import carry_on
from largesse.web.office import privacy

SAM = "sam.private@example.com"
HERE = "/office/privacy"


def day(days_ago: int = 0) -> str:
    return (datetime.now(UTC).date() - timedelta(days=days_ago)).isoformat()


def take_in(browser: Browser, kind: str, **more: str) -> str:
    done = browser.submit(HERE, **{"kind": kind, "email": SAM, "received": day(), "customer": "", **more})
    assert done.status_code == 303, done.text
    return str(done.headers["location"])


@pytest.fixture
def sent(service: Service) -> str:
    sent = service.send("gift", "coffee", value=5, recipients=[{"email": SAM, "name": "Sam Private"}])
    return str(sent.json()["reference"])


def test_a_request_is_taken_in_with_its_deadline(sign_in: SignIn, service: Service) -> None:
    service.sql("DELETE FROM privacy_requests")
    browser = sign_in("support")
    browser.get(HERE)
    form = {"kind": "export", "email": SAM, "received": day(), "customer": ""}
    for wrong in (
        {"kind": "forget"},
        {"email": "sam"},
        {"received": ""},
        {"received": "tomorrow"},
        {"received": day(-1)},
        {"received": day(91)},
        {"customer": "nobody"},
        {"customer": "a" * 101},
        {"customer": "ac\0me"},
    ):
        refused = browser.post(HERE, **{**form, **wrong})
        assert refused.status_code == 422, wrong
        assert "email" in wrong or SAM in refused.text
    assert not service.sql("SELECT FROM privacy_requests")
    take_in(browser, "export", customer="acme")
    take_in(browser, "erase", received=day(31))
    take_in(browser, "erase", received=day(24))
    browser.sees("/office", "1 privacy request is late", "1 privacy request is due soon")
    browser.sees(HERE, "1 day late", "30 days left", "s•••@example.com")
    assert SAM not in browser.text


def test_a_copy_is_downloaded_and_the_request_finished(
    sign_in: SignIn, service: Service, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = privacy._in_json

    def write_beside_requests(exported: dict[str, Any]) -> bytes:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return write(exported)

    monkeypatch.setattr(privacy, "_in_json", write_beside_requests)
    browser = sign_in("support")
    here = take_in(browser, "export")
    copy = browser.submit(here, f"{here}/export")
    assert copy.status_code == 200
    assert "attachment" in copy.headers["content-disposition"]
    assert sent in {order["reference"] for order in json.loads(copy.text)["orders"]}
    assert (
        service.sql(
            "SELECT count(*) FROM staff_form_posts WHERE answer IS NOT NULL AND position('Private' IN encode(answer, 'escape')) > 0"
        )[0][0]
        == 0
    )
    assert browser.submit(here, f"{here}/done", outcome="maybe").status_code == 422
    assert browser.submit(here, f"{here}/done", outcome="done").status_code == 303
    assert "Done" in browser.read(here)
    assert "@example.com" not in browser.text
    assert (
        service.sql(
            "SELECT FROM privacy_requests WHERE sealed_email IS NOT NULL AND kind = 'export' AND customer_id IS NULL"
        )
        == []
    )
    assert (
        service.sql("SELECT actor FROM audit_events WHERE act = 'privacy.exported' ORDER BY id DESC LIMIT 1")[0][0]
        == "staff"
    )


def test_an_erasure_leaves_a_receipt_and_no_address(
    sign_in: SignIn, service: Service, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privacy, "_AT_ONCE_S", None)  # a busy machine takes longer, and leaves the rest to workers
    browser = sign_in("owner")
    here = take_in(browser, "erase")
    assert browser.submit(here, f"{here}/done", outcome="done").status_code == 422
    done = browser.submit(f"{here}/erase")
    assert done.status_code == 303, done.text
    assert "Receipt of erasure" in browser.read(here)
    assert not service.sql("SELECT FROM lines WHERE recipient_email = $1", SAM)
    assert service.of_order(sent, "count(*)", "lines", "AND recipient_name IS NULL")[0][0] == 1
    assert browser.post(f"{here}/erase").headers["location"] == here
    nothing = take_in(browser, "erase")
    browser.submit(f"{nothing}/erase")
    assert "Nothing is stored about this address." in browser.read(nothing)
    assert browser.post(f"{nothing}/done", outcome="nothing").status_code == 303


def test_a_long_erasure_goes_on_in_a_worker_and_the_page_shows_how_far_it_is(
    sign_in: SignIn, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        assert service.send("gift", "coffee", value=5, recipients=[{"email": SAM}]).status_code == 200
    browser = sign_in("owner")
    here = take_in(browser, "erase")
    monkeypatch.setattr(privacy, "_AT_ONCE_S", 0.0)
    for _ in range(2):
        assert browser.submit(f"{here}/erase").status_code == 303
    for page in (HERE, f"{here}/erase", here):
        assert "Searching all orders" in browser.read(page)
    assert "Actions" not in browser.text

    async def take_steps(database: Database, vault: Vault) -> bool:
        return await carry_on(WorkerContext(database, vault, lambda *_: None))

    said = []
    while service.on_pool(take_steps, role=Role.WORKER):
        said += re.findall(r"Erasing: \d+ of \d+ orders", browser.read(here))
    assert len(said) >= 4
    assert said == [f"Erasing: {done} of {len(said) - 1} orders" for done in range(len(said))]
    browser.says("Receipt of erasure")
    assert not service.sql("SELECT FROM lines WHERE recipient_email = $1", SAM)
    acts = service.sql(
        "SELECT actor, actor_name FROM audit_events WHERE act = 'privacy.erased' ORDER BY id DESC LIMIT 1"
    )
    assert [tuple(one) for one in acts] == [("staff", "owner@largesse.example")]
    nothing = take_in(browser, "erase")
    browser.submit(f"{nothing}/erase")
    assert service.on_pool(take_steps, role=Role.WORKER)
    assert "Nothing is stored about this address." in browser.read(nothing)
    assert browser.post(f"{nothing}/done", outcome="nothing").status_code == 303


async def test_whole_tables_are_read_with_the_time_limits_of_commands(
    sign_in: SignIn, service: Service, sent: str
) -> None:
    """From millions of orders on, the search takes longer than a statement of a request may."""
    browser = sign_in("support")
    here = take_in(browser, "export")
    browser.get(here)
    waits = "SELECT pid FROM pg_locks WHERE relation = 'lines'::regclass AND NOT granted"
    named = "SELECT application_name FROM pg_stat_activity WHERE pid = $1"
    connection = await asyncpg.connect(service.database_url)
    async with connection.transaction():
        await connection.execute("LOCK TABLE lines")
        copy = asyncio.create_task(asyncio.to_thread(browser.post, f"{here}/export"))
        pid = await until(lambda: connection.fetchval(waits), 20)
        name = await connection.fetchval(named, pid)
    await connection.close()
    assert name == COMMANDS.name
    assert sent in (await copy).text
