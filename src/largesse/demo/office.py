"""The other acts in the demo's history: money, colleagues, webhooks, parcels, automations and a campaign."""

import csv
import io
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from largesse import seed
from largesse.approvals.model import ApprovalRule
from largesse.approvals.service import create_rule
from largesse.automations.model import AutomationRule
from largesse.automations.placing import AutomationRunner
from largesse.automations.service import create_automation, start_over
from largesse.base.errors import InvalidRequest
from largesse.branding.service import BrandContent, WrappingContent, add_wrapping, set_brand, set_logo
from largesse.budgets.service import NewBudget, create_budget
from largesse.campaigns.model import CampaignRule
from largesse.campaigns.service import create_campaign
from largesse.contacts.groups import create_field, list_groups
from largesse.contacts.model import ContactChange
from largesse.contacts.service import save_contacts
from largesse.customers.members import invite, set_role
from largesse.demo.people import ENVIRONMENT, DemoMailServer, DemoReceivers, People, somewhere
from largesse.demo.plan import ADA, DAYS, PRIYA, TOMASZ, Act, sendings
from largesse.drafts.model import DraftContent
from largesse.drafts.service import ask_approval
from largesse.fulfilment.shipments import export_shipments, import_shipments
from largesse.ledger.accounts import assign_account, transfer, watch_balance
from largesse.ledger.low_balance_store import Watch
from largesse.ledger.store import Holder
from largesse.ledger.top_ups import cancel_top_up, confirm_top_up, request_top_up
from largesse.webhooks.service import create_subscription

FINANCE, VIEWER, INVITED = "finn@acme.example", "grace@acme.example", "noah@acme.example"
_CRM_HOST = "crm.acme.example"
_COMPANY = "@acme.example"
_LOGO = Path(seed.__file__).parent / "pictures" / "logo.png"
_TEAMS = ("People team", "Engineering", "Support")
_Doing = Callable[..., Coroutine[Any, Any, None]]


