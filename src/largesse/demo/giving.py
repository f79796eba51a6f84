"""What sends by itself in the demo's history: automations, and a campaign, whose visitors get gifts by its link."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from largesse.automations.model import AutomationRule
from largesse.automations.placing import AutomationRunner
from largesse.automations.service import create_automation
from largesse.campaigns.model import CampaignRule
from largesse.campaigns.service import create_campaign
from largesse.contacts.group_store import list_groups
from largesse.demo.outside import DemoMailServer
from largesse.demo.people import ENVIRONMENT, People
from largesse.demo.plan import ADA, TOMASZ
from largesse.demo.timeline import Act

AUTOMATIC = 6  # the number of orders of an automation
CAMPAIGNS = 1  # the number of orders of campaigns
_GIFTS, _VISITORS = 40, 27
_OPEN_FOR = timedelta(days=14)
_DOMAIN = "acme.example"


@dataclass(slots=True)
class Automatic:
    """Creates two automations, one that sends and one that waits for approval, and places the orders of the first."""

    people: People

    async def set(self) -> None:
        """Creates the automation that sends."""
        actor = await self.people.actor(ADA)
        async with self.people.services.database.connection(actor.principal.scope) as connection:
            groups = await list_groups(connection, (actor.customer_id, ENVIRONMENT))
        sales = next(group.id for group in groups if group.name == "Sales")
        rule = AutomationRule(
            name="A month in sales",
            occasion="joined",
            group_id=sales,
            days=30,
            template_id=self.people.ids["templates"]["welcome"],
            account_id=self.people.ids["funding_accounts"]["acme-gbp"],
            zone="Europe/London",
            weekend="after",
            cap=AUTOMATIC,
        )
        await create_automation(actor, rule)

    async def set_another(self) -> None:
        """Creates the automation that waits for approval."""
        rule = AutomationRule(
            name="Birthdays",
            occasion="birthday",
            group_id=None,
            template_id=self.people.ids["templates"]["birthday"],
            account_id=self.people.ids["funding_accounts"]["acme-gbp"],
            zone="Europe/London",
            weekend="before",
            asks_approval=True,
        )
        await create_automation(await self.people.actor(TOMASZ), rule)

    async def place(self) -> None:
        """Places the orders that are due."""
        runner = AutomationRunner(self.people.services.database, self.people.services.orders, ENVIRONMENT)
        while await runner.step():
            pass


@dataclass(slots=True)
class Giving:
    """Creates the campaign, and acts for its visitors. `mail_codes` is the worker's step that mails their codes."""

    people: People
    mail: DemoMailServer
    mail_codes: Act

    async def begin(self) -> None:
        """Creates the campaign and reserves its gifts. Visitors come over the next hours."""
        actor, caller = await self.people.actor(ADA), await self.people.caller(ADA)
        rule = CampaignRule(
            name="Company day",
            template_id=self.people.ids["templates"]["welcome"],
            account_id=self.people.ids["funding_accounts"]["acme-gbp"],
            gifts=_GIFTS,
            opens_at=self.people.timeline.now,
            closes_at=self.people.timeline.now + _OPEN_FOR,
            greeting="It was good to see you all at the company day. Your next coffee is on us!",
            domains=(_DOMAIN,),
        )
        campaign = await create_campaign(actor, caller, rule)
        await self.people.services.drafts.send(caller, campaign.order_reference, None)
        for number in range(_VISITORS):
            self.people.timeline.after(
                45 + 13 * number, partial(self._ask, campaign.token, f"colleague{number + 1}@{_DOMAIN}")
            )

    async def _ask(self, token: str, email: str) -> None:
        await self.people.services.visiting.ask(token, email, "203.0.113.40", "en")
        await self.mail_codes()
        self.people.timeline.after(5, partial(self._take, token, email))

    async def _take(self, token: str, email: str) -> None:
        await self.people.services.visiting.take(token, email, self.mail.codes[email], "203.0.113.40")
        await self.mail_codes()
