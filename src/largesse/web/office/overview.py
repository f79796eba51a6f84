"""The first page of the back office: the first steps of a new installation, open tasks, the state of the installation, and today compared with the same day last week. Also its settings, read only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from starlette.responses import Response

from largesse import __version__
from largesse.base.i18n.languages import text
from largesse.base.settings import secret_names, setting_names
from largesse.db.pool import Connection
from largesse.db.scope import OFFICE
from largesse.db.session import REQUESTS
from largesse.db.statements import plan_by_index
from largesse.fulfilment.parcels import ParcelState, count_parcels
from largesse.fulfilment.stock import list_low_stock
from largesse.housekeeping import ROOMS
from largesse.jobs import registry
from largesse.ledger.bank_files import count_waiting_lines
from largesse.ledger.corrections_store import count_waiting
from largesse.privacy.requests import SOON_DAYS
from largesse.privacy.store import count_due
from largesse.reports.usage import NEW_DAYS
from largesse.staff.store import (
    MOST_COUNTED,
    Days,
    Waiting,
    read_days,
    read_first_steps,
    read_server,
    read_sessions,
    read_waiting,
)
from largesse.web.console.charts import Figure, change_of
from largesse.web.console.home import Step
from largesse.web.office import bank_files, catalogue, deliveries, staff
from largesse.web.office.context import OfficeContext

_LATE_S = 300.0  # a queue is behind if its first row has been due for longer
_QUEUES = {
    "automation_runs": text("Gifts of automations"),
    "campaign_asks": text("Visitors of campaigns"),
    "campaigns": text("Campaigns that end"),
    "deliveries": text("Webhooks"),
    "events": text("Events to send"),
    "follow_ups": text("Reminders and claim-by dates"),
    "mail_jobs": text("Mail to write"),
    "messages": text("Mail to send"),
    "order_changes": text("Reports to bring up to date"),
}


class Item(NamedTuple):
    """An open task. `path` is empty if the member may not open its page."""

    kind: str
    icon: str
    said: str
    path: str


class Check(NamedTuple):
    """A part of the installation with its state and details."""

    name: str
    kind: str
    state: str
    more: str


async def show(context: OfficeContext) -> Response:
    """Shows the overview."""
    async with context.database.connection(OFFICE) as connection:
        days = await read_days(connection)  # first, as by an index it would look up each group of each customer
        await plan_by_index(connection)
        waiting = await read_waiting(connection)
        steps, items = await _steps(context, connection), await _items(context, connection, waiting)
        checks = [await _processes(context, connection), _mail(context, waiting), *await _queues(context, connection)]
        server = await read_server(connection)
    said = context.say(
        "PostgreSQL %(version)s, %(size)s MiB, revision %(revision)s",
        version=server.version.split()[0],
        size=context.language.number(round(server.size_bytes / 2**20)),
        revision=server.revision,
    )
    is_well = not context.services.database.disk.is_full
    database = _check(context, context.say("Database"), is_well, said, bad=context.say("Disk full"))
    return context.page(
        "overview.html",
        steps=steps,
        figures=_figures(context, days),
        items=items,
        checks=[database, *checks],
        version=__version__,
    )


async def _steps(context: OfficeContext, connection: Connection) -> list[Step]:
    """Returns the steps of a new installation that the member may take; empty once all are done."""
    is_new, has_product, has_customer, has_colleague = await read_first_steps(connection, NEW_DAYS)
    steps = [
        Step(
            "store",
            context.say("Add a product"),
            context.say("Customers send what you publish in the catalogue."),
            has_product,
            f"{catalogue.PRODUCTS.path}/new",
        ),
        Step(
            "building-2",
            context.say("Open a customer"),
            context.say("Its first administrator gets a link to the web application."),
            has_customer,
            "/office/customers/new",
        ),
        Step(
            "user-plus",
            context.say("Invite a colleague"),
            context.say("A correction of an account needs a second person."),
            has_colleague,
            staff.HERE,
        ),
    ]
    steps = [step for step in steps if is_new and _open(context, step.path)]
    return [] if all(step.is_done for step in steps) else steps


def _figures(context: OfficeContext, days: Days) -> list[Figure]:
    """Returns today's figures, each compared with the whole of the same day last week."""
    against = context.say("against the same day last week")
    number = context.language.number
    figures = [
        Figure(said, number(now), change_of(context, now, before), against)
        for said, now, before in (
            (context.say("Orders today"), days.now.orders, days.before.orders),
            (context.say("Claimed today"), days.now.claimed, days.before.claimed),
        )
    ]
    currencies = sorted({*days.now.spent, *days.before.spent}, key=lambda one: -days.before.spent.get(one, 0))
    for currency in currencies[:2]:
        now, before = days.now.spent.get(currency, 0), days.before.spent.get(currency, 0)
        spent = context.language.amount(now, currency)
        label = context.say("Ordered today in %(currency)s", currency=currency)
        figures.append(Figure(label, spent, change_of(context, now, before), against))
    return figures


