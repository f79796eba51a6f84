"""What an administrator says of those who spend: what a service account may order, and who may use which funding accounts."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.errors import StartError
from largesse.funding.assigning import Holder, assign_accounts
from largesse.identity.limits import limit_service_account
from largesse.identity.narrowing import Limit
from largesse.web.console.amounts import typed_amount
from largesse.web.console.service_accounts import find_account, one_shown
from largesse.web.console.visit import Visit


async def limit(visit: Visit) -> Response:
    """Says what a service account may order in a currency, from the next order on. Raises NotFound."""
    person, form = visit.person, visit.form
    here = f"/app/service-accounts/{visit.number('account')}"
    async with visit.database.connection(person.scope) as connection:
        account = await find_account(connection, visit)
    currency = form.text("currency", 3)
    wanted = Limit(_amount(visit, "largest_order", currency), _amount(visit, "daily", currency))
    if form.errors:
        return await one_shown(visit, status=422)
    try:
        async with visit.writing() as connection:
            before = await limit_service_account(
                connection,
                customer_id=person.customer_id,
                service_account_id=account.id,
                currency=currency,
                limit=wanted,
            )
            if before != wanted:
                subject = f"service account {account.id}"
                told, tells = ({"currency": currency, **one.told(currency)} for one in (before, wanted))
                await visit.record(connection, "service_account.limited", subject, before=told, after=tells)
    except StartError:
        form.error("currency", visit.say("Choose one of those offered."))
        return await one_shown(visit, status=422)
    said = visit.say("What %(name)s may order is changed, from its next order on.", name=account.name)
    return visit.see(here, said)


async def assign(visit: Visit) -> Response:
    """Says which funding accounts a service account may use. Raises NotFound."""
    here = f"/app/service-accounts/{visit.number('account')}"
    async with visit.database.connection(visit.person.scope) as connection:
        account = await find_account(connection, visit)
    await assign_to(visit, Holder.SERVICE_ACCOUNT, account.id, f"service account {account.id}")
    said = visit.say("The accounts that %(name)s may use are changed, from now on.", name=account.name)
    return visit.see(here, said)


async def assign_to(visit: Visit, holder: Holder, holder_id: int, subject: str) -> None:
    """Makes the accounts of the form those that somebody may use, beside those open to all. Raises NotFound."""
    person = visit.person
    given = [
        int(one) if one.isascii() and one.isdigit() and len(one) < 10 else 0
        for one in visit.form.all("may_use")
    ]
    async with visit.writing() as connection:
        done = await assign_accounts(
            connection, holder, person.customer_id, person.environment, holder_id, given
        )
        if done.before != done.after:
            before, after = {"accounts": done.before}, {"accounts": done.after}
            await visit.record(connection, "account.assigned", subject, before=before, after=after)


def _amount(visit: Visit, name: str, currency: str) -> int | None:
    """An amount in minor units; None where nothing was typed. What is wrong with it is noted in the form."""
    return typed_amount(visit, name, currency) if visit.form[name].strip() else None