class Office(msgspec.Struct):
    """The acts of administrators, finance and the operator. `hook` is a webhook address that answers."""

    people: People
    receivers: DemoReceivers
    hook: str

    def plan(self) -> None:
        """Adds all acts to the timeline."""
        on = self._on
        on(0, 500, self._subscribe, self.hook, "order.created")
        on(1, 615, self._subscribe, f"https://{_CRM_HOST}/hooks/gifts", "order.created")
        on(1, 640, self._invite, FINANCE, "Finn Byron", "finance")
        on(2, 600, self._sign_in, FINANCE)
        on(3, 655, self._invite, VIEWER, "Grace Hopper", "viewer")
        on(4, 560, self._sign_in, VIEWER)
        on(12, 700, self._promote, VIEWER, "member")
        on(DAYS - 4, 610, self._invite, INVITED, "Noah King", "member")
        on(0, 540, self._brand)
        on(2, 640, self._import_contacts)
        on(0, 530, self._assign, PRIYA, "people-team")
        on(2, 660, self._watch, "sales-team", 200_00)
        on(3, 700, self._budget, "Client coffees", "sales-team", 1_500_00, 25_00)
        on(4, 590, self._budget, "People team", "people-team", 4_000_00, None)
        for day, account, pounds in ((5, "sales-team", 150), (15, "people-team", 400), (29, "sales-team", 100)):
            on(day, 620, self._transfer, account, pounds * 100)
        for day, pounds, days in ((8, 10_000, 2), (35, 5_000, 3)):
            on(day, 570, self._top_up, pounds * 100, days)
        on(44, 590, self._cancelled_top_up, 2_000_00)
        on(DAYS - 2, 580, self._top_up, 8_000_00, None)
        for day in range(6, DAYS, 9):
            on(day, 16 * 60, self._ship)
        on(DAYS - 3, 60, self._break)
        on(DAYS - 1, 16 * 60 + 40, self._ask_approval)

    def _on(self, day: int, minute: int, doing: _Doing, *given: object) -> None:
        self.people.timeline.on(day, minute, partial(doing, *given))

    async def _brand(self) -> None:
        """Sets the branding of mail and claim pages."""
        actor = await self.people.actor(ADA)
        await set_logo(actor, _LOGO.read_bytes())
        await set_brand(
            actor,
            BrandContent(
                colour="#2f3e9e",
                sender_name="Acme Gifts",
                footer="Acme Ltd, 1 Example Street, London. Company no. 00000000.",
            ),
        )
        await add_wrapping(actor, WrappingContent("Acme anniversary", "diamonds", "#2f3e9e", "#ffd76a"))

    async def _import_contacts(self) -> None:
        """Creates contacts for the colleagues who get gifts, with a custom field."""
        actor, vault = await self.people.actor(ADA), self.people.services.vault
        field = await create_field(actor, "Cost centre")
        colleagues = {guest.email: guest.name for one in sendings() for guest in one.guests if _COMPANY in guest.email}
        changes = [
            ContactChange(
                email=email,
                name=name,
                language="en",
                country="GB",
                birthday=(1 + at * 5 % 12) * 100 + 1 + at * 11 % 28,
                start_date=date(2016 + at % 9, 1 + at * 7 % 12, 1),
                more_groups=("Sales" if at % 15 == 1 else _TEAMS[at % len(_TEAMS)],),
                fields={field.key: f"{4100 + at % 7}"},
            )
            for at, (email, name) in enumerate(sorted(colleagues.items()))
        ]
        await save_contacts(actor, vault, changes)

    async def _subscribe(self, url: str, event: str) -> None:
        actor = await self.people.actor(ADA)
        allowed = self.people.services.settings.webhook_allowed_networks
        with suppress(InvalidRequest):  # if the settings forbid webhooks to this machine
            await create_subscription(actor, self.people.services.vault, url, event, allowed=allowed, look_up=somewhere)

    async def _invite(self, email: str, name: str, role: str) -> None:
        await invite(await self.people.actor(ADA), email, name=name, role=role, mails=False, start_over=start_over)

    async def _sign_in(self, email: str) -> None:
        await self.people.person(email)

    async def _promote(self, email: str, role: str) -> None:
        person = await self.people.person(email)
        await set_role(await self.people.actor(TOMASZ), person.user_id, role)

    async def _assign(self, email: str, account: str) -> None:
        person = await self.people.person(email)
        actor = await self.people.actor(ADA)
        await assign_account(
            actor, Holder.PERSON, person.user_id, self.people.ids["funding_accounts"][account], may_use=True
        )

    async def _watch(self, account: str, below_minor: int) -> None:
        actor = await self.people.actor(ADA)
        assert actor.user_id is not None, "a person"
        await watch_balance(actor, self.people.ids["funding_accounts"][account], Watch(below_minor, (actor.user_id,)))

    async def _budget(self, name: str, account: str, limit_minor: int, per_gift_minor: int | None) -> None:
        """Sets a budget: what may be spent from an account in a month, and on one gift."""
        budget = NewBudget(
            name=name,
            currency="GBP",
            kind="account",
            subject_id=self.people.ids["funding_accounts"][account],
            limit_minor=limit_minor,
            per_gift_minor=per_gift_minor,
        )
        await create_budget(await self.people.actor(ADA), budget)

    async def _ask_approval(self) -> None:
        """Sets an approval rule for sends above an amount, and requests approval for one."""
        ada, priya = await self.people.actor(ADA), await self.people.actor(PRIYA)
        rule = ApprovalRule(
            customer_id=0,
            id=0,
            environment=ENVIRONMENT,
            name="Above £150",
            role="member",
            currency="GBP",
            above_minor=150_00,
        )
        await create_rule(ada, rule)
        caller, drafts = await self.people.caller(PRIYA), self.people.services.drafts
        content = DraftContent(
            product_id=self.people.ids["products"]["coffee-house"],
            country="GB",
            value=10.0,
            code_quantity=24,
            account_id=self.people.ids["funding_accounts"]["acme-gbp"],
            from_name="People team",
            message="Thank you for the summer party.",
        )
        draft = await drafts.begin(priya, caller.now, content)
        await ask_approval(drafts, self.people.services.database, caller, priya, draft.id)

    async def _transfer(self, account: str, amount_minor: int) -> None:
        actor = await self.people.actor(FINANCE if amount_minor < 200_00 else ADA)
        own = self.people.ids["funding_accounts"]
        await transfer(actor, from_id=own["acme-gbp"], to_id=own[account], amount_minor=amount_minor)

    async def _top_up(self, amount_minor: int, days: int | None) -> None:
        """Requests a top-up. The operator confirms it after `days`; with None it keeps waiting for the transfer."""
        actor = await self.people.actor(FINANCE)
        requested = await request_top_up(actor, self.people.ids["funding_accounts"]["acme-gbp"], amount_minor)
        if days is not None:
            self.people.timeline.after(days * 24 * 60, partial(self._confirm, requested.reference))

    async def _confirm(self, reference: str) -> None:
        await confirm_top_up(self.people.operator("largesse top-ups confirm"), reference)

    async def _cancelled_top_up(self, amount_minor: int) -> None:
        actor = await self.people.actor(FINANCE)
        requested = await request_top_up(actor, self.people.ids["funding_accounts"]["acme-eur"], amount_minor)
        await cancel_top_up(actor, requested.reference)

    async def _ship(self) -> None:
        """Ships the waiting parcels."""
        operator = self.people.operator("largesse shipments import")
        waiting = io.StringIO()
        if not await export_shipments(operator, self.people.services.vault, ENVIRONMENT, waiting):
            return
        waiting.seek(0)
        parcels = [row["shipment"] for row in csv.DictReader(waiting)]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "parcels.csv"
            lines = [f"{parcel},Royal Mail,RM{int(parcel):09}GB" for parcel in parcels]
            file.write_text("\n".join(["shipment,carrier,tracking_number", *lines]), encoding="utf-8")
            await import_shipments(operator, self.people.services.vault, ENVIRONMENT, file)

    async def _break(self) -> None:
        """Makes a receiver fail from now on."""
        self.receivers.down.add(_CRM_HOST)


AUTOMATIC = 6  # the number of orders of an automation
CAMPAIGNS = 1  # the number of orders of campaigns
_GIFTS, _VISITORS = 40, 27
_OPEN_FOR = timedelta(days=14)
_DOMAIN = "acme.example"


class Automatic(msgspec.Struct):
    """Creates two automations, of which one sends and one waits for approval, and places the orders of the first."""

    people: People

    async def set(self) -> None:
        """Creates the automation that sends."""
        actor = await self.people.actor(ADA)
        groups = await self.people.services.database.read(
            actor.principal.scope, list_groups, (actor.customer_id, ENVIRONMENT)
        )
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


class Giving(msgspec.Struct):
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
            closes_at=(self.people.timeline.now + _OPEN_FOR).replace(hour=23, minute=59, second=59),
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