async def _items(context: OfficeContext, connection: Connection, waiting: Waiting) -> list[Item]:
    ngettext = context.ngettext
    top_ups = ngettext(
        "%(count)s top-up waits for its payment", "%(count)s top-ups wait for their payments", waiting.top_ups
    )
    of_parcels = await count_parcels(connection, "production")
    to_send, came_back = of_parcels[ParcelState.WAITING], of_parcels[ParcelState.BACK]
    parcels = ngettext("%(count)s parcel is to be sent", "%(count)s parcels are to be sent", to_send)
    returned = ngettext("%(count)s parcel came back", "%(count)s parcels came back", came_back)
    vouchers = ngettext("%(count)s gift waits for stock", "%(count)s gifts wait for stock", waiting.vouchers)
    held = ngettext("%(count)s mail is held", "%(count)s mails are held", waiting.held)
    unwritten = ngettext("%(count)s mail cannot be written", "%(count)s mails cannot be written", waiting.unwritten)
    failing = ngettext("%(count)s webhook fails", "%(count)s webhooks fail", waiting.failing)
    due = await count_due(connection, soon_days=SOON_DAYS)
    late = ngettext("%(count)s privacy request is late", "%(count)s privacy requests are late", due.overdue)
    soon = ngettext("%(count)s privacy request is due soon", "%(count)s privacy requests are due soon", due.soon)
    low, to_approve = len(await list_low_stock(connection, MOST_COUNTED)), await count_waiting(connection)
    running_out = ngettext("%(count)s stock runs out", "%(count)s stocks run out", low)
    corrections = ngettext(
        "%(count)s correction waits for a second person", "%(count)s corrections wait for a second person", to_approve
    )
    bank_lines = await count_waiting_lines(connection, bank_files.SHOWN, MOST_COUNTED)
    transfers = ngettext("%(count)s line of a bank file waits", "%(count)s lines of bank files wait", bank_lines)
    found = (
        (bank_lines, "waiting", "file-spreadsheet", transfers, bank_files.HERE),
        (waiting.top_ups, "waiting", "landmark", top_ups, "/office/money"),
        (to_approve, "waiting", "scale", corrections, "/office/money/corrections"),
        (low, "waiting", "ticket", running_out, "/office/stock"),
        (to_send, "waiting", "truck", parcels, "/office/parcels"),
        (came_back, "bad", "truck", returned, "/office/parcels?state=back"),
        (waiting.vouchers, "bad", "ticket", vouchers, "/office/stock"),
        (waiting.held, "bad", "mail", held, f"{deliveries.HERE}?state=held"),
        (waiting.put_off, "bad", "mail", _put_off(context, waiting.put_off), f"{deliveries.HERE}?state=pending"),
        (waiting.unwritten, "bad", "mail", unwritten, f"{deliveries.HERE}?state=pending"),
        (waiting.failing, "bad", "webhook", failing, f"{deliveries.HERE}/webhooks"),
        (due.overdue, "bad", "shield-check", late, "/office/privacy"),
        (due.soon, "waiting", "shield-check", soon, "/office/privacy"),
    )
    return [
        Item(
            kind,
            icon,
            context.say("%(said)s, or more", said=said) if count == MOST_COUNTED else said,
            _open(context, path),
        )
        for count, kind, icon, said, path in found
        if count
    ]


