"""An administrator's pages of service accounts, which programs act as: the list, and the page of one with its limits and accounts."""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.responses import Response

from largesse.base import clock
from largesse.base.errors import NotFound, OperatorError
from largesse.base.i18n.languages import text
from largesse.base.money import to_decimal
from largesse.customers import service_accounts
from largesse.customers.actor import Actor
from largesse.customers.customer_store import ServiceAccount, list_service_accounts
from largesse.customers.key_store import list_keys
from largesse.customers.restrictions import Limit
from largesse.db.pool import Connection
from largesse.ledger.accounts import assign_accounts
from largesse.ledger.statements import month_of
from largesse.ledger.store import Holder, list_assignable
from largesse.orders.reading import read_spent_today
from largesse.reports.filters import Added, GroupFilter, OrderFilter, add_up
from largesse.web.console.context import PageContext, RequestContext, typed_amount
from largesse.web.console.keys import NAMES as SCOPE_NAMES
from largesse.web.console.send.opening import person_as_caller


async def limit(context: RequestContext) -> Response:
    """Limits what a service account may order in a currency, from its next order on. Raises NotFound."""
    account = await _account(context)
    shown = shown_limits(context, account, context.form["currency"])
    context.form.keep_others(shown)
    if not await limit_as_typed(context, context.actor, account.id, shown):
        return await one(context)
    done = context.say("The limits of %(name)s were changed. They apply from its next order.", name=account.name)
    return context.see(f"/app/service-accounts/{account.id}", done)


async def limit_as_typed(
    context: PageContext, actor: Actor, account_id: int, shown: Mapping[str, str] = MappingProxyType({})
) -> bool:
    """Sets the typed limits of a service account. Returns whether it could; if not, the form has an error. Raises NotFound.

    Leaves limits that are typed as they are `shown`, so that what somebody else sets at the same moment stays.
    """
    form = context.form
    currency = form.text("currency", 3)
    typed = {
        f"{name}_minor": typed_amount(context, name, currency) if form[name].strip() else None
        for name in ("largest_order", "daily")
        if form[name] != shown.get(name)
    }
    if not form.errors:
        try:
            await service_accounts.limit_service_account(actor, account_id, currency, **typed)
        except OperatorError:
            form.error("currency", context.say("Choose one of the options."))
    return not form.errors


async def assign(context: RequestContext) -> Response:
    """Sets which funding accounts a service account may use. Raises NotFound."""
    account = await _account(context)
    await assign_to(context, Holder.SERVICE_ACCOUNT, account.id)
    done = context.say("The accounts that %(name)s can use have changed.", name=account.name)
    return context.see(f"/app/service-accounts/{account.id}", done)


async def assign_to(context: RequestContext, holder: Holder, holder_id: int) -> None:
    """Lets a holder use the accounts in the form, accounts that others assigned meanwhile, and accounts open to all. Raises NotFound."""
    if len(context.form.numbers("may_use")) < len(context.form.all("may_use")):
        raise NotFound("There is no such funding account.")
    now = await context.read(list_assignable, holder, context.customer, holder_id)
    assigned = [one.id for one in now if one.is_assigned]
    await assign_accounts(context.actor, holder, holder_id, context.form.numbers_and_others("may_use", assigned))


MOST_NAME = 100
_ON, _OFF = text("%(name)s is switched on."), text("%(name)s is switched off. Its keys are refused.")
_COLUMNS = (
    *(text("Name"), text("Key of the service account"), text("State"), text("API keys"), text("Orders this month")),
    *(text("Currency"), text("Largest order"), text("Per day (UTC)")),
)


async def show(context: RequestContext) -> Response:
    """Shows the service accounts, and the form that creates one."""
    accounts, orders = await _listed(context)
    return context.page("service_accounts.html", accounts=accounts, orders=orders)


async def download(context: RequestContext) -> Response:
    """Sends the service accounts as a CSV file, with a line for each currency that has limits."""
    accounts, orders = await _listed(context)
    states = {True: context.say("Active"), False: context.say("Switched off")}
    rows = [
        (one.name, one.key, states[one.active], one.api_keys, orders.get(one.id, 0), *limited)
        for one in accounts
        for limited in [_limited(*limit) for limit in one.limits.items()] or [(None, None, None)]
    ]
    return await context.csv("service-accounts.csv", [context.say(one) for one in _COLUMNS], rows)


