"""Automations: gifts that are sent automatically on a day of a contact. Senders create them, see the next days, and pause or skip."""

import re
from collections.abc import Sequence
from datetime import date, timedelta

from starlette.responses import Response

from largesse.automations import model, run_store, service, store
from largesse.automations.model import Automation, AutomationRule
from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.contacts.groups import list_group_names
from largesse.customers.principal import ADMIN
from largesse.customers.roles import RIGHTS, Right
from largesse.db.pool import Connection, Row
from largesse.db.statements import read_now
from largesse.ledger.store import list_funding_accounts
from largesse.mail.people.automation_words import GONE, why
from largesse.orders.order import Gift
from largesse.templates.service import MOST_TEMPLATES
from largesse.templates.store import list_templates, read_template
from largesse.web.console.attention import AttentionItem
from largesse.web.console.context import RequestContext
from largesse.web.console.gifts.templates import check_template, find_gift, offered_templates
from largesse.web.console.layout import zone_choices
from largesse.web.console.send.opening import person_as_caller
from largesse.web.console.words import Names, StateNames

HERE = "/app/automations"
_NOBODY = ""
_PAST = 50
_YEAR = timedelta(days=365)
_LOST_FOR = timedelta(days=7)  # how long Home shows gifts that were not sent
_MADE_UP = timedelta(days=model.MADE_UP_DAYS)
_MOST_BLOCKED = 1_000  # refused gifts are counted up to this number
OCCASION_NAMES = Names(
    {
        "birthday": text("Birthday"),
        "anniversary": text("Work anniversary"),
        "first_day": text("First day at work"),
        "joined": text("Days after joining a group"),
    }
)
_WEEKEND_NAMES = Names(
    {"keep": text("On the day itself"), "before": text("On the Friday before"), "after": text("On the Monday after")}
)
_LEAP_NAMES = Names({"before": text("On 28 February"), "after": text("On 1 March")})
STATES = StateNames(
    running=("good", text("Running")),
    paused=("still", text("Paused")),
    asks=("waiting", text("Needs approval")),
    ended=("still", text("Ended")),
)
RUN_STATES = StateNames(
    waiting=("still", text("Planned")),
    placing=("still", text("Sending")),
    placed=("good", text("Sent")),
    skipped=("still", text("Skipped")),
    failed=("bad", text("Failed")),
    missed=("bad", text("Missed")),
)
_NOBODY_APPROVES = text("It sends nothing: nobody else in your company is an administrator who could approve it.")
_WRONG = {
    "name": text("Another automation has this name."),
    "template": text("Choose a template from the list."),
    "group": text("Choose the group that contacts join."),
    "gone_group": text("Choose a group from the list."),
    "account": text("Choose an account that you can use."),
    "days": text("Type a whole number from 0 to %(most)s."),
    "years": text("Type at most 20 numbers from 1 to 60, such as 1, 5, 10, or leave it empty for every year."),
    "cap": text("Type a whole number from 1 to %(most)s, or leave it empty."),
    "zone": text("Choose one of the options."),
    "weekend": text("Choose one of the options."),
    "leap_day": text("Choose one of the options."),
    "occasion": text("Choose one of the options."),
    "asks_approval": _NOBODY_APPROVES,
}


async def of_automations(context: RequestContext, connection: Connection) -> list[AttentionItem]:
    """Returns items for automations that wait for the person's approval, and for gifts that were refused."""
    items, decide = [], context.say("Decide")
    if waiting := await waiting_for_approval(context, connection):
        said = context.ngettext(
            "%(count)s automation waits for your approval", "%(count)s automations wait for your approval", len(waiting)
        )
        path = "/app/approvals" if len(waiting) > 1 else f"{HERE}/{waiting[0]['id']}"
        more = context.say("It sends nothing before that.")
        items.append(AttentionItem("calendar-heart", "waiting", said, more, decide, path))
    for row in await run_store.list_stuck(connection, context.customer):
        if row["user_id"] == context.person.user_id or context.person.may(Right.SETTINGS):
            said = context.say("Nobody may approve the automation %(name)s", name=row["name"])
            path = f"{HERE}/{row['id']}"
            items.append(
                AttentionItem(
                    "calendar-heart",
                    "bad",
                    said,
                    context.say(_NOBODY_APPROVES),
                    context.say("See the automation"),
                    path,
                )
            )
    return items + await _blocked(context, connection) + await _lost(context, connection)


