"""Budgets: what may be spent and what is left. Administrators set, change and end them. Others see their own budgets, or all."""

from datetime import datetime

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.budgets import service
from largesse.budgets.model import PERIODS, ROLES, Budget, period_end
from largesse.budgets.store import list_budgets, subject_names
from largesse.customers.customer_store import list_currencies, list_service_accounts
from largesse.customers.members import Member, list_members
from largesse.customers.principal import SENDERS
from largesse.customers.roles import Reach, Right
from largesse.db.pool import Connection
from largesse.db.statements import read_now
from largesse.ledger.store import list_funding_accounts, list_seen_accounts
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.words import Names

MOST_FIELDS = service.MOST_PEOPLE + 20
_PERIODS = Names({"month": text("A month"), "quarter": text("A quarter"), "total": text("In all")})
_ROLES = Names({"member": text("All members together"), "admin": text("All administrators together")})
_GROUP = "group"


class SeenBudget(msgspec.Struct, frozen=True):
    """A budget as pages show it."""

    budget: Budget
    of: str
    until: str | None  # the day on which its next period starts; None if the budget has no periods


async def show(context: RequestContext) -> Response:
    """Shows the budgets that the person may see, and to administrators the form that sets one."""
    person, may_set = context.person, context.person.may(Right.SETTINGS)
    async with context.database.connection(person.list_scope) as connection:
        budgets = await _listed(context, connection)
        people = await list_members(connection, person.customer_id) if may_set else []
        subjects = await _subjects(context, connection, people) if may_set else {}
        currencies = await list_currencies(connection, person.customer_id) if may_set else []
        accounts = await list_seen_accounts(connection, context.customer, user_id=None)
    return context.page(
        "budgets.html",
        budgets=budgets,
        may_set=may_set,
        subjects=list(subjects.items()),
        currencies=[(one, one) for one in currencies],
        currency=next((one.currency for one in accounts), ""),
        periods=[(one, context.say(said)) for one, said in _PERIODS.items()],
        people=_boxes(people),
        chosen=context.form.all("who"),
        most_name=service.MOST_NAME,
    )


async def create(context: RequestContext) -> Response:
    """Sets a budget."""
    form, person = context.form, context.person
    name = form.text("name", service.MOST_NAME)
    async with context.database.connection(person.scope) as connection:
        currencies = await list_currencies(connection, person.customer_id)
        subjects = await _subjects(context, connection, await list_members(connection, person.customer_id))
    of = form.choice("of", subjects)
    period, currency = form.choice("period", PERIODS), form.choice("currency", currencies)
    people = form.numbers("who") if of == _GROUP else []
    if of == _GROUP and not people:
        form.error("who", context.say("Choose at least one of the options."))
    limit_minor, per_gift_minor = _amounts(context, currency if currency in currencies else "GBP")
    if form.errors:
        return await show(context)
    kind, _, subject = of.partition("-")
    new = service.NewBudget(
        name=name,
        currency=currency,
        kind=kind,
        period=period,
        subject_id=int(subject) if subject.isdecimal() else None,
        role=subject if kind == "role" else None,
        user_ids=people,
        limit_minor=limit_minor,
        per_gift_minor=per_gift_minor,
    )
    try:
        await service.create_budget(context.actor, new)
    except (InvalidRequest, NotFound) as refusal:
        _note(context, refusal, currency)
        return await show(context)
    said = context.say("The budget %(name)s was set. It applies from the next order.", name=name)
    return context.see("/app/budgets", said)


async def one(context: RequestContext) -> Response:
    """Shows a budget with the form that changes it. Raises NotFound."""
    found = await _find(context)
    people = await context.read(list_members, context.person.customer_id)
    budget = found.budget
    return context.page(
        "budget.html",
        one=found,
        period=context.say(_PERIODS[budget.period]),
        people=_boxes(people) if budget.kind == _GROUP else [],
        chosen=context.form.all("who") if context.form.errors else [str(one) for one in budget.user_ids],
        shown={**_shown(context, budget), "who": " ".join(map(str, budget.user_ids))},
        most_name=service.MOST_NAME,
    )


async def change(context: RequestContext) -> Response:
    """Changes a budget. Raises NotFound."""
    form, budget = context.form, (await _find(context)).budget
    form.keep_others(_shown(context, budget))
    name = form.text("name", service.MOST_NAME)
    limit_minor, per_gift_minor = _amounts(context, budget.currency)
    people = form.numbers_and_others("who", budget.user_ids)
    if budget.kind == _GROUP and not people:
        form.error("who", context.say("Choose at least one of the options."))
    if form.errors:
        return await one(context)
    try:
        # Only what differs, so that what somebody else changes at the same moment stays.
        await service.change_budget(
            context.actor,
            budget.id,
            name=None if name == budget.name else name,
            limit_minor=... if limit_minor == budget.limit_minor else limit_minor,
            per_gift_minor=... if per_gift_minor == budget.per_gift_minor else per_gift_minor,
            user_ids=None if budget.kind != _GROUP or set(people) == budget.user_ids else people,
        )
    except InvalidRequest as refusal:
        _note(context, refusal, budget.currency)
        return await one(context)
    said = context.say("The budget %(name)s was changed. It applies from the next order.", name=name)
    return context.see("/app/budgets", said)


