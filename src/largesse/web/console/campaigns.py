"""Campaigns: gifts by a link. Senders create them, reserve their gifts with an order, and see who got one."""

from datetime import datetime
from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.cooperative import finish_soon
from largesse.base.errors import HasEnded, InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.campaigns import model, service, store
from largesse.campaigns.model import Campaign, CampaignRule, State
from largesse.customers.roles import Reach, Right
from largesse.db.pool import Connection, Row
from largesse.db.statements import read_now
from largesse.drafts.model import DraftContent
from largesse.drafts.store import find_draft
from largesse.ledger.store import list_funding_accounts
from largesse.orders.placeholders import unknown_placeholders
from largesse.templates.service import MOST_TEMPLATES
from largesse.templates.store import list_templates
from largesse.web.console.context import RequestContext
from largesse.web.console.form import DAY, LOCAL, Text
from largesse.web.console.gifts.templates import check_template, offered_templates
from largesse.web.console.send.opening import person_as_caller
from largesse.web.console.words import StateNames
from largesse.web.kit.body import BodyLimits

HERE = "/app/campaigns"
MOST_BYTES = 320 * model.MOST_ADDRESSES
LIST_LIMITS = BodyLimits(MOST_BYTES, whole_s=60.0, pause_s=15.0)
_SHOWN, _PEOPLE = 200, 50
STATES = StateNames(
    {
        State.DRAFT: ("waiting", text("Not reserved")),
        State.SCHEDULED: ("still", text("Opens later")),
        State.OPEN: ("good", text("Open")),
        State.PAUSED: ("waiting", text("Paused")),
        State.FULL: ("still", text("All taken")),
        State.ENDING: ("still", text("Ending")),
        State.ENDED: ("still", text("Ended")),
    }
)
_LINES = {
    "issued": ("still", text("Unclaimed")),
    "cancelled": ("bad", text("Cancelled")),
    "": ("good", text("Claimed")),
}
_TOO_MANY = text("Your company has %(most)s campaigns. End one first.")
_RESERVED = text("Its gifts are reserved: it cannot be changed any more. You can pause or end it.")
_GIFTS = text("Type a whole number from 1 to %(most)s.")
_CLOSES = text("Choose a day that has not passed and is not before it opens.")
_NO_PLACEHOLDER = text("Remove %(placeholders)s: visitors are not contacts, so nothing can replace it.")
_NO_DOMAIN = text("This is not a domain: %(wrong)s.")
_MANY_DOMAINS = text("Name at most %(most)s domains.")
_NO_ADDRESS = text("This is not an e-mail address: %(wrong)s.")
_MANY_ADDRESSES = text("List at most %(most)s addresses.")


class CampaignForm(msgspec.Struct):
    """The typed fields of a campaign."""

    name: Annotated[str, Text(model.MOST_NAME)]
    greeting: Annotated[str, Text(model.MOST_GREETING, required=False, lines=True)]
    gifts: Annotated[str, Text(6)]
    domains: Annotated[str, Text(5_000, required=False, lines=True)]
    addresses: Annotated[str, Text(MOST_BYTES, required=False, lines=True)]
    opens: Annotated[str, Text(20)]
    closes: Annotated[str, Text(20)]


async def show(context: RequestContext) -> Response:
    """Shows all campaigns, or only the person's own if they may not see all."""
    person = context.person
    whose = None if person.reach(Right.SEND) is Reach.ALL else person.user_id
    async with context.database.connection(person.scope) as connection:
        campaigns = await store.list_campaigns(connection, context.customer, whose, _SHOWN)
        orders = await store.read_orders(connection, person.customer_id, [one.order_reference for one in campaigns])
        taken = await store.count_taken(connection, person.customer_id, [one.id for one in campaigns])
        given = {
            orders[one.order_reference]["id"]: one.given_through
            for one in campaigns
            if one.ended_at is None and one.order_reference in orders
        }
        left = await store.with_gifts_left(connection, person.customer_id, given)
        now = await read_now(connection)
    shown = []
    for one in campaigns:
        order = orders.get(one.order_reference)
        state = one.state(now, is_ordered=order is not None, has_left=order is not None and order["id"] in left)
        shown.append(service.Progress(one, state, order, taken.get(one.id, 0)))
    return context.page("campaigns.html", campaigns=shown, states=STATES, shows_all=whose is None)


