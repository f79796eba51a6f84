"""Customers in the back office: the list, the page of one with its terms, accounts and notes, and opening one with its first administrator."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.base.settings import ENVIRONMENTS
from largesse.customers import customers
from largesse.customers.actor import Actor
from largesse.customers.customer_store import list_currencies, read_customer, search_customers
from largesse.customers.members import Invitation
from largesse.customers.staff_roles import StaffRight
from largesse.db.scope import OFFICE
from largesse.ledger.accounts import LONGEST_NAME, MOST_ACCOUNTS, AccountRefused, Why, create_account, open_customer
from largesse.ledger.payment_sources import SOURCES
from largesse.ledger.store import list_accounts, unspendable
from largesse.web.console.form import Choice, Choices, Email, Text
from largesse.web.console.people import hand_on
from largesse.web.kit.query import INT32
from largesse.web.office.context import OfficeContext

_PAGE = 50
_Value = TypeVar("_Value", bound=str)
PLAN_NAMES = {"starter": text("Starter"), "pro": text("Pro"), "enterprise": text("Enterprise")}
FUNDING_NAMES = {"balance": text("From a balance"), "invoiced": text("By invoice")}
ENVIRONMENT_NAMES = {"production": text("Live"), "staging": text("Test mode")}
_REFUSALS = {
    Why.TOO_MANY: text(
        "The customer has reached its limit of %(most)s accounts, the closed ones too. Use one of them."
    ),
    Why.NAME_TAKEN: text("Another account has this name."),
    Why.NO_CURRENCY: text("Choose one of the options."),
    Why.INVOICED: text("An invoiced customer has no accounts."),
}


class TermsForm(msgspec.Struct):
    """The name, the plan and the funding of a customer."""

    name: Annotated[str, Text(customers.MOST_CUSTOMER_NAME)]
    plan: Annotated[str, Choice(customers.PLANS)]
    funding: Annotated[str, Choice(tuple(SOURCES))]


class NewCustomerForm(TermsForm):
    """A customer with its accounts and its first administrator."""

    currency: Annotated[str, Text(3)]
    environment: Annotated[list[str], Choices(ENVIRONMENTS)]
    email: Annotated[str, Email(is_new=True)]


def acting_for(context: OfficeContext, environment: str | None = None, reason: str | None = None) -> Actor:
    """Returns the member of staff as the actor of an operation on the customer of the path."""
    return context.actor.on_behalf_of(context.number("customer"), environment, reason)


def environment_of(context: OfficeContext) -> str:
    """Returns the environment in the path. Raises NotFound."""
    environment: str = context.request.path_params["environment"]
    if environment not in ENVIRONMENTS:
        raise NotFound("There is no such environment.")
    return environment


def page(context: OfficeContext, template: str, **values: Any) -> Response:
    """Returns a page about customers, with the rights of the member of staff."""
    may = context.person.may
    allowed = {"may_change": may(StaffRight.CUSTOMERS), "may_see_as": may(StaffRight.SEE_AS)}
    return context.page(template, **allowed, **values)


def named(context: OfficeContext, names: Mapping[_Value, str]) -> list[tuple[str, str]]:
    """Returns choices of a form: values and names in the language of the page."""
    return [(str(value), context.say(name)) for value, name in names.items()]


async def show(context: OfficeContext) -> Response:
    """Shows the customers, newest first, or the results of a search."""
    before = context.parameters.number("before")
    found = await context.read(search_customers, context.query("q"), before=before or INT32, limit=_PAGE + 1)
    shown = found[:_PAGE]
    return page(
        context,
        "customers.html",
        customers=shown,
        query=context.query,
        plans=PLAN_NAMES,
        fundings=FUNDING_NAMES,
        older=context.here(before=shown[-1].id) if len(found) > _PAGE else None,
        newest=context.here(before=None) if before is not None else None,
    )


async def ask(context: OfficeContext) -> Response:
    """Shows the form that opens a customer."""
    currencies = await context.read(list_currencies, 0)
    return page(
        context,
        "new_customer.html",
        can_mail=context.can_mail,
        chosen=context.form.all("environment") or ENVIRONMENTS,
        **_choices(context, currencies),
    )


async def create(context: OfficeContext) -> Response:
    """Opens a customer with its accounts, and invites its first administrator."""
    form = context.form.read(NewCustomerForm)
    if context.form.errors:
        return await ask(context)
    try:
        customer_id, invitation = await open_customer(
            context.actor,
            form.name,
            plan=form.plan,
            funding=form.funding,
            currency=form.currency,
            environments=form.environment,
            email=form.email,
            mails=context.can_mail,
        )
    except AccountRefused as refused:
        context.form.error("currency", context.say(_REFUSALS[refused.why]))
        return await ask(context)
    return invited(context, customer_id, invitation, context.say("%(name)s was opened.", name=form.name))


async def one(context: OfficeContext) -> Response:
    """Shows a customer: terms, accounts and notes. Raises NotFound."""
    async with context.database.connection(OFFICE) as connection:
        customer = await read_customer(connection, context.number("customer"))
        accounts = await list_accounts(connection, [customer.key])
        notes = await customers.list_notes(connection, customer.id)
        currencies = await list_currencies(connection, customer.id)
    held = sorted(unspendable(accounts, customer.funding).items())
    return page(
        context,
        "customer.html",
        customer=customer,
        accounts=accounts,
        unspendable=", ".join(context.language.amount(minor, currency) for currency, minor in held),
        notes=notes,
        **_choices(context, currencies),
    )


async def change(context: OfficeContext) -> Response:
    """Changes name, plan and funding of a customer. Raises NotFound."""
    customer = await context.read(read_customer, context.number("customer"))
    names = {key: context.say(name) for key, name in (PLAN_NAMES | FUNDING_NAMES).items()}
    context.form.keep_others({name: getattr(customer, name) for name in TermsForm.__struct_fields__}, names)
    form = context.form.read(TermsForm)
    if context.form.errors:
        return await one(context)
    # Only what differs, so that terms that somebody else sets at the same moment stay.
    new = {name: value for name, value in msgspec.to_builtins(form).items() if value != getattr(customer, name)}
    await customers.change_customer(acting_for(context), **new)
    return context.see(_here(context), context.say("%(name)s was changed.", name=form.name))


async def add_account(context: OfficeContext) -> Response:
    """Adds a funding account to a customer. Raises NotFound."""
    form = context.form
    name, environment = form.text("account", LONGEST_NAME), form.choice("environment", ENVIRONMENTS)
    currency = form.text("currency", 3)
    if form.errors:
        return await one(context)
    try:
        await create_account(acting_for(context, environment), currency=currency, name=name)
    except AccountRefused as refused:
        field = "account" if refused.why in {Why.NAME_TAKEN, Why.TOO_MANY} else "currency"
        form.error(field, context.say(_REFUSALS[refused.why], most=MOST_ACCOUNTS))
        return await one(context)
    return context.see(_here(context), context.say("The account %(name)s was created.", name=name))


async def note(context: OfficeContext) -> Response:
    """Adds a note. Raises NotFound."""
    form = context.form
    written = form.text("note", customers.LONGEST_NOTE, lines=True)
    if form.errors:
        return await one(context)
    try:
        await customers.add_note(acting_for(context), written)
    except InvalidRequest:
        said = context.say(
            "This customer has reached its limit of %(most)s notes. Erase one first.", most=customers.MOST_NOTES
        )
        form.error("note", said)
        return await one(context)
    return context.see(f"{_here(context)}#notes", context.say("The note was saved."))


async def unnote(context: OfficeContext) -> Response:
    """Erases a note. Raises NotFound."""
    await customers.erase_note(acting_for(context), context.number("note"))
    return context.see(f"{_here(context)}#notes", context.say("The note was erased."))


def _choices(context: OfficeContext, currencies: Sequence[str]) -> dict[str, object]:
    return {
        "plans": named(context, PLAN_NAMES),
        "fundings": named(context, FUNDING_NAMES),
        "environments": named(context, ENVIRONMENT_NAMES),
        "currencies": [(one, one) for one in currencies],
    }


def invited(context: OfficeContext, customer_id: int, made: Invitation, done: str = "") -> Response:
    """Shows the link to pass on, unless it was mailed."""
    people = f"/office/customers/{customer_id}/people"
    if context.can_mail:
        said = context.say("%(email)s gets a mail with a link.", email=made.email)
        return context.see(people, f"{done} {said}".strip())
    heading = context.say("%(email)s is invited", email=made.email)
    return hand_on(context, heading, f"/app/link/{made.secret}", people)


def _here(context: OfficeContext) -> str:
    return f"/office/customers/{context.number('customer')}"
