"""What is done to one campaign is done to no other, and by nobody but those who may."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.campaigns.conftest import Desk, on_desk, reserve, rule, work
from tests.web.api.conftest import Service
from tests.web.console.test_campaigns import visit

from largesse.base.errors import NotFound
from largesse.campaigns.service import change_campaign, close_campaign, create_campaign, pause_campaign


def others(service: Service, campaign_id: int) -> list[Any]:
    """Everything that is stored about the other campaigns."""
    return [
        service.sql("SELECT * FROM campaigns WHERE id <> $1 ORDER BY id", campaign_id),
        service.sql("SELECT * FROM campaign_people WHERE campaign_id <> $1 ORDER BY campaign_id, mailbox", campaign_id),
        service.sql("SELECT * FROM campaign_asks WHERE campaign_id <> $1 ORDER BY id", campaign_id),
    ]


def number_of(service: Service, token: str) -> int:
    return int(service.sql("SELECT id FROM campaigns WHERE token = $1", token)[0]["id"])


def set_draft(service: Service, **changes: Any) -> int:
    """A campaign whose gifts are not ordered; its id."""

    async def work(desk: Desk) -> int:
        return (await create_campaign(desk.actor, desk.caller, rule(service, **changes))).id

    return int(on_desk(service, work))


LISTED = {"domains": (), "mailboxes": ("zoe@list.example", "yan@list.example")}


def test_the_other_campaigns_stay_as_they_are(service: Service) -> None:
    visit(service, reserve(service, **LISTED), "yan@list.example")
    set_draft(service, **LISTED)
    token = reserve(service, **LISTED)
    one, draft = number_of(service, token), set_draft(service, **LISTED)

    def pause(*, paused: bool) -> Callable[[Desk], Any]:
        return lambda desk: pause_campaign(desk.actor, one, paused=paused)

    before = others(service, one)
    on_desk(service, pause(paused=True))
    assert others(service, one) == before
    service.sql("UPDATE campaigns SET paused_at = clock_now()")
    before = others(service, one)
    on_desk(service, pause(paused=False))
    assert others(service, one) == before
    visit(service, token, "zoe@list.example")
    assert others(service, one) == before
    unchanged = others(service, draft)
    new = rule(service, gifts=3, domains=("other.example",))
    on_desk(service, lambda desk: change_campaign(desk.actor, desk.caller, draft, new))
    assert others(service, draft) == unchanged
    before = others(service, one)
    on_desk(service, lambda desk: close_campaign(desk.actor, one))
    work(service)
    assert service.sql("SELECT ended_at FROM campaigns WHERE id = $1", one)[0]["ended_at"] is not None
    assert others(service, one) == before


def test_a_member_acts_on_their_own_alone(service: Service) -> None:
    of_ada = number_of(service, reserve(service))
    of_cem = number_of(service, reserve(service, "cem@acme.example"))

    async def try_all(desk: Desk, campaign_id: int) -> None:
        for paused in (True, False):
            await pause_campaign(desk.actor, campaign_id, paused=paused)
        await close_campaign(desk.actor, campaign_id)

    before = others(service, of_cem)
    with pytest.raises(NotFound):
        on_desk(service, lambda desk: pause_campaign(desk.actor, of_ada, paused=True), "cem@acme.example")
    with pytest.raises(NotFound):
        on_desk(service, lambda desk: close_campaign(desk.actor, of_ada), "cem@acme.example")
    assert others(service, of_cem) == before
    on_desk(service, lambda desk: try_all(desk, of_cem), "cem@acme.example")
    on_desk(service, lambda desk: try_all(desk, of_ada))