def _open(context: OfficeContext, path: str) -> str:
    """Returns the path if the member may open its page, otherwise an empty text."""
    role = context.person.role
    is_theirs = any(
        one.path == path.partition("?")[0] and one.method == "GET" and role in one.roles for one in context.routes
    )
    return path if is_theirs else ""


async def _processes(context: OfficeContext, connection: Connection) -> Check:
    """Returns the check of database connections. A missing worker shows in the checks of queues."""
    count = dict(await read_sessions(connection)).get(REQUESTS.name, 0)
    more = context.ngettext("%(count)s connection to the database", "%(count)s connections to the database", count)
    return _check(context, context.say("Processes"), bool(count), more, bad=context.say("None"))


def _mail(context: OfficeContext, waiting: Waiting) -> Check:
    name, count = context.say("Mail"), waiting.put_off
    if context.services.captures:
        return _check(context, name, True, context.say("Mail is captured, and leaves nowhere"), bad="")
    if not context.can_mail:
        return _check(context, name, False, context.say("No mail server is set: mail is held"), bad=context.say("Held"))
    said = context.say("A mail server is set")
    if count:
        said = _put_off(context, count)
    more = context.say("%(said)s, or more", said=said) if count == MOST_COUNTED else said
    return _check(context, name, not count, more, bad=context.say("Failing"))


def _put_off(context: OfficeContext, count: int) -> str:
    return context.ngettext(
        "%(count)s mail waits for the mail server", "%(count)s mails wait for the mail server", count
    )


async def _queues(context: OfficeContext, connection: Connection) -> list[Check]:
    checks = []
    for queue in (one for room in ROOMS for one in room.queues):
        depth = await registry.count(connection, queue)
        late_s = await registry.age_s(connection, queue) if depth else 0.0
        name = context.say(_QUEUES[queue.table]) if queue.table in _QUEUES else queue.table
        more = context.ngettext("%(count)s waits", "%(count)s wait", depth)
        checks.append(_check(context, name, late_s < _LATE_S, more, bad=context.say("Behind")))
    return checks


def _check(context: OfficeContext, name: str, is_well: bool, more: str, *, bad: str) -> Check:
    return Check(name, "good" if is_well else "bad", context.say("Well") if is_well else bad, more)


# The member of `Settings` for each variable of a different name.
_NAMED: Mapping[str, str] = {
    "LARGESSE_DOCUMENTATION_URL": "docs_url",
    "LARGESSE_MASTER_KEY": "master_keys",
    "LARGESSE_STAGING_PUBLIC_URL": "other_public_url",
    "LARGESSE_WEBHOOK_TIMEOUT": "webhook_timeout_s",
}


async def show_settings(context: OfficeContext) -> Response:
    """Shows each setting with its value. Of secrets, shows only whether they are set."""
    members = {name: _NAMED.get(name, name.removeprefix("LARGESSE_").lower()) for name in sorted(setting_names())}
    values = {name: getattr(context.services.settings, member) for name, member in members.items()}
    shown = [(name, _setting(context, name, value)) for name, value in values.items()]
    return context.page("settings.html", settings=shown)


def _setting(context: OfficeContext, name: str, value: Any) -> str:
    if name in secret_names():
        return context.say("Set") if value else context.say("Not set")
    if isinstance(value, tuple):
        return ", ".join(str(one) for one in value) or "\N{EN DASH}"
    if value is None or value == "":
        return "\N{EN DASH}"
    return str(value) if isinstance(value, str | Path) else context.language.number(value)
