"""Makes three months of history for the demo. Orders, mail, claims and webhooks come from the same operations as in normal use.

The database's clock is set back, and moves forward from act to act. The history is the same at each start, relative to today.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial

import msgspec

from largesse.automations import tasks as automations
from largesse.base.settings import Settings
from largesse.campaigns import tasks as campaigns
from largesse.db.pool import Connection, Database
from largesse.db.roles import Role
from largesse.db.session import WORK
from largesse.demo.office import Automatic, Giving, Office
from largesse.demo.people import DemoMailServer, DemoReceivers, People, Recipients
from largesse.demo.plan import ADA, DAYS, INVOICED, Act, Guest, Sending, Timeline, sendings
from largesse.installation import open_database, open_vault
from largesse.jobs.registry import PeriodicTask, WorkerContext
from largesse.mail import tasks as mail
from largesse.mail.mailer import Mailer
from largesse.mail.service import correct_address, resend_unclaimed
from largesse.main import open_services
from largesse.orders import tasks as orders
from largesse.orders.acts import cancel_order
from largesse.orders.recipients import Recipient
from largesse.orders.request import Choice, CollectionChoice, ProductChoice, SendRequest, TemplateChoice, send_request
from largesse.reports import tasks as reports
from largesse.seed.load import LoadedSeed
from largesse.web.kit.page_services import PageServices, page_services
from largesse.webhooks import tasks as webhooks
from largesse.webhooks.deliverer import Deliverer

CUSTOMER = "acme"
_KEYS = {"hr-bot": "acme-production", "sales-crm": "acme-sales"}  # keys in the seed file, by service account


async def make_history(settings: Settings, owner: Connection, loaded: LoadedSeed, hook: str) -> None:
    """Makes the history for data that was just loaded, and leaves the clock at the present.

    `owner` is a connection of the tables' owner. `hook` is the address of a webhook receiver that answers.
    """
    timeline = Timeline(owner, DAYS)
    mail_server = DemoMailServer({guest.typed for one in sendings() for guest in one.guests if guest.is_mistyped})
    receivers = DemoReceivers()
    async with AsyncExitStack() as stack:
        services = page_services(
            await stack.enter_async_context(open_services(settings, is_demo=True)), makes_vouchers=True
        )
        operators = await stack.enter_async_context(open_database(settings))
        await open_vault(operators, settings)
        worker = await stack.enter_async_context(_worker(settings, services, mail_server, receivers))

        def people_of(customer: str, keys: Mapping[str, str]) -> People:
            secrets = {account: loaded.api_keys[key] for account, key in keys.items()}
            return People(services, operators, timeline, loaded.ids, loaded.ids["customers"][customer], secrets)

        people = people_of(CUSTOMER, _KEYS)
        recipients = Recipients(services, timeline, mail_server)
        Office(people, receivers, hook).plan()
        placing = _Orders(people, recipients)
        invoiced = _Orders(people_of("globex", {INVOICED.sender: "globex-production"}), recipients)
        timeline.on(INVOICED.day, INVOICED.minute, partial(invoiced.send, INVOICED))
        for one in sendings():
            timeline.on(one.day, one.minute, partial(placing.send, one))

        async def settle() -> None:
            if placing.has_mail:
                placing.has_mail = False
                await worker.settle()
                recipients.read_mail()

        automation = Automatic(people)
        timeline.on(20, 600, automation.set)
        timeline.on(DAYS - 1, 16 * 60 + 20, automation.set_another)
        for day in range(21, DAYS):
            timeline.on(day, 9 * 60 + 15, partial(placing.work_on, worker.plan, automation.place))
        giving = Giving(people, mail_server, partial(placing.work_on, worker.mail_codes))
        timeline.on(DAYS - 4, 11 * 60, giving.begin)
        await timeline.run(settle)
        await timeline.move()
        await worker.finish()


class _Orders(msgspec.Struct):
    """Places orders, and acts on them later: corrects addresses, sends mail again, cancels."""

    people: People
    recipients: Recipients
    has_mail: bool = False  # True if the worker has mail to send, or other work

    async def send(self, sending: Sending) -> None:
        """Places the order."""
        caller = await self.people.caller(sending.sender)
        placed = await self.people.services.orders.send(caller, self._request(sending))
        self.has_mail = True
        assert placed.reference is not None, "every order has one"
        self.recipients.hand_out(placed)
        after = self.people.timeline.after
        for guest in sending.guests:
            if guest.mended_after is not None:
                after(guest.mended_after, partial(self._correct, sending, placed.reference, guest))
        if sending.cancelled_after is not None:
            after(sending.cancelled_after, partial(self._cancel, sending, placed.reference))
        if sending.claim_within is not None:
            after(sending.claim_within * 24 * 60 + 1, self._follow_up)
            for days in (*sending.reminders, sending.claim_within - 3):
                after(days * 24 * 60 + 1, self._follow_up)
        if sending.resent_after is not None:
            after(sending.resent_after, partial(self._resend, sending, placed.reference))

    async def work_on(self, *steps: Act) -> None:
        """Runs steps one after the other."""
        for step in steps:
            await step()
        self.has_mail = True

    def _request(self, sending: Sending) -> SendRequest:
        return send_request(
            self._choice(sending),
            None if sending.in_days is None else self.people.timeline.now + timedelta(days=sending.in_days),
            account_id=None if sending.account is None else self.people.ids["funding_accounts"][sending.account],
            recipients=[Recipient(guest.typed, guest.name) for guest in sending.guests] or None,
            code_quantity=sending.codes,
            from_name=sending.from_name,
            message=sending.message,
            wrapping_key=sending.wrapping,
            source=sending.source or "web",
            external_reference=sending.reference,
            reminder_days=list(sending.reminders),
            claim_by=None
            if sending.claim_within is None
            else self.people.timeline.now + timedelta(days=sending.claim_within),
        )

    def _choice(self, sending: Sending) -> Choice:
        ids = self.people.ids
        if sending.template is not None:
            return TemplateChoice(ids["templates"][sending.template])
        if sending.collection is not None:
            return CollectionChoice(ids["collections"][sending.collection], sending.value)
        assert sending.product is not None, "a product, a collection or a template"
        return ProductChoice(ids["products"][sending.product], sending.value, "GB")

    async def _correct(self, sending: Sending, reference: str, guest: Guest) -> None:
        # An administrator corrects the orders of service accounts.
        sender = ADA if sending.sender in _KEYS else sending.sender
        await correct_address(await self.people.actor(sender), reference, guest.typed, guest.email)
        self.has_mail = True

    async def _cancel(self, sending: Sending, reference: str) -> None:
        actor = await self.people.actor(sending.sender)
        await cancel_order(actor, actor.principal, reference)

    async def _follow_up(self) -> None:
        self.has_mail = True  # so that the worker runs

    async def _resend(self, sending: Sending, reference: str) -> None:
        await resend_unclaimed(await self.people.actor(sending.sender), reference)
        self.has_mail = True


class _Worker:
    """Runs the worker's steps one after the other."""

    def __init__(self, database: Database, services: PageServices, mailer: Mailer, deliverer: Deliverer) -> None:
        self._context = WorkerContext(database, services.vault, lambda *_: None)
        self._mailer = mailer
        self._deliverer = deliverer

    async def settle(self) -> None:
        """Sends the mail that is due, and delivers events."""
        await self._repeat(*orders.TASKS.periodic, *mail.TASKS.periodic[:1])
        while await self._mailer.step():
            pass
        await self._repeat(*webhooks.TASKS.periodic)
        for failing in (False, True):
            await self._deliverer.step(failing=failing)
        await self._deliverer.settle()

    async def plan(self) -> None:
        """Plans automations."""
        await self._repeat(*automations.TASKS.periodic)

    async def mail_codes(self) -> None:
        """Decides which visitors of campaigns get a code."""
        await self._repeat(*campaigns.TASKS.periodic[:1])

    async def finish(self) -> None:
        """Brings the reports up to date."""
        await self.settle()
        await self._repeat(*reports.TASKS.periodic)

    async def _repeat(self, *tasks: PeriodicTask) -> None:
        for task in tasks:
            while await task.step(self._context):
                pass


@asynccontextmanager
async def _worker(
    settings: Settings, services: PageServices, mail_server: DemoMailServer, receivers: DemoReceivers
) -> AsyncIterator[_Worker]:
    async with open_database(settings, role=Role.WORKER, limits=WORK) as database:
        await open_vault(database, settings)
        mailer = Mailer(
            database,
            services.vault,
            public_url_of=settings.public_url_of,
            mail_from=settings.mail_from,
            transport=mail_server,
        )
        deliverer = Deliverer(database, services.vault, receivers, lambda: None)
        try:
            yield _Worker(database, services, mailer, deliverer)
        finally:
            await mailer.close()
            await deliverer.close()