async def waiting_for_approval(context: RequestContext, connection: Connection) -> Sequence[Row]:
    """Returns the automations that the person may approve."""
    if context.person.role != ADMIN or context.person.user_id is None:
        return []
    return await store.list_waiting_for_approval(connection, context.customer, context.person.user_id)


async def _blocked(context: RequestContext, connection: Connection) -> list[AttentionItem]:
    """Returns the item for gifts that were refused and are tried again; none if the person may not see automations."""
    if not context.person.may(Right.CONTACTS):
        return []
    blocked = await store.count_blocked(connection, context.customer, most=_MOST_BLOCKED)
    if not blocked:
        return []
    said = context.ngettext(
        "%(count)s gift of an automation was refused",
        "%(count)s gifts of automations were refused",
        sum(row["gifts"] for row in blocked),
    )
    until = (blocked[0]["due_at"] + _MADE_UP).astimezone(context.zone)
    more = context.say(
        "Each is tried again every hour. The first is lost after %(day)s.", day=context.language.day(until)
    )
    path = f"{HERE}/{blocked[0]['automation_id']}#past-heading" if len(blocked) == 1 else HERE
    return [AttentionItem("calendar-heart", "bad", said, more, context.say("See why"), path)]


async def _lost(context: RequestContext, connection: Connection) -> list[AttentionItem]:
    """Returns the item for gifts that were not sent and are not tried again, for some days; none if the person may not see automations."""
    if not context.person.may(Right.CONTACTS):
        return []
    after = (await read_now(connection)).date() - _LOST_FOR - _MADE_UP
    lost = await store.count_lost(connection, context.customer, after)
    if not lost:
        return []
    said = context.ngettext(
        "%(count)s gift of an automation was not sent",
        "%(count)s gifts of automations were not sent",
        sum(row["gifts"] for row in lost),
    )
    path = f"{HERE}/{lost[0]['automation_id']}#past-heading" if len(lost) == 1 else HERE
    more = context.say("The three days are over, and it is not tried again.")
    return [AttentionItem("calendar-heart", "bad", said, more, context.say("See why"), path)]


async def show(context: RequestContext) -> Response:
    """Shows the automations, with what each sends next and how much it sent in the last year."""
    async with context.database.connection(context.person.scope) as connection:
        automations = await store.list_automations(connection, context.customer)
        since = (await read_now(connection)).date() - _YEAR
        counts = await store.count_runs(connection, context.person.customer_id, [one.id for one in automations], since)
        next_on = await service.next_days(connection, automations)
    return context.page(
        "automations.html",
        automations=automations,
        counts=counts,
        next_on=next_on,
        states=STATES,
        occasions=OCCASION_NAMES,
    )


async def ask(context: RequestContext) -> Response:
    """Shows the form for a new automation."""
    return await _form(context, None)


async def create(context: RequestContext) -> Response:
    """Creates an automation, and shows its next days."""
    rule = _read(context)
    await check_template(context)
    if not context.form.errors:
        try:
            automation_id = await service.create_automation(context.actor, rule)
            said = context.say("%(name)s is set. These are its next days.", name=rule.name)
            return context.see(f"{HERE}/{automation_id}", said)
        except InvalidRequest as refusal:
            _note(context, refusal)
    return await _form(context, None)


async def one(context: RequestContext) -> Response:
    """Shows an automation: its rule, its next days, and its past gifts. Raises NotFound."""
    automation = await _find(context)
    async with context.database.connection(context.person.scope) as connection:
        upcoming = [] if automation.ended_at else await service.preview(connection, automation)
        past = await store.list_past(connection, automation.customer_id, automation.id, _PAST)
        template = await read_template(connection, context.principal, automation.template_id)
        approvers = await store.list_approvers(connection, automation.customer_id, automation.user_id)
        twins = await service.list_twins(connection, automation)
    person, gift = context.person, await _gift(context, automation)
    return context.page(
        "automation.html",
        one=automation,
        sends=template,
        may_send=automation.owner_role in RIGHTS[Right.SEND],
        gift=gift,
        seen=gift and service.seen_of(automation, template, gift.unit_cost_minor),
        upcoming=upcoming,
        past=past,
        twins=twins,
        own=person.if_only_own(Right.SEE_ORDERS),
        days=model.PREVIEW_DAYS,
        states=STATES,
        run_states=RUN_STATES,
        why=lambda run: why(run["reason"], context.say, context.language, run["state"] == model.FAILED),
        gone=GONE,
        made_up=_MADE_UP,
        occasions=OCCASION_NAMES,
        weekends=_WEEKEND_NAMES,
        leap_days=_LEAP_NAMES,
        may_approve=automation.state == "asks" and person.user_id in approvers,
        stuck=None if approvers else _NOBODY_APPROVES,
    )


