"""The people and the service accounts of a customer in the back office.

People are invited, get roles and links for new passwords. Service accounts are created, limited and switched off.
"""

from collections.abc import Mapping

from starlette.responses import Response

from largesse.automations.service import start_over
from largesse.base.errors import InvalidRequest, NotFound
from largesse.customers import members, service_accounts
from largesse.customers.customer_store import list_currencies, list_service_accounts, read_customer
from largesse.customers.members import Member
from largesse.customers.roles import ROLES
from largesse.db.pool import Connection
from largesse.db.scope import OFFICE
from largesse.web.console.people import ROLE_NAMES, InvitationForm, hand_on, list_page, of_list
from largesse.web.console.service_accounts import MOST_NAME, limit_as_typed, shown_limits, switch_as_chosen
from largesse.web.console.words import Names
from largesse.web.office.context import OfficeContext
from largesse.web.office.customers import acting_for, invited, named, page

_NO_LIMITS: Mapping[str, str] = {"largest_order": "", "daily": ""}


async def show(context: OfficeContext) -> Response:
    """Shows the people of a customer. Raises NotFound."""
    async with context.database.connection(OFFICE) as connection:
        customer = await read_customer(connection, context.number("customer"))
        listed = await list_page(connection, context, customer.id)
    roles = named(context, ROLE_NAMES)
    return page(
        context,
        "customer_people.html",
        customer=customer,
        listed=listed,
        query=context.query,
        roles=roles,
        role_names=Names(roles),
    )


async def send_invitation(context: OfficeContext) -> Response:
    """Invites an address. Raises NotFound."""
    form = context.form.read(InvitationForm)
    if context.form.errors:
        return await show(context)
    actor = acting_for(context)
    try:
        name, mails = form.name or None, context.can_mail
        made = await members.invite(actor, form.email, name=name, role=form.role, mails=mails, start_over=start_over)
    except members.AlreadyThere:
        context.form.error("email", context.say("%(email)s belongs to the customer already.", email=form.email))
    except members.LastAdministrator:
        context.form.error("role", context.say("A customer needs an administrator: make somebody else one first."))
    except InvalidRequest:
        said = context.say("The customer has reached its limit of %(most)s people.", most=members.MOST_PEOPLE)
        context.form.error("email", said)
    else:
        return invited(context, actor.customer_id, made)
    return await show(context)


async def send_again(context: OfficeContext) -> Response:
    """Replaces the link of somebody who was invited. Raises NotFound."""
    actor = acting_for(context)
    try:
        made = await members.invite_again(actor, context.number("user"), mails=context.can_mail)
    except members.AlreadyThere:
        return context.see(_here(context), context.say("This person has already signed in and needs no new link."))
    return invited(context, actor.customer_id, made)


async def give_role(context: OfficeContext) -> Response:
    """Changes the role of a member, unless somebody else changed it meanwhile. Raises NotFound."""
    role = context.form.choice("role", ROLES)
    if context.form.errors:
        return context.see(_here(context))
    member = await context.read(members.read_member, context.number("customer"), context.number("user"))
    context.form.keep_others({"role": member.role}, dict(named(context, ROLE_NAMES)))
    if context.form.errors:
        return context.see(of_list(context, _here(context)), context.form.errors["role"])
    try:
        member = await members.set_role(acting_for(context), member.id, role, member.role)
    except InvalidRequest:
        said = context.say("A customer needs an administrator: make somebody else one first.")
        return context.see(of_list(context, _here(context)), said)
    said = context.say("The role of %(name)s is now %(role)s.", name=member.name, role=context.say(ROLE_NAMES[role]))
    return context.see(of_list(context, _here(context)), said)


async def ask_reset(context: OfficeContext) -> Response:
    """Asks whether to make a link for a new password. Raises NotFound."""
    async with context.database.connection(OFFICE) as connection:
        member = await _member(context, connection)
        customer = await read_customer(connection, context.number("customer"))
    return page(context, "reset_person.html", member=member, customer=customer)


