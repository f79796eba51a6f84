"""Members of staff: the pages on which owners invite, change roles, deactivate and reset, and the pages of members' links. A link works once."""

from typing import Annotated

import msgspec
from starlette.responses import Response

from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.customers.staff_roles import STAFF_ROLES
from largesse.staff import service
from largesse.staff.service import MOST_NAME, MOST_STAFF, ListedStaff
from largesse.staff.sign_in import StaffSigningIn
from largesse.web.console.form import Choice, Email, Text
from largesse.web.console.people import hand_on
from largesse.web.console.sign_in import new_password
from largesse.web.console.words import Names
from largesse.web.office.context import ROLE_NAMES, OfficeContext

HERE = "/office/staff"
_LAST = text("The back office needs an owner. Make somebody else an owner first.")


async def show(context: OfficeContext) -> Response:
    """Shows all members with their roles, and the form that invites."""
    roles = [(role, context.say(name)) for role, name in ROLE_NAMES.items()]
    return context.page(
        "staff.html", members=await context.read(service.list_staff), roles=roles, role_names=Names(roles)
    )


class InvitationForm(msgspec.Struct):
    """Who is invited, and their role."""

    email: Annotated[str, Email(is_new=True)]
    name: Annotated[str, Text(MOST_NAME, required=False)]
    role: Annotated[str, Choice(STAFF_ROLES)]


async def send_invitation(context: OfficeContext) -> Response:
    """Invites an address, and shows the link to pass on."""
    form = context.form
    read = form.read(InvitationForm)
    if form.errors:
        return await show(context)
    try:
        secret = await service.invite(context.actor, read.email, name=read.name or None, role=read.role)
    except service.AlreadyThere as there:
        said = context.say("%(email)s is a member of staff already.", email=read.email)
        if there.invited_as is not None:
            said = context.say(
                "%(email)s is invited already, with the role %(role)s. Open their page to create a new link.",
                email=read.email,
                role=context.say(ROLE_NAMES[there.invited_as]),
            )
        form.error("email", said)
    except InvalidRequest:
        said = context.say(
            "The back office has reached its limit of %(most)s people. Deactivate somebody first.", most=MOST_STAFF
        )
        form.error("email", said)
    else:
        return _link(context, read.email, secret, is_reset=False)
    return await show(context)


async def give_role(context: OfficeContext) -> Response:
    """Changes the role of a member, unless somebody else changed it meanwhile. Raises NotFound."""
    role = context.form.choice("role", STAFF_ROLES)
    if context.form.errors:
        return context.see(HERE)
    member = await _member(context)
    context.form.keep_others({"role": member.role}, {name: context.say(said) for name, said in ROLE_NAMES.items()})
    if context.form.errors:
        return context.see(HERE, context.form.errors["role"])
    try:
        member = await service.set_role(context.actor, member.id, role, member.role)
    except service.LastOwner:
        return context.see(HERE, context.say(_LAST))
    said = context.say("The role of %(name)s is now %(role)s.", name=member.name, role=context.say(ROLE_NAMES[role]))
    return context.see(HERE if member.id != context.person.person_id else "/office", said)


async def ask(context: OfficeContext) -> Response:
    """Asks whether to deactivate or reset a member. Raises NotFound."""
    is_own = context.number("member") == context.person.person_id
    return context.page("staff_member.html", member=await _member(context), is_own=is_own)


async def take_away(context: OfficeContext) -> Response:
    """Deactivates a member, and ends their sessions. Raises NotFound."""
    try:
        member = await service.deactivate(context.actor, context.number("member"))
    except service.LastOwner:
        return context.see(HERE, context.say(_LAST))
    return context.see(HERE, context.say("%(name)s was deactivated, and is signed out everywhere.", name=member.name))


async def begin_anew(context: OfficeContext) -> Response:
    """Ends a member's sessions and second step, and shows the link to pass on. Raises NotFound."""
    member = await _member(context)
    secret = await service.reset(context.actor, member.id)
    return _link(context, member.email, secret, is_reset=member.has_signed_in)


async def link(context: OfficeContext) -> Response:
    """Shows what a link does. Opening it does not use it up, because mail scanners open links too."""
    try:
        found = await _signing_in(context).look_at(context.request.path_params["secret"], context.origin)
    except NotFound:
        return context.page("link_ended.html", status=404)
    return context.page("office_link.html", link=found)


async def follow(context: OfficeContext) -> Response:
    """Uses a link: signs in, or sets a new password."""
    secret = context.request.path_params["secret"]
    try:
        found = await _signing_in(context).look_at(secret, context.origin)
        if found.kind == "sign_in":
            context.begin(await _signing_in(context).by_link(secret, context.origin))
            return context.see("/office")
        password = new_password(context, found.email)
        if password is None:
            return context.page("office_link.html", link=found)
        context.begin(await _signing_in(context).by_new_password(secret, password, context.origin))
    except NotFound:
        return context.page("link_ended.html", status=404)
    return context.see("/office")


def _signing_in(context: OfficeContext) -> StaffSigningIn:
    assert context.services.office is not None, "the guard requires it"
    return context.services.office.signing_in


async def _member(context: OfficeContext) -> ListedStaff:
    return await context.read(service.active_member, context.number("member"))


def _link(context: OfficeContext, email: str, secret: str, *, is_reset: bool) -> Response:
    heading, title = context.say("A link for %(email)s", email=email), context.say("A link to hand on")
    return hand_on(context, heading, f"/office/link/{secret}", HERE, is_reset=is_reset, title=title)