async def create(context: RequestContext) -> Response:
    """Creates a service account."""
    name = context.form.text("name", MOST_NAME)
    if not context.form.errors:
        try:
            account_id, _ = await service_accounts.create_service_account(context.actor, name)
        except service_accounts.TooManyServiceAccounts:
            said = context.say(
                "Your company has reached its limit of %(most)s service accounts.",
                most=service_accounts.MOST_SERVICE_ACCOUNTS,
            )
            context.form.error("name", said)
        except service_accounts.NameTaken:
            context.form.error("name", context.say("Another service account has this name."))
        else:
            said = context.say("%(name)s was created. Choose which accounts it may use, and create a key.", name=name)
            return context.see(f"/app/service-accounts/{account_id}", said)
    return await show(context)


async def one(context: RequestContext) -> Response:
    """Shows a service account: its keys, its limits, the accounts it may use, its orders this month. Raises NotFound."""
    person = context.person
    async with context.database.connection(person.scope) as connection:
        account = await _find_account(connection, context)
        keys = [
            key
            for key in await list_keys(connection, customer_id=person.customer_id)
            if (key.service_account, key.environment) == (account.key, person.environment)
        ]
        accounts = await list_assignable(connection, Holder.SERVICE_ACCOUNT, context.customer, account.id)
        spent = await read_spent_today(connection, person.customer_id, account.id, person.environment)
        month = await _this_month(context, connection, account.id)
    chosen = context.query("currency") if context.query("currency") in account.limits else ""
    # Limits of a currency are only changed in a form that shows them. Otherwise an empty field would remove a limit unseen.
    others = dict.fromkeys([*(one.currency for one in accounts), *sorted(await _sold_in(context))])
    return context.page(
        "service_account.html",
        account=account,
        keys=keys,
        scope_names=SCOPE_NAMES,
        accounts=accounts,
        spent=spent,
        month=month,
        currencies=[
            (one, one) for one in ([chosen] if chosen else others) if one == chosen or one not in account.limits
        ],
        chosen=chosen,
        shown=shown_limits(context, account, chosen),
    )


def shown_limits(context: PageContext, account: ServiceAccount, currency: str) -> dict[str, str]:
    """Returns what the fields of the limits in a currency show."""
    limit = account.limits.get(currency, Limit())
    limits = {"largest_order": limit.largest_order_minor, "daily": limit.daily_minor}
    return {name: "" if minor is None else context.language.typed(minor, currency) for name, minor in limits.items()}


async def switch(context: RequestContext) -> Response:
    """Switches a service account on or off. Raises NotFound."""
    said = await switch_as_chosen(context, context.actor)
    return context.see(f"/app/service-accounts/{context.number('account')}", said)


async def switch_as_chosen(context: PageContext, actor: Actor) -> str:
    """Switches the service account of the path on or off as the form says, and returns what to say. Raises NotFound."""
    active = context.form["active"] == "yes"
    name = await service_accounts.switch_service_account(actor, context.number("account"), active=active)
    return context.say(_ON if active else _OFF, name=name)


async def _account(context: RequestContext) -> ServiceAccount:
    return await context.read(_find_account, context)


async def _find_account(connection: Connection, context: RequestContext) -> ServiceAccount:
    """Returns the service account of the path. Raises NotFound, also for another customer's."""
    accounts = await list_service_accounts(connection, *context.customer)
    found = next((account for account in accounts if account.id == context.number("account")), None)
    if found is None:
        raise NotFound("There is no such service account.")
    return found


async def _listed(context: RequestContext) -> tuple[list[ServiceAccount], dict[int, int]]:
    """Returns the service accounts, and how many orders each has placed this month."""
    async with context.database.connection(context.person.scope) as connection:
        accounts = await list_service_accounts(connection, *context.customer)
        month = await _this_month(context, connection)
    orders: dict[int, int] = {}
    for added in month:
        orders[added.key] = orders.get(added.key, 0) + added.sums.orders
    return accounts, orders


def _limited(currency: str, limit: Limit) -> tuple[object, ...]:
    amounts = (limit.largest_order_minor, limit.daily_minor)
    return (currency, *(None if minor is None else to_decimal(minor, currency) for minor in amounts))


async def _this_month(context: RequestContext, connection: Connection, account_id: int | None = None) -> list[Added]:
    """Returns the sums of this month's orders, of each service account or of one."""
    since, _ = month_of(clock.now())
    wanted = OrderFilter(
        customer_id=context.person.customer_id,
        environment=context.person.environment,
        group=GroupFilter(service_account_id=account_id),
        since=since.date(),
    )
    return await add_up(connection, wanted, by="service_account")


async def _sold_in(context: RequestContext) -> set[str]:
    """Returns the currencies in which gifts can be ordered."""
    customer_id, caller = context.person.customer_id, await person_as_caller(context)
    snapshot = await context.services.catalogue.at(caller.catalogue_version)
    return {
        currency
        for country in snapshot.countries(customer_id)
        for currency in snapshot.currencies(customer_id, country)
    }