async def make_reset(context: OfficeContext) -> Response:
    """Mails a member a link for a new password. Without a mail server, shows it once. Raises NotFound."""
    async with context.database.connection(OFFICE) as connection:
        member = await _member(context, connection)
    second_step = context.form["second_step"] == "yes"
    if context.can_mail:
        await members.reset_by_mail(acting_for(context), member.email, second_step=second_step)
        return context.see(_here(context), context.say("%(email)s gets a mail with a link.", email=member.email))
    secret = await members.reset(acting_for(context), member.email, second_step=second_step, mails=False)
    heading = context.say("A link for %(email)s", email=member.email)
    return hand_on(context, heading, f"/app/link/{secret}", _here(context), is_reset=True)


async def _member(context: OfficeContext, connection: Connection) -> Member:
    """Returns the member of the path. Raises NotFound, also for one who has never signed in."""
    member = await members.read_member(connection, context.number("customer"), context.number("user"))
    if not member.has_signed_in:
        raise NotFound("No such person signs in for the customer.")
    return member


async def show_services(context: OfficeContext, shown: Mapping[str, str] = _NO_LIMITS, seen: str = "") -> Response:
    """Shows the service accounts of a customer. `shown` are the limits in the form, of the account and currency that `seen` names. Raises NotFound."""
    async with context.database.connection(OFFICE) as connection:
        customer = await read_customer(connection, context.number("customer"))
        accounts = await list_service_accounts(connection, customer.id)
        currencies = await list_currencies(connection, customer.id)
    return page(
        context,
        "customer_services.html",
        customer=customer,
        accounts=accounts,
        choices=[(str(one.id), one.name) for one in accounts],
        currencies=[(one, one) for one in currencies],
        shown=shown,
        seen=seen or context.form["seen"],
    )


async def create_service(context: OfficeContext) -> Response:
    """Creates a service account. Raises NotFound."""
    name = context.form.text("name", MOST_NAME)
    if not context.form.errors:
        try:
            await service_accounts.create_service_account(acting_for(context), name)
        except service_accounts.TooManyServiceAccounts:
            said = context.say(
                "The customer has reached its limit of %(most)s service accounts.",
                most=service_accounts.MOST_SERVICE_ACCOUNTS,
            )
            context.form.error("name", said)
        except service_accounts.NameTaken:
            context.form.error("name", context.say("Another service account has this name."))
        else:
            said = context.say("The service account %(name)s was created.", name=name)
            return context.see(_here(context, "service-accounts"), said)
    return await show_services(context)


async def limit_service(context: OfficeContext) -> Response:
    """Limits what a service account may order in a currency, from its next order on. Shows limits that it has before it changes them. Raises NotFound."""
    form, currency = context.form, context.form["currency"]
    accounts = await context.read(list_service_accounts, context.number("customer"))
    account = next((one for one in accounts if one.id == form.number("account")), None)
    # The form begins without them, and an empty field would remove a limit unseen.
    if account is not None and currency in account.limits and form["seen"] != f"{account.id} {currency}":
        shown = shown_limits(context, account, currency)
        context.form = form.without({name for name in shown if not form[name].strip()})
        context.form.error("currency", context.say("These are its limits now. Change them and save again."))
        return await show_services(context, shown, f"{account.id} {currency}")
    if not await limit_as_typed(context, acting_for(context), context.form.number("account") or 0):
        return await show_services(context)
    said = context.say("The limits were changed. They apply from the next order.")
    return context.see(_here(context, "service-accounts"), said)


async def switch_service(context: OfficeContext) -> Response:
    """Switches a service account on or off. Raises NotFound."""
    return context.see(_here(context, "service-accounts"), await switch_as_chosen(context, acting_for(context)))


def _here(context: OfficeContext, page: str = "people") -> str:
    return f"/office/customers/{context.number('customer')}/{page}"
