"""An administrator's page of who belongs to the customer: invite, give a role, take away."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.templates import text
from largesse.customers.members import (
    AlreadyThere,
    Colleague,
    Invitation,
    invite,
    invite_again,
    list_colleagues,
    remove,
    set_role,
)
from largesse.customers.principal import ADMIN
from largesse.customers.roles import ROLES
from largesse.db.pool import Connection
from largesse.jobs.outbox import mail_invitation
from largesse.ledger.store import Holder, list_assignable, take_all_accounts
from largesse.web.console.context import RequestContext
from largesse.web.console.form import Choice, Email, Text
from largesse.web.console.service_accounts import assign_to

ROLE_NAMES = {
    "admin": text("Administrator"),
    "member": text("Member"),
    "finance": text("Finance"),
    "viewer": text("Viewer"),
}
_LAST = text("A company needs an administrator: make somebody else one first.")
_MOST_NAME = 100


async def show(context: RequestContext) -> Response:
    """Everybody, with their role, and the form that invites."""
    return await _shown(context)


async def download(context: RequestContext) -> Response:
    """The same people as a file."""
    columns = ("name", "e-mail address", "role", "belongs", "second step", "last signed in at")
    rows = [
        (
            one.name,
            one.email,
            one.role,
            "yes" if one.is_active else "no",
            "yes" if one.has_second_step else "no",
            context.instant(one.last_login_at),
        )
        for one in await _colleagues(context)
    ]
    return await context.csv("people.csv", columns, rows)


class InvitationForm(msgspec.Struct):
    """Who is invited, and their role."""

    email: Annotated[str, Email()]
    name: Annotated[str, Text(_MOST_NAME, required=False)]
    role: Annotated[str, Choice(ROLES)]


async def send_invitation(context: RequestContext) -> Response:
    """Invites an address, and shows the link to hand on."""
    form, person = context.form, context.person
    invitation = form.read(InvitationForm)
    email, role = invitation.email, invitation.role
    if form.errors:
        return await _shown(context, status=422)
    try:
        async with context.writing(changes_access=True) as connection:
            made = await invite(connection, person.customer_id, email, name=invitation.name or None, role=role)
            await _mail(context, connection, made)
            await context.record(connection, "person.invited", made.email, after={"role": role})
    except AlreadyThere:
        form.error("email", context.say("%(email)s belongs to your company already.", email=email))
    except InvalidRequest:
        form.error("email", context.say("Your company has as many people as it can. Remove somebody first."))
    if form.errors:
        return await _shown(context, status=422)
    return _invited(context, made)


async def send_again(context: RequestContext) -> Response:
    """Makes a new link for who was invited. Raises NotFound."""
    person = context.person
    try:
        async with context.writing(changes_access=True) as connection:
            made = await invite_again(connection, person.customer_id, context.number("user"))
            await _mail(context, connection, made)
            await context.record(connection, "person.invited", made.email)
    except AlreadyThere:
        return context.see("/app/people", context.say("They have signed in already: no new link is needed."))
    return _invited(context, made)


async def ask_role(context: RequestContext) -> Response:
    """Asks an administrator whether they mean to give up that role themselves."""
    role = context.query("role")
    if context.number("user") != context.person.user_id or role not in ROLES or role == ADMIN:
        return context.see("/app/people")
    return context.page(
        "own_role.html", user_id=context.person.user_id, role=role, role_name=context.say(ROLE_NAMES[role])
    )


async def give_role(context: RequestContext) -> Response:
    """Gives somebody a role; who gives up being an administrator is asked first. Raises NotFound."""
    person, role = context.person, context.form.choice("role", ROLES)
    if context.form.errors:
        return context.see("/app/people")
    is_own = context.number("user") == person.user_id and role != ADMIN
    if is_own and context.form["sure"] != "yes":
        return context.see(f"/app/people/{person.user_id}/role?role={role}")
    try:
        async with context.writing(changes_access=True) as connection:
            colleague = await set_role(connection, person.customer_id, context.number("user"), role)
            before, after = {"role": colleague.role}, {"role": role}
            await context.record(connection, "person.role_changed", colleague.email, before=before, after=after)
    except InvalidRequest:
        return context.see("/app/people", context.say(_LAST))
    said = context.say("%(name)s is %(role)s now.", name=colleague.name, role=context.say(ROLE_NAMES[role]))
    return context.see("/app" if is_own else "/app/people", said)


async def one(context: RequestContext) -> Response:
    """Somebody who belongs to the customer: what they may do, and the accounts they may use. Raises NotFound."""
    person = context.person
    colleague = await _colleague(context)
    async with context.database.connection(person.scope) as connection:
        accounts = await list_assignable(
            connection, Holder.PERSON, person.customer_id, person.environment, colleague.id
        )
    return context.page(
        "person.html", colleague=colleague, role=context.say(ROLE_NAMES[colleague.role]), accounts=accounts
    )


async def assign(context: RequestContext) -> Response:
    """Says which funding accounts somebody may use whose role has them use some alone. Raises NotFound."""
    colleague = await _colleague(context)
    here = f"/app/people/{colleague.id}"
    await assign_to(context, Holder.PERSON, colleague.id)
    said = context.say("The accounts that %(name)s may use are changed, from now on.", name=colleague.name)
    return context.see(here, said)


async def ask_removal(context: RequestContext) -> Response:
    """Asks whether somebody is to be removed. Raises NotFound."""
    user_id = context.number("user")
    colleague = next((one for one in await _colleagues(context) if one.id == user_id), None)
    if colleague is None or not colleague.is_active:
        return context.see("/app/people")
    return context.page("remove_person.html", colleague=colleague)


async def take_away(context: RequestContext) -> Response:
    """Removes somebody at once, with their sessions. Raises NotFound."""
    person = context.person
    try:
        async with context.writing(changes_access=True) as connection:
            colleague = await remove(connection, person.customer_id, context.number("user"))
            await take_all_accounts(connection, person.customer_id, colleague.id)
            await context.record(connection, "person.removed", colleague.email, before={"role": colleague.role})
    except InvalidRequest:
        return context.see("/app/people", context.say(_LAST))
    said = context.say("%(name)s was removed, and is signed out everywhere.", name=colleague.name)
    return context.see("/app/people", said)


async def _colleague(context: RequestContext) -> Colleague:
    user_id = context.number("user")
    found = next((one for one in await _colleagues(context) if one.id == user_id and one.is_active), None)
    if found is None:
        raise NotFound("Nobody of that number belongs to the customer.")
    return found


async def _colleagues(context: RequestContext) -> list[Colleague]:
    async with context.database.connection(context.person.scope) as connection:
        return await list_colleagues(connection, context.person.customer_id)


async def _shown(context: RequestContext, *, status: int = 200) -> Response:
    roles = [(role, context.say(name)) for role, name in ROLE_NAMES.items()]
    return context.page("people.html", status=status, colleagues=await _colleagues(context), roles=roles)


async def _mail(context: RequestContext, connection: Connection, made: Invitation) -> None:
    if context.services.settings.smtp_url is not None:
        await mail_invitation(connection, made.user_id)


def _invited(context: RequestContext, made: Invitation) -> Response:
    """The link to hand on; where it is mailed, nobody else needs it."""
    if context.services.settings.smtp_url is not None:
        return context.see("/app/people", context.say("%(email)s gets a mail with a link.", email=made.email))
    return context.page("invited.html", made=made, address=context.link(f"/app/link/{made.secret}"))
