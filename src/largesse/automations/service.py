"""Operations on automations: creating, changing, approving, pausing and ending them, and skipping single days.

An automation sends as the person who last changed it, with their rights. Changing it, or what its template sends, ends its
approval.
"""

import hashlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, timedelta
from functools import cache
from typing import Any

from babel.core import get_global

from largesse.approvals.store import forget_decisions
from largesse.automations import model, run_store, store
from largesse.base.errors import ApprovalRequired, HasEnded, InvalidRequest, NotFound, Problem, existing
from largesse.base.settings import ENVIRONMENTS
from largesse.base.zones import known_zones
from largesse.customers.access import AccessChanged
from largesse.customers.actor import Actor, Transaction, require_same
from largesse.customers.customer_store import lock_customer
from largesse.customers.principal import ADMIN
from largesse.customers.roles import Right
from largesse.db.pool import Connection, Database, Row, act_for
from largesse.db.scope import for_customers
from largesse.jobs.outbox import mail_automation
from largesse.ledger.payment_sources import FromAccount, is_fitting, payment_source
from largesse.ledger.store import list_funding_accounts
from largesse.templates import service as templates
from largesse.templates.store import Template, TemplateContent, lock_template

MOST_LISTED = 500  # gifts in a preview
_SOON_DAYS = (6, 20)  # the days that a preview reads first
# The time zone with most people in a country, where the CLDR lists another first, such as the zone of the Aleutian Islands.
MAIN_ZONES = {
    "AU": "Australia/Sydney",
    "CA": "America/Toronto",
    "CD": "Africa/Kinshasa",
    "CL": "America/Santiago",
    "EC": "America/Guayaquil",
    "GL": "America/Nuuk",
    "ID": "Asia/Jakarta",
    "KI": "Pacific/Tarawa",
    "MN": "Asia/Ulaanbaatar",
    "PF": "Pacific/Tahiti",
    "RU": "Europe/Moscow",
    "US": "America/New_York",
}


class TooManyAutomations(
    InvalidRequest, rule=f"A customer has at most {model.MOST_AUTOMATIONS} automations in an environment."
):
    """The customer has as many automations as it may."""