async def ask(context: RequestContext) -> Response:
    """Shows the form for a new campaign."""
    return await _form(context, None)


async def create(context: RequestContext) -> Response:
    """Creates a campaign, and goes to the review of the order that reserves its gifts."""
    rule = await _read(context)
    if not context.form.errors:
        try:
            campaign = await service.create_campaign(context.actor, await person_as_caller(context), rule)
            return context.see(f"/app/send/{campaign.order_reference}/review")
        except InvalidRequest as refusal:
            _note(context, refusal)
    return await _form(context, None)


async def one(context: RequestContext) -> Response:
    """Shows a campaign: its link, how many gifts are left, and who got one. Raises NotFound."""
    campaign = await _find(context)
    before = context.parameters.number("before") or model.MOST_GIFTS + 1
    async with context.database.connection(context.person.scope) as connection:
        shown = await service.read_progress(connection, campaign)
        has_draft = shown.order is None and await _draft(context, connection, campaign) is not None
        listed = 0 if campaign.domains else await store.count_list(connection, campaign)
        people: list[tuple[Row, Row]] = []
        if shown.order is not None:
            people = await store.list_taken(connection, campaign, shown.order["id"], before=before, limit=_PEOPLE + 1)
    is_own = campaign.user_id == context.person.user_id
    public_url = context.services.settings.public_url_of(campaign.environment)
    return context.page(
        "campaign.html",
        one=shown,
        campaign=campaign,
        states=STATES,
        lines=_LINES,
        link=f"{public_url}/claim/campaign/{campaign.token}",
        listed=listed,
        people=people[:_PEOPLE],
        older=context.here(before=people[_PEOPLE - 1][0]["number"]) if len(people) > _PEOPLE else None,
        has_draft=has_draft,
        is_own=is_own,
        is_over=shown.state in {State.ENDING, State.ENDED},
    )


async def edit(context: RequestContext) -> Response:
    """Shows the form that changes a campaign whose gifts are not reserved yet. Raises NotFound."""
    return await _form(context, await _find(context))


async def change(context: RequestContext) -> Response:
    """Changes a campaign whose gifts are not reserved yet. Raises NotFound, HasEnded."""
    campaign = await _find(context)
    if await context.read(service.is_over, campaign):
        raise HasEnded("The campaign has ended.")
    before = await context.read(_rule, context, campaign)
    if before is not None:
        offered = await _offered(context)
        for name, value in _values(context, before).items():
            context.form.keep_others({name: value}, dict(offered.get(name, ())))
    rule = await _read(context, before)
    if context.form.errors:
        return await _form(context, campaign)
    try:
        await service.change_campaign(context.actor, await person_as_caller(context), campaign.id, rule, before)
    except service.IsReserved:
        return context.see(f"{HERE}/{campaign.id}", context.say(_RESERVED))
    except InvalidRequest as refusal:
        _note(context, refusal)
        return await _form(context, campaign)
    changed = await context.read(store.find_campaign, (campaign.customer_id, campaign.environment), campaign.id)
    return context.see(f"/app/send/{changed.order_reference}/review")


async def pause(context: RequestContext, *, paused: bool) -> Response:
    """Pauses or resumes a campaign. Raises NotFound."""
    campaign_id = context.number("campaign")
    await service.pause_campaign(context.actor, campaign_id, paused=paused)
    said = context.say("It gives gifts again.")
    if paused:
        said = context.say("Paused. Visitors get nothing until you resume it.")
    return context.see(f"{HERE}/{campaign_id}", said)


