"""An administrator's pages of service accounts, which programs act as: the list, and one with what it may do."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base import clock
from largesse.base.errors import NotFound
from largesse.base.money import to_decimal
from largesse.database.pool import Connection
from largesse.funding.assigning import Holder, list_assignable
from largesse.funding.statements import month_of
from largesse.identity.key_records import list_keys
from largesse.identity.narrowing import Limit
from largesse.identity.service_accounts import (
    ServiceAccount,
    TooManyServiceAccounts,
    add_service_account,
    list_service_accounts,
    switch_service_account,
)
from largesse.orders.spending import read_spent_today
from largesse.reports.filters import GroupFilter, OrderFilter
from largesse.reports.summing import Added, add_up
from largesse.web.console.visit import Visit

_MOST_NAME = 100
# An amount that is typed has no more characters than this.


async def show(visit: Visit) -> Response:
    """The service accounts, and the form that makes one."""
    return await _shown(visit)


async def download(visit: Visit) -> Response:
    """The same service accounts as a file, with a line for each currency in which one is limited."""
    accounts, orders = await _listed(visit)
    columns = (
        "name",
        "key",
        "active",
        "API keys",
        "orders this month",
        "currency",
        "largest order",
        "in a day",
    )
    rows = [
        (one.name, one.key, "yes" if one.active else "no", one.api_keys, orders.get(one.id, 0), *limited)
        for one in accounts
        for limited in [_limited(*limit) for limit in one.limits.items()] or [(None, None, None)]
    ]
    return await visit.csv("service-accounts.csv", columns, rows)


async def create(visit: Visit) -> Response:
    """Makes a service account."""
    name = visit.form.text("name", _MOST_NAME)
    if visit.form.errors:
        return await _shown(visit, status=422)
    try:
        async with visit.writing() as connection:
            account_id, key = await add_service_account(connection, visit.person.customer_id, name)
            await visit.record(
                connection,
                "service_account.created",
                f"service account {account_id}",
                after={"name": name, "key": key},
            )
    except TooManyServiceAccounts:
        visit.form.error("name", visit.say("Your company has as many service accounts as it can."))
        return await _shown(visit, status=422)
    said = visit.say("%(name)s was made. Say which accounts it may use, and give it a key.", name=name)
    return visit.see(f"/app/service-accounts/{account_id}", said)


async def one(visit: Visit) -> Response:
    """A service account: its keys, what it may order, the accounts it may use, its orders this month. Raises NotFound."""
    return await one_shown(visit)


async def switch(visit: Visit) -> Response:
    """Switches a service account on or off. Raises NotFound."""
    account_id, active = visit.number("account"), visit.form["active"] == "yes"
    async with visit.writing() as connection:
        name = await switch_service_account(connection, visit.person.customer_id, account_id, active=active)
        await visit.record(
            connection,
            "service_account.switched",
            f"service account {account_id}",
            after={"name": name, "active": active},
        )
    said = (
        visit.say("%(name)s is switched on.", name=name)
        if active
        else visit.say("%(name)s is switched off: its keys are refused.", name=name)
    )
    return visit.see(f"/app/service-accounts/{account_id}", said)


async def find_account(connection: Connection, visit: Visit) -> ServiceAccount:
    """The one of the address. Raises NotFound for another customer's."""
    person = visit.person
    accounts = await list_service_accounts(connection, person.customer_id, person.environment)
    found = next((account for account in accounts if account.id == visit.number("account")), None)
    if found is None:
        raise NotFound("There is no such service account.")
    return found


async def one_shown(visit: Visit, *, status: int = 200) -> Response:
    """The page of the service account of the address. Raises NotFound."""
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        account = await find_account(connection, visit)
        keys = [
            key
            for key in await list_keys(connection, customer_id=person.customer_id)
            if (key.service_account, key.environment) == (account.key, person.environment)
        ]
        accounts = await list_assignable(
            connection, Holder.SERVICE_ACCOUNT, person.customer_id, person.environment, account.id
        )
        spent = await read_spent_today(connection, person.customer_id, account.id, person.environment)
        month = await _this_month(visit, connection, account.id)
    chosen = visit.query("currency") if visit.query("currency") in account.limits else ""
    # Of one that is limited already both amounts are changed, so that none is lost by leaving it out.
    others = dict.fromkeys([*(one.currency for one in accounts), *sorted(await _sold_in(visit))])
    return visit.page(
        "service_account.html",
        status=status,
        account=account,
        keys=keys,
        accounts=accounts,
        spent=spent,
        month=month,
        currencies=[
            (one, one)
            for one in ([chosen] if chosen else others)
            if one == chosen or one not in account.limits
        ],
        chosen=chosen,
        limit=account.limits.get(chosen, Limit()),
        typed=lambda minor: "" if minor is None else visit.language.typed(minor, chosen),
    )


async def _shown(visit: Visit, *, status: int = 200) -> Response:
    accounts, orders = await _listed(visit)
    return visit.page("service_accounts.html", status=status, accounts=accounts, orders=orders)


async def _listed(visit: Visit) -> tuple[list[ServiceAccount], dict[int, int]]:
    """The service accounts, and how many orders each has placed this month."""
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        accounts = await list_service_accounts(connection, person.customer_id, person.environment)
        month = await _this_month(visit, connection)
    orders: dict[int, int] = {}
    for added in month:
        orders[added.key] = orders.get(added.key, 0) + added.sums.orders
    return accounts, orders


def _limited(currency: str, limit: Limit) -> tuple[object, ...]:
    amounts = (limit.largest_order_minor, limit.daily_minor)
    return (currency, *(None if minor is None else to_decimal(minor, currency) for minor in amounts))


async def _this_month(visit: Visit, connection: Connection, account_id: int | None = None) -> list[Added]:
    """What the orders of this month add up to, of each service account or of one."""
    since, _ = month_of(clock.now())
    wanted = OrderFilter(
        customer_id=visit.person.customer_id,
        environment=visit.person.environment,
        group=GroupFilter(service_account_id=account_id),
        since=since.date(),
    )
    return await add_up(connection, wanted, by="service_account")


async def _sold_in(visit: Visit) -> set[str]:
    """The currencies that anything can be ordered in."""
    customer_id, services = visit.person.customer_id, visit.services
    async with visit.database.connection(visit.person.scope) as connection:
        version = await connection.fetchval("SELECT version FROM catalogue_version")
    snapshot = await services.catalogue.at(version)
    return {
        product.currency
        for country in snapshot.countries(customer_id)
        for product in snapshot.products(customer_id, country)
    }