class AutomationFault(InvalidRequest):
    """A field of an automation is wrong: `field` is its name."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"`{field}` {detail}")
        self.field = field


class OwnAutomation(InvalidRequest, rule="Nobody approves their own automation."):
    """The person would approve their own automation."""


class CostsMore(InvalidRequest):
    """A gift costs more than when its automation was approved."""


class AutomationChanged(InvalidRequest, rule="The automation was changed meanwhile."):
    """The automation, or what its template sends, was changed after the person saw it."""


@cache
def country_zones() -> Sequence[tuple[str, str]]:
    """Returns a time zone for each country: the one with most people, or the first one in the CLDR that this machine knows."""
    zones = {}
    for country, names in get_global("territory_zones").items():
        zones[country] = next(filter(is_zone, (MAIN_ZONES.get(country, ""), *names)), None)
    return tuple((country, zone) for country, zone in zones.items() if zone is not None)


def is_zone(name: str) -> bool:
    """Returns whether `name` is a time zone."""
    return name in known_zones() and ("/" in name or name == "UTC")


async def create_automation(actor: Actor, rule: model.AutomationRule) -> int:
    """Creates an automation and returns its id. Raises AutomationFault for a fault of the rule, and TooManyAutomations."""
    async with actor.transaction(Right.CONTACTS) as transaction:
        connection = transaction.connection
        await lock_customer(connection, actor.customer_id)
        if await connection.fetchval(store.COUNT, *actor.place) >= model.MOST_AUTOMATIONS:
            raise TooManyAutomations
        await _check(connection, actor, rule, None)
        assert actor.user_id is not None, "a person sets it"
        automation_id = await store.insert_automation(connection, actor.place, actor.user_id, rule)
        await _ask_approval(connection, actor, automation_id, rule)
        await transaction.record("automation.created", _subject(automation_id), after=_facts(rule))
    return automation_id


async def change_automation(
    actor: Actor, automation_id: int, rule: model.AutomationRule, seen: model.Automation | None = None
) -> None:
    """Changes an automation, which belongs to the actor from then on. Raises NotFound, and AutomationFault for a fault of the rule.

    An unchanged rule, saved by its own person, keeps its approval. Raises ReadAgain if the rule has changed since `seen` was read.
    """
    async with actor.transaction(Right.CONTACTS) as transaction:
        connection = transaction.connection
        await lock_customer(connection, actor.customer_id)
        before = await _locked(transaction, automation_id)
        require_same(seen and _rule_of(seen), _rule_of(before))
        await _check(connection, actor, rule, automation_id)
        if before.user_id == actor.user_id and _rule_of(before) == _rule_of(rule):
            return
        assert actor.user_id is not None, "a person sets it"
        await store.change_automation(connection, before, actor.user_id, rule)
        await _ask_approval(connection, actor, automation_id, rule)
        await transaction.record(
            "automation.changed", _subject(automation_id), before=_facts(before), after=_facts(rule)
        )


async def _ask_approval(connection: Connection, actor: Actor, automation_id: int, rule: model.AutomationRule) -> None:
    """Mails the approvers of the automation if it needs approval."""
    assert actor.user_id is not None, "a person sets it"
    if rule.asks_approval:
        approvers = await store.list_approvers(connection, actor.customer_id, actor.user_id)
        await mail_automation(connection, approvers, automation_id)


def seen_of(automation: model.Automation, template: Template | None, unit_cost_minor: int) -> str:
    """Returns a hash of what an approver sees of an automation: its rule, its person, what its template sends, and what a gift costs."""
    seen = (_rule_of(automation), automation.user_id, template, unit_cost_minor)
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:32]


def _rule_of(automation: model.Automation | model.AutomationRule) -> dict[str, object]:
    return {name: getattr(automation, name) for name in model.AutomationRule.__struct_fields__}


async def approve_automation(actor: Actor, automation_id: int, seen: str, unit_cost_minor: int) -> None:
    """Approves an automation that needs it, as long as a gift costs no more than `unit_cost_minor`. `seen` is the `seen_of` of what the person saw.

    Raises NotFound, OwnAutomation, AutomationChanged, and AccessChanged if the person is not an administrator.
    """
    async with actor.transaction(Right.CONTACTS) as transaction:
        automation = await _locked(transaction, automation_id)
        if automation.user_id == actor.user_id:
            raise OwnAutomation
        if actor.role != ADMIN or actor.user_id is None:
            raise AccessChanged
        template = await lock_template(transaction.connection, actor.customer_id, automation.template_id)
        if seen_of(automation, template, unit_cost_minor) != seen:
            raise AutomationChanged
        if automation.state == "asks":
            await store.approve_automation(transaction.connection, automation, actor.user_id, unit_cost_minor)
            await transaction.record("automation.approved", _subject(automation_id), after={"name": automation.name})


@asynccontextmanager
async def ending_approvals(connection: Connection, customer_ids: Collection[int]) -> AsyncIterator[None]:
    """Ends the approvals of automations whose templates the block changes, and asks for new approvals by mail.

    It locks the automations first. An approval locks them too before it reads the template.
    """
    if not await connection.fetch(run_store.LOCK_AUTOMATIONS, list(customer_ids)):
        yield
        return
    approved = await run_store.read_approved(connection, customer_ids)
    yield
    unchanged = {row["id"]: row["sent"] for row in await run_store.read_approved(connection, customer_ids)}
    for row in approved:
        if unchanged.get(row["id"]) != row["sent"]:
            await _end_approval(connection, row["customer_id"], row["id"], row["user_id"], keeps_price=False)


async def _end_approval(
    connection: Connection, customer_id: int, automation_id: int, user_id: int, *, keeps_price: bool
) -> None:
    """Ends the approval of an automation, and asks for a new one by mail."""
    await run_store.end_approval(connection, customer_id, automation_id, keeps_price=keeps_price)
    approvers = await store.list_approvers(connection, customer_id, user_id)
    await mail_automation(connection, approvers, automation_id)


async def ask_again(connection: Connection, seen: model.Automation, why: Problem) -> bool:
    """Ends the approval of an automation if that is why its gift was refused, and asks for a new one. Returns whether it waits for approval.

    An approval is for a price. For approval rules, it counts as long as its approver is an administrator.
    """
    automation = await store.lock_automation(connection, (seen.customer_id, seen.environment), seen.id)
    if automation is None or not automation.asks_approval or not isinstance(why, CostsMore | ApprovalRequired):
        return False
    if automation.approved_by is not None:
        if (automation.approved_by, automation.approved_minor) != (seen.approved_by, seen.approved_minor):
            return False  # somebody approved it again meanwhile
        approvers = await store.list_approvers(connection, seen.customer_id, automation.user_id)
        if isinstance(why, ApprovalRequired) and automation.approved_by in approvers:
            return False  # another approval of it would not help
        await _end_approval(connection, seen.customer_id, seen.id, automation.user_id, keeps_price=True)
    return True


async def list_in_both(database: Database, customer_id: int) -> list[model.Automation]:
    """Returns the automations of a customer in both environments. People and templates belong to both."""
    places = [(customer_id, environment) for environment in ENVIRONMENTS]
    async with database.connection(for_customers(places)) as connection:
        return [one for place in places for one in await store.list_automations(connection, place)]


@asynccontextmanager
async def _ending_approvals(transaction: Transaction) -> AsyncIterator[None]:
    """Ends approvals of the actor's customer as `ending_approvals` does, in both environments, as a template belongs to both."""
    connection, customer_id = transaction.connection, transaction.actor.customer_id
    await act_for(connection, for_customers((customer_id, environment) for environment in ENVIRONMENTS))
    async with ending_approvals(connection, [customer_id]):
        yield