async def edit(context: RequestContext) -> Response:
    """Shows the form that changes an automation. Raises NotFound."""
    return await _form(context, await _find(context))


async def change(context: RequestContext) -> Response:
    """Changes an automation. Raises NotFound, HasEnded."""
    automation = await _find(context)
    offered = await _offered(context, automation.zone)
    for name, value in _shown(automation).items():
        context.form.keep_others({name: value}, dict(offered.get(name, ())))
    rule = _read(context)
    await check_template(context)
    if not context.form.errors:
        try:
            await service.change_automation(context.actor, automation.id, rule, automation)
            said = context.say("%(name)s was changed. These are its next days.", name=rule.name)
            return context.see(f"{HERE}/{automation.id}", said)
        except InvalidRequest as refusal:
            _note(context, refusal)
    return await _form(context, automation)


async def approve(context: RequestContext) -> Response:
    """Approves an automation of somebody else. Raises NotFound."""
    automation_id = context.number("automation")
    said = context.say("Approved. It sends from now on.")
    try:
        gift = await _gift(context, await _find(context))
        if gift is None:
            return context.see(f"{HERE}/{automation_id}", context.say(GONE))
        await service.approve_automation(context.actor, automation_id, context.form["seen"], gift.unit_cost_minor)
    except service.AutomationChanged:
        said = context.say("This automation changed after you opened its page. Look at it again, then approve it.")
    except service.OwnAutomation:
        said = context.say("Somebody else approves your automation.")
    return context.see(f"{HERE}/{automation_id}", said)


async def pause(context: RequestContext, *, paused: bool) -> Response:
    """Pauses or resumes an automation. Raises NotFound."""
    automation_id = context.number("automation")
    await service.pause_automation(context.actor, automation_id, paused=paused)
    said = context.say("Paused. Days that pass meanwhile are skipped.") if paused else context.say("It sends again.")
    return context.see(f"{HERE}/{automation_id}", said)


async def ask_end(context: RequestContext) -> Response:
    """Asks whether to end an automation. Raises NotFound."""
    return context.page("end_automation.html", one=await _find(context))


async def end(context: RequestContext) -> Response:
    """Ends an automation. Raises NotFound."""
    automation = await _find(context)
    await service.end_automation(context.actor, automation.id)
    return context.see(HERE, context.say("%(name)s has ended.", name=automation.name))


async def skip(context: RequestContext) -> Response:
    """Skips a gift, or no longer skips it. Raises NotFound."""
    automation_id, form = context.number("automation"), context.form
    contact_id = form.number("contact")
    try:
        day = date.fromisoformat(form["day"])
    except ValueError:
        raise NotFound("The contact has no such day.") from None
    skipped = form["skipped"] == "yes"
    if not await service.skip_day(context.actor, automation_id, contact_id or 0, day, skipped=skipped):
        said = context.say(
            "Nothing was changed, as the state of the gift changed after you opened the page. It is shown below."
        )
    else:
        said = context.say("Skipped.") if skipped else context.say("It is sent after all.")
    return context.see(f"{HERE}/{automation_id}#next", said)


async def _find(context: RequestContext) -> Automation:
    return await context.read(store.find_automation, context.customer, context.number("automation"))


async def _gift(context: RequestContext, automation: Automation) -> Gift | None:
    """Returns the gift of an automation at today's price; None if it cannot be sent."""
    found = await find_gift(context, await person_as_caller(context), automation.template_id)
    return found and found[0]