async def ask_end(context: RequestContext) -> Response:
    """Asks whether to end a campaign, and shows what is refunded. Raises NotFound."""
    campaign = await _find(context)
    return context.page("end_campaign.html", one=await context.read(service.read_progress, campaign), campaign=campaign)


async def end(context: RequestContext) -> Response:
    """Ends a campaign. Raises NotFound."""
    campaign = await service.close_campaign(context.actor, context.number("campaign"))
    return context.see(HERE, context.say("%(name)s has ended.", name=campaign.name))


async def _find(context: RequestContext) -> Campaign:
    """Returns the campaign of the path, if the person may see it. Raises NotFound."""
    person = context.person
    campaign = await context.read(store.find_campaign, context.customer, context.number("campaign"))
    if person.reach(Right.SEND) is not Reach.ALL and campaign.user_id != person.user_id:
        raise NotFound("There is no such campaign.")
    return campaign


async def _draft(context: RequestContext, connection: Connection, campaign: Campaign) -> DraftContent | None:
    """Returns the draft of a campaign's order; None if it was deleted."""
    person = msgspec.structs.replace(context.principal, user_id=campaign.user_id)
    draft = await find_draft(connection, person, campaign.order_reference)
    return None if draft is None else draft.content


async def _read(context: RequestContext, before: CampaignRule | None = None) -> CampaignRule:
    """Returns the rule in the form, which changes the rule `before`. Adds an error beside each field that is wrong."""
    form, say = context.form, context.say
    typed = form.read(CampaignForm)
    gifts = form.number("gifts", model.MOST_GIFTS) or 0
    if not gifts:
        form.error("gifts", say(_GIFTS, most=context.language.number(model.MOST_GIFTS)))
    async with context.database.connection(context.person.scope) as connection:
        now = await read_now(connection)
        templates = await list_templates(connection, context.principal, offset=0, limit=MOST_TEMPLATES)
        accounts = await list_funding_accounts(connection, context.principal)
    template_id, account_id = form.number("template"), form.number("account")
    if template_id not in {one.id for one in templates}:
        form.error("template", say("Choose a template from the list."))
    if accounts and account_id not in {one.id for one in accounts}:
        form.error("account", say("Choose an account that you can use."))
    await check_template(context)
    if placeholders := unknown_placeholders(typed.greeting, ()):
        form.error("greeting", say(_NO_PLACEHOLDER, placeholders=", ".join(placeholders)))
    opens_at, closes_at = _times(context, now, before)
    domains, mailboxes = await _invited(context, typed)
    return CampaignRule(
        name=typed.name,
        template_id=template_id or 0,
        account_id=account_id if accounts else None,
        gifts=gifts,
        opens_at=opens_at,
        closes_at=closes_at,
        greeting=typed.greeting or None,
        domains=domains,
        mailboxes=mailboxes,
    )


def _times(context: RequestContext, now: datetime, before: CampaignRule | None) -> tuple[datetime, datetime]:
    """Returns the time of opening and the end of the last day, both typed in the person's zone. Adds errors to the form.

    Those of `before` stay the same instants unless the person changed them: somebody may have set them in another zone.
    """
    form = context.form
    opens_at, closes_at = form.time("opens", context.times_in), form.end_of_day("closes", context.times_in)
    if before is not None:
        shown = _values(context, before)
        opens_at = before.opens_at if form["opens"] == shown["opens"] else opens_at
        closes_at = before.closes_at if form["closes"] == shown["closes"] else closes_at
    if opens_at is None or opens_at < now - model.MOST_AHEAD:  # browsers post a half-typed year such as 0026
        form.error("opens", context.say("Choose a day and a time."))
    elif opens_at > now + model.MOST_AHEAD:
        form.error("opens", context.say("Choose a time at most %(most)s days from now.", most=model.MOST_AHEAD.days))
    if closes_at is None:
        form.error("closes", context.say("Choose a day."))
    opens_at, closes_at = opens_at or now, closes_at or now
    if closes_at <= max(now, opens_at):
        form.error("closes", context.say(_CLOSES))
    elif closes_at - max(now, opens_at) > model.LONGEST:
        form.error("closes", context.say("Choose a day at most %(most)s days after it opens.", most=model.LONGEST.days))
    return opens_at, closes_at


