"""Erasures as jobs: interrupted ones are carried on, nothing is erased or counted twice, and one that fails holds up no other."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.chained import actor_on
from tests.privacy.conftest import SAM, Run, Service, dump, traces
from tests.web.api.conftest import work_off

from largesse.db.pool import Database
from largesse.encryption.vault import Vault
from largesse.privacy import service as privacy_service
from largesse.privacy.erasing import begin, carry_out, take_step
from largesse.privacy.store import Receipt
from largesse.privacy.tasks import carry_on

COUNTS = "orders, lines, messages, cancelled, captured, parcels, texts, drafts, contacts, campaigns, customer_notes"


def begin_for(service: Service, email: str, steps: int = 0) -> int:
    """Begins to erase an address, and takes the first steps; gives the id of the job."""

    async def run(database: Database, vault: Vault) -> int:
        actor = await actor_on(database, vault)
        job_id = await begin(actor, vault, email)
        for _ in range(steps):
            await take_step(actor, vault, job_id)
        return job_id

    return int(service.on_pool(run))


def test_a_worker_carries_on_what_was_interrupted_and_the_receipt_counts_all_of_it(
    service: Service, filled: dict[str, str]
) -> None:
    before = service.sql("SELECT coalesce(max(id), 0) FROM audit_events")[0][0]
    job_id = begin_for(service, SAM, steps=3)
    [job] = service.sql("SELECT done, orders FROM erasure_jobs WHERE id = $1", job_id)
    assert (job["done"], job["orders"] > 2) == (2, True)
    acts = "SELECT actor, actor_name, after::text FROM audit_events WHERE act = 'privacy.erased' AND id > $1"
    assert service.sql(acts, before) == [], "nothing counts as erased before all is"
    work_off(service, carry_on)
    [receipt] = service.sql(f"SELECT id, {COUNTS} FROM erasures ORDER BY id DESC LIMIT 1")
    assert receipt["orders"] == job["orders"]
    assert receipt["lines"] == 6
    [act] = service.sql(acts, before)
    assert (act["actor"], act["actor_name"]) == ("command", "a test (root)")
    [job] = service.sql("SELECT sealed_email, erasure_id FROM erasure_jobs WHERE id = $1", job_id)
    assert tuple(job) == (None, receipt["id"])
    assert traces(dump(service)) == []


def test_processes_that_work_on_one_erasure_at_once_erase_and_count_each_order_once(service: Service) -> None:
    email = "at.once@example.com"
    for _ in range(4):
        assert service.send("gift", "coffee", value=5, recipients=[{"email": email}]).status_code == 200

    async def race(database: Database, vault: Vault) -> list[Receipt]:
        actor = await actor_on(database, vault)
        job_id = await begin(actor, vault, email)
        assert await begin(actor, vault, email.upper()) == job_id, "the same erasure, begun again"
        return await asyncio.gather(*(carry_out(actor, vault, job_id) for _ in range(4)))

    receipts = service.on_pool(race)
    assert len(set(receipts)) == 1
    assert (receipts[0].orders, receipts[0].lines) == (4, 4)


def test_an_erasure_that_fails_is_tried_again_later_and_holds_up_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = "failing@example.com", "fine@example.com"
    for email in (first, second):
        assert service.send("gift", "coffee", value=5, recipients=[{"email": email}]).status_code == 200
    failing, fine = begin_for(service, first, steps=1), begin_for(service, second, steps=1)
    erase_lines = privacy_service.erase_lines
    [broken] = service.sql("SELECT order_id FROM lines WHERE recipient_email = $1", first)

    async def fail(connection: Any, order: tuple[int, int], numbers: list[int]) -> Any:
        if order[1] == broken[0]:
            raise RuntimeError("an order that cannot be erased")
        return await erase_lines(connection, order, numbers)

    ended = "SELECT ended_at IS NOT NULL FROM erasure_jobs WHERE id = $1"
    with monkeypatch.context() as context, capture_logs() as logs:
        context.setattr(privacy_service, "erase_lines", fail)
        work_off(service, carry_on)
    assert [one["job"] for one in logs if one["event"] == "erasure.failed"] == [failing]
    assert [service.sql(ended, job)[0][0] for job in (failing, fine)] == [False, True]
    service.sql("UPDATE erasure_jobs SET due_at = now() WHERE id = $1", failing)
    work_off(service, carry_on)
    assert service.sql(ended, failing)[0][0]


def test_the_command_shows_the_whole_receipt_of_an_erasure_that_a_worker_carried_on(service: Service, run: Run) -> None:
    email = "carried.on@example.com"
    assert service.send("gift", "coffee", value=5, recipients=[{"email": email}]).status_code == 200
    begin_for(service, email, steps=2)
    done = run("privacy", "erase", email)
    assert done.exit_code == 0
    assert "Orders: 1. Codes: 1." in done.stdout
    assert run("privacy", "erase", email).exit_code == 1
