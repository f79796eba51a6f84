"""The service accounts of a customer in the back office, with the limits of each."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.errors import OperatorError
from largesse.customers.customer_store import list_currencies, list_service_accounts, read_customer
from largesse.customers.service_accounts import (
    NameTaken,
    TooManyServiceAccounts,
    create_service_account,
    limit_service_account,
    switch_service_account,
)
from largesse.db.scope import OFFICE
from largesse.web.console.context import typed_amount
from largesse.web.office.context import OfficeContext
from largesse.web.office.customers import acting_for, page

_MOST_NAME = 100


async def show(context: OfficeContext) -> Response:
    """Shows the service accounts of a customer. Raises NotFound."""
    return await _shown(context)


async def create(context: OfficeContext) -> Response:
    """Creates a service account. Raises NotFound."""
    name = context.form.text("name", _MOST_NAME)
    if context.form.errors:
        return await _shown(context, status=422)
    try:
        await create_service_account(acting_for(context), name)
    except TooManyServiceAccounts:
        context.form.error("name", context.say("The customer has reached its limit of service accounts."))
        return await _shown(context, status=422)
    except NameTaken:
        context.form.error("name", context.say("Another service account has this name."))
        return await _shown(context, status=422)
    return context.see(_here(context), context.say("The service account %(name)s was created.", name=name))


async def limit(context: OfficeContext) -> Response:
    """Limits what a service account may order in a currency, from its next order on. Raises NotFound."""
    form = context.form
    account_id, currency = form.number("account") or 0, form.text("currency", 3)
    largest, daily = (
        typed_amount(context, name, currency) if form[name].strip() else None for name in ("largest_order", "daily")
    )
    if form.errors:
        return await _shown(context, status=422)
    try:
        await limit_service_account(
            acting_for(context), account_id, currency, largest_order_minor=largest, daily_minor=daily
        )
    except OperatorError:
        form.error("currency", context.say("Choose one of the options."))
        return await _shown(context, status=422)
    return context.see(_here(context), context.say("The limits were changed. They apply from the next order."))


async def switch(context: OfficeContext) -> Response:
    """Switches a service account on or off. Raises NotFound."""
    active = context.form["active"] == "yes"
    name = await switch_service_account(acting_for(context), context.number("account"), active=active)
    said = (
        context.say("%(name)s is switched on.", name=name)
        if active
        else context.say("%(name)s is switched off. Its keys are refused.", name=name)
    )
    return context.see(_here(context), said)


async def _shown(context: OfficeContext, *, status: int = 200) -> Response:
    async with context.database.connection(OFFICE) as connection:
        customer = await read_customer(connection, context.number("customer"))
        accounts = await list_service_accounts(connection, customer.id)
        currencies = await list_currencies(connection, customer.id)
    return page(
        context,
        "customer_services.html",
        status=status,
        customer=customer,
        accounts=accounts,
        choices=[(str(one.id), one.name) for one in accounts],
        currencies=[(one, one) for one in currencies],
    )


def _here(context: OfficeContext) -> str:
    return f"/office/customers/{context.number('customer')}/service-accounts"