def _shown(context: RequestContext, budget: Budget) -> dict[str, str]:
    """Returns what the fields of a budget show."""
    limits = {"limit": budget.limit_minor, "per_gift": budget.per_gift_minor}
    typed = {
        name: "" if minor is None else context.language.typed(minor, budget.currency) for name, minor in limits.items()
    }
    return {"name": budget.name, **typed}


async def ask_end(context: RequestContext) -> Response:
    """Asks whether to end a budget. Raises NotFound."""
    return context.page("end_budget.html", one=await _find(context))


async def end(context: RequestContext) -> Response:
    """Ends a budget. Raises NotFound."""
    name = await service.end_budget(context.actor, context.number("budget"))
    return context.see("/app/budgets", context.say("The budget %(name)s has ended.", name=name))


async def own_budgets(context: RequestContext, connection: Connection) -> list[SeenBudget]:
    """Returns the budgets that limit what the person sends from any account; none if the person may not send."""
    if context.person.role not in SENDERS:
        return []
    now = await read_now(connection)
    found = await list_budgets(connection, context.customer, now)
    own = [one for one in found if one.is_of(context.person.user_id, context.person.role)]
    return await _seen(context, connection, own, now)


async def _listed(context: RequestContext, connection: Connection) -> list[SeenBudget]:
    """Returns the budgets that the person may see."""
    now = await read_now(connection)
    found = await list_budgets(connection, context.customer, now)
    if context.person.reach(Right.SEE_BUDGETS) is Reach.OWN:
        own = {account.id for account in await list_funding_accounts(connection, context.principal)}
        found = [budget for budget in found if budget.is_of(context.person.user_id, context.person.role, own)]
    return await _seen(context, connection, found, now)


async def _seen(
    context: RequestContext, connection: Connection, budgets: list[Budget], now: datetime
) -> list[SeenBudget]:
    names, day = await subject_names(connection, budgets), context.language.short_day
    ends = [period_end(one.period, now) for one in budgets]
    return [
        SeenBudget(one, _of(context, one, names), None if end is None else day(end))
        for one, end in zip(budgets, ends, strict=True)
    ]


def _of(context: RequestContext, budget: Budget, names: dict[tuple[str, int], str]) -> str:
    if budget.kind == "role":
        return context.say(_ROLES[budget.role or "member"])
    if budget.kind == _GROUP:
        people = sorted((names.get(("person", one), "") for one in budget.user_ids), key=str.lower)
        shown = ", ".join(filter(None, people[:3]))
        more = len(people) - 3
        return context.say("%(names)s and %(count)s more", names=shown, count=more) if more > 0 else shown
    return names.get((budget.kind, budget.subject_id or 0), "\N{EN DASH}")


async def _find(context: RequestContext) -> SeenBudget:
    """Returns the budget of the address. Raises NotFound."""
    budget_id = context.number("budget")
    async with context.database.connection(context.person.scope) as connection:
        found = next((one for one in await _listed(context, connection) if one.budget.id == budget_id), None)
    if found is None:
        raise NotFound("There is no such budget.")
    return found


async def _subjects(context: RequestContext, connection: Connection, members: list[Member]) -> dict[str, str]:
    """Returns the people, roles and accounts that a budget can limit, by the value of the form's field."""
    offered = {f"role-{role}": context.say(_ROLES[role]) for role in ROLES}
    offered[_GROUP] = context.say("Some people together: tick them below")
    offered |= {f"person-{id_}": context.say("Person: %(name)s", name=name) for id_, name, _ in _boxes(members)}
    for account in await list_service_accounts(connection, context.person.customer_id):
        offered[f"service_account-{account.id}"] = context.say("Service account: %(name)s", name=account.name)
    for funding in await list_seen_accounts(connection, context.customer, user_id=None):
        if not funding.is_closed:
            name = f"{funding.name} ({funding.currency})"
            offered[f"account-{funding.id}"] = context.say("Account: %(name)s", name=name)
    return offered


def _boxes(members: list[Member]) -> list[tuple[int, str, str]]:
    """Returns the people who send, each with id, name and address."""
    return [(one.id, one.name, one.email) for one in members if one.is_active and one.role in SENDERS]


def _amounts(context: RequestContext, currency: str) -> tuple[int | None, int | None]:
    """Returns the limit and the most that a gift may cost, in minor units. Adds errors to the form."""
    typed = ("limit", "per_gift")
    sums = [typed_amount(context, name, currency) if context.form[name].strip() else None for name in typed]
    if sums == [None, None]:
        context.form.error("limit", context.say("Type a sum, or the most that a gift may cost."))
    return sums[0], sums[1]


def _note(context: RequestContext, refusal: InvalidRequest | NotFound, currency: str) -> None:
    """Adds to the form why a budget was refused, beside its field."""
    match refusal:
        case service.BelowSpent():
            spent = context.language.amount(refusal.spent_minor, currency)
            said = context.say(
                "%(spent)s has been spent in this period. Type at least that: then nothing more can be.", spent=spent
            )
            context.form.error("limit", said)
        case service.BudgetNameTaken():
            context.form.error("name", context.say("Another budget has this name."))
        case service.TooManyBudgets():
            said = context.say("Your company has %(most)s budgets. End one first.", most=service.MOST_BUDGETS)
            context.form.error("name", said)
        case NotFound():
            said = context.say("Choose one from the list, and an account in the currency of the budget.")
            context.form.error("of", said)
        case _:
            context.form.error("name", context.say("Choose one of the options."))