async def change_template(
    actor: Actor, template_id: int, content: TemplateContent, seen: Template | None = None
) -> None:
    """Changes a template, and ends the approvals of automations that send it. Raises NotFound, and ReadAgain if it is not `seen` any more."""
    await templates.change_template(actor, template_id, content, _ending_approvals, seen)


async def pause_automation(actor: Actor, automation_id: int, *, paused: bool) -> None:
    """Pauses an automation, or resumes it. Days that pass meanwhile are skipped. Raises NotFound."""
    async with actor.transaction(Right.CONTACTS) as transaction:
        automation = await _locked(transaction, automation_id)
        if (automation.paused_at is not None) != paused:
            await store.pause_automation(transaction.connection, automation, paused=paused)
            act = "automation.paused" if paused else "automation.resumed"
            await transaction.record(act, _subject(automation_id), after={"name": automation.name})


async def start_over(transaction: Transaction, user_id: int) -> None:
    """Keeps a removed person who is invited again from acting as before: pauses their automations, and forgets what they approved of sends that wait."""
    connection, customer_id = transaction.connection, transaction.actor.customer_id
    if transaction.actor.person is not None:  # who acts in one environment
        await act_for(connection, for_customers((customer_id, environment) for environment in ENVIRONMENTS))
    await forget_decisions(connection, customer_id, user_id)
    for row in await store.pause_automations_of(connection, customer_id, user_id):
        here = transaction.on_behalf_of(customer_id, row["environment"])
        await here.record("automation.paused", _subject(row["id"]), after={"name": row["name"]})


async def end_automation(actor: Actor, automation_id: int) -> None:
    """Ends an automation for good. Raises NotFound."""
    async with actor.transaction(Right.CONTACTS) as transaction:
        automation = await _locked(transaction, automation_id)
        await store.end_automation(transaction.connection, automation)
        await transaction.record("automation.ended", _subject(automation_id), before={"name": automation.name})


async def skip_day(actor: Actor, automation_id: int, contact_id: int, on_day: date, *, skipped: bool) -> bool:
    """Skips the gift of a contact for a day, or undoes it. Returns False if it is too late. Raises NotFound."""
    async with actor.transaction(Right.CONTACTS) as transaction:
        connection = transaction.connection
        automation = await _locked(transaction, automation_id)
        contact = await run_store.read_contact(
            connection, model.RunKey(automation.customer_id, automation_id, contact_id, on_day), automation.group_id
        )
        if contact is None or not model.has_day(automation, contact[2], on_day):
            raise NotFound("The contact has no such day.")
        if skipped:
            done = await store.skip_day(
                connection, automation, contact_id, on_day, model.send_day(on_day, automation.weekend)
            )
        else:
            done = await store.unskip_day(connection, automation, contact_id, on_day)
        if done:
            act = "automation.skipped" if skipped else "automation.unskipped"
            await transaction.record(
                act, _subject(automation_id), after={"contact": contact_id, "day": on_day.isoformat()}
            )
    return done


async def preview(
    connection: Connection, automation: model.Automation, *, days: int = model.PREVIEW_DAYS
) -> list[Mapping[str, Any]]:
    """Returns the gifts of the next days: contact, day, when each is sent, and its decision if there is one."""
    today = await store.read_today(connection, automation)
    rows: list[Row] = []
    for ahead in (*_SOON_DAYS, days):  # a customer with many contacts has enough gifts soon
        last = today + timedelta(days=ahead)
        rows = await run_store.preview_days(
            connection, country_zones(), automation, first=today, last=last, limit=MOST_LISTED
        )
        # The gift of a Sunday may be sent on the Friday.
        if len(rows) == MOST_LISTED and rows[-1]["send_on"] <= last - timedelta(days=2):
            break
    contacts = [row["contact_id"] for row in rows]
    given = await run_store.find_given(connection, automation.customer_id, automation.id, contacts)
    return [
        {**row, "state": model.SKIPPED, "reason": model.AGAIN}
        if row["state"] == model.WAITING and model.is_again(row["on_day"], given.get(row["contact_id"], ()))
        else dict(row)
        for row in rows
    ]