def _read(context: RequestContext) -> AutomationRule:
    """Returns the rule in the form. Adds errors to the form."""
    form = context.form
    occasion = form.choice("occasion", model.OCCASIONS)
    years = tuple(dict.fromkeys(int(one) for one in re.findall(r"\d{1,4}", form["years"])))
    if occasion == model.ANNIVERSARY and re.sub(r"[\d\s,;]", "", form["years"]):
        form.error("years", context.say(_WRONG["years"]))
    days, cap = form.number("days", model.MOST_DAYS), form.number("cap", model.MOST_CAP)
    if occasion == model.JOINED and days is None:
        form.error("days", context.say(_WRONG["days"], most=context.language.number(model.MOST_DAYS)))
    if form["cap"].strip() and not cap:
        form.error("cap", context.say(_WRONG["cap"], most=context.language.number(model.MOST_CAP)))
    return AutomationRule(
        name=form.text("name", model.MOST_NAME),
        occasion=occasion,
        group_id=form.number("group"),
        template_id=form.number("template") or 0,
        account_id=form.number("account"),
        zone=form["zone"] or "UTC",
        years=years if occasion == model.ANNIVERSARY else (),
        days=days if occasion == model.JOINED else None,
        leap_day=form.choice("leap_day", model.LEAP_DAYS),
        weekend=form.choice("weekend", model.WEEKENDS),
        cap=cap or None,
        asks_approval=form["asks_approval"] == "yes",
    )


def _note(context: RequestContext, refusal: InvalidRequest) -> None:
    """Adds to the form why an automation was refused, beside its field."""
    match refusal:
        case service.TooManyAutomations():
            said = context.say("Your company has %(most)s automations. End one first.", most=model.MOST_AUTOMATIONS)
            context.form.error("name", said)
        case service.AutomationFault():
            most = context.language.number(model.MOST_CAP if refusal.field == "cap" else model.MOST_DAYS)
            wrong = "gone_group" if refusal.field == "group" and context.form["group"] else refusal.field
            context.form.error(refusal.field, context.say(_WRONG[wrong], most=most))
        case _:
            context.form.error("name", context.say(_WRONG["zone"]))


def _shown(rule: AutomationRule) -> dict[str, str]:
    """Returns what the fields of a rule show."""
    return {
        "name": rule.name,
        "occasion": rule.occasion,
        "years": ", ".join(map(str, rule.years)),
        "days": "" if rule.days is None else str(rule.days),
        "group": str(rule.group_id or _NOBODY),
        "template": str(rule.template_id or ""),
        "account": str(rule.account_id or ""),
        "weekend": rule.weekend,
        "leap_day": rule.leap_day,
        "zone": rule.zone,
        "cap": str(rule.cap or ""),
        "asks_approval": "yes" if rule.asks_approval else "",
    }


async def _offered(context: RequestContext, zone: str) -> dict[str, list[tuple[str, str]]]:
    """Returns the options of each field that is a list. `zone` is one of the time zones."""
    async with context.database.connection(context.person.scope) as connection:
        templates = await list_templates(connection, context.principal, offset=0, limit=MOST_TEMPLATES)
        groups = await list_group_names(connection, context.customer)
        accounts = await list_funding_accounts(connection, context.principal)
    named = {"occasion": OCCASION_NAMES, "weekend": _WEEKEND_NAMES, "leap_day": _LEAP_NAMES}
    return {
        **{field: [(name, context.say(said)) for name, said in names.items()] for field, names in named.items()},
        "template": await offered_templates(context, templates, accounts),
        "group": [(_NOBODY, context.say("All contacts")), *((str(id_), name) for id_, name in groups.items())],
        "account": [(str(one.id), f"{one.name} ({one.currency})") for one in accounts],
        "zone": [(name, name.replace("_", " ")) for name in sorted({"UTC", zone, *zone_choices(zone)})],
    }


async def _form(context: RequestContext, automation: Automation | None) -> Response:
    rule = automation or AutomationRule(
        name="", occasion=model.BIRTHDAY, group_id=None, template_id=0, account_id=None, zone=str(context.zone)
    )
    return context.page(
        "automation_form.html",
        one=automation,
        now=_shown(rule),
        offered=await _offered(context, rule.zone),
        most_name=model.MOST_NAME,
    )
