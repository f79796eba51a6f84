"""The people of a customer in the back office: inviting, inviting again, changing a role, and a link for a new password."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.templates import text
from largesse.customers.customer_store import read_customer
from largesse.customers.member_store import Member, list_members
from largesse.customers.members import AlreadyThere, invite, invite_again, reset, reset_by_mail, set_role
from largesse.customers.roles import ROLES
from largesse.db.pool import Connection
from largesse.db.scope import OFFICE
from largesse.web.console.form import Choice, Email, Text
from largesse.web.office.context import OfficeContext
from largesse.web.office.customers import acting_for, can_mail, invited, named, page

ROLE_NAMES = {
    "admin": text("Administrator"),
    "member": text("Member"),
    "finance": text("Finance"),
    "viewer": text("Viewer"),
}


class InvitationForm(msgspec.Struct):
    """Who is invited."""

    email: Annotated[str, Email()]
    name: Annotated[str, Text(100, required=False)]
    role: Annotated[str, Choice(ROLES)]


async def show(context: OfficeContext) -> Response:
    """Shows the people of a customer. Raises NotFound."""
    return await _shown(context)


async def send_invitation(context: OfficeContext) -> Response:
    """Invites an address. Raises NotFound."""
    form = context.form.read(InvitationForm)
    if context.form.errors:
        return await _shown(context, status=422)
    actor = acting_for(context)
    try:
        made = await invite(actor, form.email, name=form.name or None, role=form.role, mails=can_mail(context))
    except AlreadyThere:
        context.form.error("email", context.say("%(email)s belongs to the customer already.", email=form.email))
        return await _shown(context, status=422)
    except InvalidRequest:
        context.form.error("email", context.say("The customer has reached its limit of people."))
        return await _shown(context, status=422)
    return invited(context, actor.customer_id, made)


async def send_again(context: OfficeContext) -> Response:
    """Replaces the link of somebody who was invited. Raises NotFound."""
    actor = acting_for(context)
    try:
        made = await invite_again(actor, context.number("user"), mails=can_mail(context))
    except AlreadyThere:
        return context.see(_here(context), context.say("This person has already signed in and needs no new link."))
    return invited(context, actor.customer_id, made)


async def give_role(context: OfficeContext) -> Response:
    """Changes the role of a member. Raises NotFound."""
    role = context.form.choice("role", ROLES)
    if context.form.errors:
        return context.see(_here(context))
    try:
        member = await set_role(acting_for(context), context.number("user"), role)
    except InvalidRequest:
        said = context.say("A customer needs an administrator: make somebody else one first.")
        return context.see(_here(context), said)
    said = context.say("The role of %(name)s is now %(role)s.", name=member.name, role=context.say(ROLE_NAMES[role]))
    return context.see(_here(context), said)


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
    if can_mail(context):
        await reset_by_mail(acting_for(context), member.email, second_step=second_step)
        return context.see(_here(context), context.say("%(email)s gets a mail with a link.", email=member.email))
    secret = await reset(acting_for(context), member.email, second_step=second_step, mails=False)
    address = context.link(f"/app/link/{secret}")
    return context.page("handed_link.html", email=member.email, address=address, back=_here(context), is_reset=True)


async def _member(context: OfficeContext, connection: Connection) -> Member:
    """Returns the member of the path. Raises NotFound, also for one who has never signed in."""
    members = await list_members(connection, context.number("customer"))
    found = next((one for one in members if one.id == context.number("user") and one.has_signed_in), None)
    if found is None:
        raise NotFound("No such person signs in for the customer.")
    return found


async def _shown(context: OfficeContext, *, status: int = 200) -> Response:
    async with context.database.connection(OFFICE) as connection:
        customer = await read_customer(connection, context.number("customer"))
        members = await list_members(connection, customer.id)
    roles = named(context, ROLE_NAMES)
    return page(
        context,
        "customer_people.html",
        status=status,
        customer=customer,
        members=members,
        roles=roles,
        role_names=dict(roles),
    )


def _here(context: OfficeContext) -> str:
    return f"/office/customers/{context.number('customer')}/people"
