"""The campaign in the demo's history: an administrator creates it, and visitors of its link get gifts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial

from largesse.campaigns.model import CampaignRule
from largesse.campaigns.service import create_campaign
from largesse.demo.outside import DemoMailServer
from largesse.demo.people import People
from largesse.demo.plan import ADA
from largesse.demo.timeline import Timeline
from largesse.web.kit.services import Services

CAMPAIGNS = 1  # the number of orders of campaigns
_GIFTS, _VISITORS = 40, 27
_OPEN_FOR = timedelta(days=14)
_DOMAIN = "acme.example"


class Giving:
    """Creates the campaign, and acts for its visitors. `mail_codes` is the worker's step that mails their codes."""

    def __init__(
        self,
        services: Services,
        people: People,
        timeline: Timeline,
        mail: DemoMailServer,
        ids: Mapping[str, Mapping[str, int]],
        mail_codes: Callable[[], Awaitable[None]],
    ) -> None:
        self._services = services
        self._people = people
        self._timeline = timeline
        self._mail = mail
        self._ids = ids
        self._mail_codes = mail_codes

    async def begin(self) -> None:
        """Creates the campaign and reserves its gifts. Visitors come over the next hours."""
        actor, caller = await self._people.actor(ADA), await self._people.caller(ADA)
        rule = CampaignRule(
            name="Company day",
            template_id=self._ids["templates"]["welcome"],
            account_id=self._ids["funding_accounts"]["acme-gbp"],
            gifts=_GIFTS,
            opens_at=self._timeline.now,
            closes_at=self._timeline.now + _OPEN_FOR,
            greeting="It was good to see you all at the company day. Your next coffee is on us!",
            domains=(_DOMAIN,),
        )
        campaign = await create_campaign(actor, caller, rule)
        await self._services.drafts.send(caller, campaign.order_reference, None)
        for number in range(_VISITORS):
            self._timeline.after(
                45 + 13 * number, partial(self._ask, campaign.token, f"colleague{number + 1}@{_DOMAIN}")
            )

    async def _ask(self, token: str, email: str) -> None:
        await self._services.visiting.ask(token, email, "203.0.113.40", "en")
        await self._mail_codes()
        self._timeline.after(5, partial(self._take, token, email))

    async def _take(self, token: str, email: str) -> None:
        await self._services.visiting.take(token, email, self._mail.codes[email], "203.0.113.40")
        await self._mail_codes()
