"""The order of a campaign's gifts: none is placed for a campaign that is over, and none gets lost when the campaign is changed meanwhile."""

import asyncio
from datetime import timedelta

import pytest
from tests.campaigns.conftest import Desk, on_desk, reserve, rule, work
from tests.distributed import SOMEBODY_WAITS
from tests.waiting import wait_until
from tests.web.api.conftest import Service

from largesse.base.errors import NotFound
from largesse.campaigns.model import Campaign
from largesse.campaigns.service import IsReserved, change_campaign, create_campaign
from largesse.drafts.model import Draft
from largesse.drafts.store import drop_draft, read_draft


def create(service: Service) -> Campaign:
    created: Campaign = on_desk(service, lambda desk: create_campaign(desk.actor, desk.caller, rule(service)))
    return created


def test_what_was_not_ordered_until_the_end_is_not_ordered_later(service: Service) -> None:
    before = service.balance("gbp")
    campaign = create(service)
    service.sql("UPDATE clock SET ahead_by = $1", timedelta(days=1, minutes=1))
    work(service)
    with pytest.raises(NotFound):
        on_desk(service, lambda desk: desk.services.drafts.send(desk.caller, campaign.order_reference, None))
    assert service.balance("gbp") == before
    assert service.findings() == []


@pytest.mark.parametrize("late", [timedelta(), timedelta(days=2)], ids=["at once", "no worker ran for two days"])
def test_an_order_under_way_at_the_end_is_refunded(service: Service, late: timedelta) -> None:
    before = service.balance("gbp")
    campaign, other = create(service), create(service)

    async def send_late(desk: Desk) -> None:
        draft = await read(desk, campaign)
        ends = "UPDATE campaigns SET closes_at = clock_now() - $2::interval, due_at = clock_now() WHERE id = $1"
        service.sql(ends, campaign.id, late)
        await asyncio.to_thread(work, service)
        await place(desk, draft)

    on_desk(service, send_late)
    assert service.balance("gbp") == before - 200
    assert service.sql("SELECT due_at = closes_at FROM campaigns WHERE id = $1", other.id) == [(True,)]
    service.sql("UPDATE clock SET ahead_by = $1", timedelta(days=1, minutes=1))
    work(service)
    assert service.balance("gbp") == before
    assert service.findings() == []


def test_a_campaign_that_is_changed_while_it_is_ordered_keeps_its_order(service: Service) -> None:
    campaign = create(service)

    async def change_meanwhile(desk: Desk) -> None:
        draft = await read(desk, campaign)
        async with desk.services.database.transaction(desk.caller.principal.scope) as connection:
            await drop_draft(connection, *desk.actor.place, draft.id)
            changing = asyncio.create_task(change_campaign(desk.actor, desk.caller, campaign.id, rule(service)))
            await asyncio.to_thread(wait_for_a_lock, service)
            await place(desk, draft)
        with pytest.raises(IsReserved):
            await changing

    on_desk(service, change_meanwhile)
    assert service.findings() == []


def wait_for_a_lock(service: Service) -> None:
    """Returns once a statement waits for a lock."""
    wait_until(lambda: service.sql(SOMEBODY_WAITS)[0][0])


async def read(desk: Desk, campaign: Campaign) -> Draft:
    """The draft of a campaign's order."""
    async with desk.services.database.connection(desk.caller.principal.scope) as connection:
        return await read_draft(connection, desk.caller.principal, campaign.order_reference)


async def place(desk: Desk, draft: Draft) -> None:
    """Places the order of a draft that was read before."""
    await desk.services.orders.send(desk.caller, draft.to_request(desk.caller, ()), reference=draft.id)


def test_campaigns_that_cannot_be_ended_stop_no_others(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker looks at some at a time, the oldest first, and would find the same again."""
    monkeypatch.setattr("largesse.campaigns.tasks._CAMPAIGNS_AT_ONCE", 2)
    service.sql(
        """
        INSERT INTO campaigns (customer_id, environment, name, user_id, token, order_reference, gifts, domains, opens_at, closes_at, due_at)
        SELECT 1, 'production', 'Broken ' || n, 1, 'broken' || n, 'broken' || n, 1, '{}', '2026-01-01Z', '2026-01-02Z', '2026-01-02Z'
        FROM generate_series(1, 2) AS n
        """
    )
    token = reserve(service)
    service.sql("UPDATE campaigns SET closes_at = clock_now(), due_at = clock_now() WHERE token = $1", token)
    service.sql(
        """
        CREATE FUNCTION break_campaigns() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.name LIKE 'Broken%' AND NEW.ended_at IS NOT NULL THEN RAISE EXCEPTION 'broken'; END IF;
            RETURN NEW;
        END $$
        """
    )
    service.sql("CREATE TRIGGER broken BEFORE UPDATE ON campaigns FOR EACH ROW EXECUTE FUNCTION break_campaigns()")
    try:
        work(service)
        assert service.sql("SELECT ended_at IS NOT NULL FROM campaigns WHERE token = $1", token) == [(True,)]
        later = "due_at > clock_now() - interval '1 hour'"
        assert service.sql(f"SELECT count(*) FROM campaigns WHERE name LIKE 'Broken%' AND {later}") == [(2,)]
    finally:
        service.sql("DROP TRIGGER broken ON campaigns")
        service.sql("DROP FUNCTION break_campaigns")
        service.sql("DELETE FROM campaigns WHERE name LIKE 'Broken%'")
