"""An administrator's page of service accounts, which programs act as."""

from __future__ import annotations

from starlette.responses import Response

from largesse.identity import (
    TooManyServiceAccounts,
    add_service_account,
    list_service_accounts,
    switch_service_account,
)
from largesse.web.console.visit import Visit

_MOST_NAME = 100


async def show(visit: Visit) -> Response:
    """The service accounts, and the form that makes one."""
    return await _shown(visit)


async def create(visit: Visit) -> Response:
    """Makes a service account."""
    name = visit.form.text("name", _MOST_NAME)
    if visit.form.errors:
        return await _shown(visit, status=422)
    try:
        async with visit.database.transaction(visit.person.scope) as connection:
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
    return visit.see("/app/service-accounts", visit.say("%(name)s was made. Give it a key now.", name=name))


async def switch(visit: Visit) -> Response:
    """Switches a service account on or off. Raises NotFound."""
    account_id, active = visit.number("account"), visit.form["active"] == "yes"
    async with visit.database.transaction(visit.person.scope) as connection:
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
    return visit.see("/app/service-accounts", said)


async def _shown(visit: Visit, *, status: int = 200) -> Response:
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        accounts = await list_service_accounts(connection, person.customer_id, person.environment)
    return visit.page("service_accounts.html", status=status, accounts=accounts)