async def _invited(context: RequestContext, typed: CampaignForm) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the domains and mailboxes in the form. Adds errors to the form."""
    form, say, number = context.form, context.say, context.language.number
    domains: tuple[str, ...] = ()
    mailboxes: tuple[str, ...] = ()
    try:
        domains = model.read_domains(typed.domains)
    except model.CampaignFault as fault:
        wrong = ", ".join(fault.wrong)
        form.error("domains", say(_NO_DOMAIN, wrong=wrong) if wrong else say(_MANY_DOMAINS, most=model.MOST_DOMAINS))
    try:
        mailboxes = await finish_soon(model.read_mailboxes(typed.addresses))
    except model.CampaignFault as fault:
        wrong = ", ".join(fault.wrong)
        most = number(model.MOST_ADDRESSES)
        form.error("addresses", say(_NO_ADDRESS, wrong=wrong) if wrong else say(_MANY_ADDRESSES, most=most))
    if bool(typed.domains) == bool(typed.addresses):
        form.error("domains", say("Type domains here, or addresses below: one of the two."))
    return domains, mailboxes


def _note(context: RequestContext, refusal: InvalidRequest) -> None:
    """Adds to the form why a campaign was refused, beside its field."""
    if isinstance(refusal, service.TooManyCampaigns):
        context.form.error("name", context.say(_TOO_MANY, most=model.MOST_CAMPAIGNS))
    elif isinstance(refusal, model.CampaignFault) and refusal.field != "name":
        context.form.error(refusal.field, context.say(_CLOSES))  # the end passed after the form was checked
    else:
        context.form.error("name", context.say("Another campaign has this name."))


async def _rule(connection: Connection, context: RequestContext, campaign: Campaign) -> CampaignRule | None:
    """Returns the settings of a campaign; None if its gifts are reserved."""
    if await store.read_order(connection, campaign) is not None:
        return None
    content = await _draft(context, connection, campaign) or DraftContent()
    return await service.read_rule(connection, campaign, content)


def _values(context: RequestContext, rule: CampaignRule) -> dict[str, str]:
    """Returns what the fields of a rule show."""
    return {
        "name": rule.name,
        "template": str(rule.template_id or ""),
        "account": str(rule.account_id or ""),
        "gifts": str(rule.gifts or ""),
        "domains": ", ".join(rule.domains),
        "addresses": "\n".join(rule.mailboxes),
        "opens": rule.opens_at.astimezone(context.times_in).strftime(LOCAL),
        "closes": rule.closes_at.astimezone(context.times_in).strftime(DAY),
        "greeting": rule.greeting or "",
    }


async def _offered(context: RequestContext) -> dict[str, list[tuple[str, str]]]:
    """Returns the options of each field that is a list."""
    async with context.database.connection(context.person.scope) as connection:
        templates = await list_templates(connection, context.principal, offset=0, limit=MOST_TEMPLATES)
        accounts = await list_funding_accounts(connection, context.principal)
    return {
        "template": await offered_templates(context, templates, accounts),
        "account": [(str(one.id), f"{one.name} ({one.currency})") for one in accounts],
    }


async def _form(context: RequestContext, campaign: Campaign | None) -> Response:
    if campaign is None:
        now = await context.read(read_now)
        closes_at = now + model.LONGEST / 12
        rule = CampaignRule(name="", template_id=0, account_id=None, gifts=0, opens_at=now, closes_at=closes_at)
    else:
        found = await context.read(_rule, context, campaign)
        if found is None:
            return context.see(f"{HERE}/{campaign.id}", context.say(_RESERVED))
        rule = found
    return context.page(
        "campaign_form.html",
        now=_values(context, rule),
        campaign=campaign,
        offered=await _offered(context),
        zone=str(context.times_in),
        most_name=model.MOST_NAME,
    )