async def list_twins(connection: Connection, automation: model.Automation) -> list[model.Automation]:
    """Returns the other automations that send contacts of this one a gift for the same day. Those that are paused send none."""
    if automation.ended_at or automation.paused_at:
        return []
    others = await store.list_automations(connection, (automation.customer_id, automation.environment))
    others = [
        one for one in others if one.id != automation.id and not one.paused_at and model.gives_twice(automation, one)
    ]
    groups = {one.group_id for one in others if one.group_id} - {automation.group_id}
    if automation.group_id is None or not groups:
        return others
    shared = await store.list_sharing(connection, automation.customer_id, automation.group_id, [*groups])
    return [one for one in others if one.group_id in {None, automation.group_id, *shared}]


async def next_days(connection: Connection, automations: Sequence[model.Automation]) -> dict[int, date]:
    """Returns when each automation sends its next gift, as in its preview. Leaves out those that are paused or have none."""
    if not (ids := [one.id for one in automations if one.paused_at is None]):
        return {}
    customer_id = automations[0].customer_id
    return await run_store.find_next_days(connection, country_zones(), customer_id, ids, model.PREVIEW_DAYS)


async def _locked(transaction: Transaction, automation_id: int) -> model.Automation:
    found = await store.lock_automation(transaction.connection, transaction.actor.place, automation_id)
    automation = existing(found, "There is no such automation.")
    if automation.ended_at is not None:
        raise HasEnded("The automation has ended.")
    return automation


async def _check(connection: Connection, actor: Actor, rule: model.AutomationRule, automation_id: int | None) -> None:
    """Raises AutomationFault for the first field of a rule that is wrong."""
    _check_values(rule)
    if await store.is_named(connection, actor.place, rule.name, automation_id):
        raise AutomationFault("name", "is the name of another automation.")
    has_template, has_group = await store.find_parts(connection, actor.place, rule)
    if not has_template:
        raise AutomationFault("template", "is not a template of this customer.")
    if not has_group:
        raise AutomationFault("group", "is not a group of this customer.")
    assert actor.user_id is not None, "a person sets it"
    if rule.asks_approval and not await store.list_approvers(connection, actor.customer_id, actor.user_id):
        raise AutomationFault("asks_approval", "needs another administrator, and there is none.")
    principal = actor.principal
    source = payment_source(rule.account_id)
    if not is_fitting(source, principal.funding):
        raise AutomationFault(
            "account", "must name an account to pay from, and must be left out if the customer is invoiced."
        )
    if isinstance(source, FromAccount):
        accounts = await list_funding_accounts(connection, principal)
        if source.account_id not in {account.id for account in accounts}:
            raise AutomationFault("account", "is not an account that this person may use.")


def _check_values(rule: model.AutomationRule) -> None:
    is_joined = rule.occasion == model.JOINED
    years = all(1 <= year <= model.LAST_YEAR for year in rule.years) and len(rule.years) <= model.MOST_YEARS
    for field, is_right, detail in (
        ("name", 0 < len(rule.name) <= model.MOST_NAME, f"must have 1 to {model.MOST_NAME} characters."),
        ("occasion", rule.occasion in model.OCCASIONS, f"must be one of {', '.join(model.OCCASIONS)}."),
        ("group", rule.group_id is not None or not is_joined, "must name the group that contacts join."),
        ("days", rule.days is None or is_joined, "is for contacts who join a group."),
        (
            "days",
            not is_joined or 0 <= (-1 if rule.days is None else rule.days) <= model.MOST_DAYS,
            f"must be 0 to {model.MOST_DAYS:,}.",
        ),
        ("years", not rule.years or rule.occasion == model.ANNIVERSARY, "is for anniversaries."),
        ("years", years, f"must be at most {model.MOST_YEARS} numbers from 1 to {model.LAST_YEAR}."),
        ("leap_day", rule.leap_day in model.LEAP_DAYS, f"must be one of {', '.join(model.LEAP_DAYS)}."),
        ("weekend", rule.weekend in model.WEEKENDS, f"must be one of {', '.join(model.WEEKENDS)}."),
        ("cap", rule.cap is None or 1 <= rule.cap <= model.MOST_CAP, f"must be 1 to {model.MOST_CAP:,}."),
        ("zone", is_zone(rule.zone), "must be a time zone such as Europe/London."),
    ):
        if not is_right:
            raise AutomationFault(field, detail)


def _facts(rule: model.AutomationRule) -> Mapping[str, Any]:
    """Returns a rule for the audit log."""
    facts = {name: getattr(rule, name) for name in model.AutomationRule.__struct_fields__}
    return {name: value for name, value in facts.items() if value is not None}


def _subject(automation_id: int) -> str:
    return f"automation {automation_id}"
