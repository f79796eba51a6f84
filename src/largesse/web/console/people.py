"""An administrator's pages of the people of the customer: inviting them, changing roles, removing them."""

from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from largesse.approvals.service import list_needing
from largesse.automations.service import list_in_both, start_over
from largesse.base.errors import InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.customers import members
from largesse.customers.key_store import list_keys
from largesse.customers.members import Invitation, Member
from largesse.customers.principal import ADMIN
from largesse.customers.roles import ROLES
from largesse.db.pool import Connection
from largesse.ledger.store import Holder, list_assignable, take_all_accounts
from largesse.web.console.context import PageContext, RequestContext
from largesse.web.console.form import Choice, Email, Text
from largesse.web.console.service_accounts import assign_to
from largesse.web.console.words import Names
from largesse.webhooks.store import list_of_user

ROLE_NAMES = Names(
    {"admin": text("Administrator"), "member": text("Member"), "finance": text("Finance"), "viewer": text("Viewer")}
)
_LAST = text("A company needs an administrator. Make somebody else an administrator first.")
MOST_NAME = 100
_PAGE = 50
_COLUMNS = (
    *(text("Name"), text("E-mail address"), text("Role"), text("Active"), text("Second step")),
    text("Last signed in at (UTC)"),
)


async def show(context: RequestContext) -> Response:
    """Shows people with their roles, and the form that invites."""
    roles = [(role, context.say(name)) for role, name in ROLE_NAMES.items()]
    async with context.database.connection(context.person.list_scope) as connection:
        listed = await list_page(connection, context, context.person.customer_id)
    return context.page("people.html", listed=listed, query=context.query, roles=roles, role_names=Names(roles))


async def download(context: RequestContext) -> Response:
    """Sends the people as a CSV file."""
    rows = [
        (
            one.name,
            one.email,
            context.say(ROLE_NAMES[one.role]),
            context.say("Yes") if one.is_active else context.say("No"),
            context.say("Yes") if one.has_second_step else context.say("No"),
            context.instant(one.last_login_at),
        )
        for one in await context.read(members.list_members, context.person.customer_id)
    ]
    return await context.csv("people.csv", [context.say(one) for one in _COLUMNS], rows)


class InvitationForm(msgspec.Struct):
    """Who is invited, and their role."""

    email: Annotated[str, Email(is_new=True)]
    name: Annotated[str, Text(MOST_NAME, required=False)]
    role: Annotated[str, Choice(ROLES)]


async def send_invitation(context: RequestContext) -> Response:
    """Invites an address. Without a mail server, shows the link to pass on."""
    form = context.form
    read = form.read(InvitationForm)
    if form.errors:
        return await show(context)
    try:
        actor, name, mails = context.actor, read.name or None, context.can_mail
        made = await members.invite(actor, read.email, name=name, role=read.role, mails=mails, start_over=start_over)
    except members.AlreadyThere:
        form.error("email", context.say("%(email)s belongs to your company already.", email=read.email))
    except InvalidRequest:
        said = context.say(
            "Your company has reached its limit of %(most)s people. Remove somebody first.", most=members.MOST_PEOPLE
        )
        form.error("email", said)
    else:
        return _invited(context, made)
    return await show(context)


async def send_again(context: RequestContext) -> Response:
    """Replaces the link of somebody who was invited. Raises NotFound."""
    try:
        made = await members.invite_again(context.actor, context.number("user"), mails=context.can_mail)
    except members.AlreadyThere:
        return context.see("/app/people", context.say("This person has already signed in and needs no new link."))
    return _invited(context, made)


async def ask_role(context: RequestContext) -> Response:
    """Asks an administrator whether to give up their own role."""
    role = context.query("role")
    if context.number("user") != context.person.user_id or role not in ROLES or role == ADMIN:
        return context.see("/app/people")
    said = context.say(
        "Your role becomes %(role)s immediately. You can no longer manage people, API keys, webhooks and accounts. Only another administrator "
        "can make you an administrator again.",
        role=context.say(ROLE_NAMES[role]),
    )
    path = f"/app/people/{context.person.user_id}/role"
    yes = path, context.say("Change my role"), {"role": role, "sure": "yes"}
    question = context.say("Change your own role?")
    return context.page("question.html", question=question, said=said, yes=yes, no="/app/people")


async def give_role(context: RequestContext) -> Response:
    """Changes the role of a member, unless somebody else changed it meanwhile. Asks first if administrators give up their own. Raises NotFound."""
    person, role = context.person, context.form.choice("role", ROLES)
    if context.form.errors:
        return context.see("/app/people")
    people = of_list(context, "/app/people")
    member = await _member(context)
    context.form.keep_others({"role": member.role}, {name: context.say(said) for name, said in ROLE_NAMES.items()})
    if context.form.errors:
        return context.see(people, context.form.errors["role"])
    is_own = context.number("user") == person.user_id and role != ADMIN
    if is_own and context.form["sure"] != "yes":
        return context.see(f"/app/people/{person.user_id}/role?role={role}")
    try:
        member = await members.set_role(context.actor, member.id, role, member.role)
    except InvalidRequest:
        return context.see(people, context.say(_LAST))
    said = context.say("The role of %(name)s is now %(role)s.", name=member.name, role=context.say(ROLE_NAMES[role]))
    return context.see("/app" if is_own else people, said)


def of_list(context: PageContext, path: str) -> str:
    """Returns the path of a list of people with the search and the page that the address names."""
    kept = {name: context.query(name) for name in ("q", "state", "page") if context.query(name)}
    return f"{path}?{urlencode(kept)}" if kept else path


async def one(context: RequestContext) -> Response:
    """Shows a member: their role, and the accounts they may use. Raises NotFound."""
    member = await _member(context)
    accounts = await context.read(list_assignable, Holder.PERSON, context.customer, member.id)
    return context.page("person.html", member=member, role=context.say(ROLE_NAMES[member.role]), accounts=accounts)


async def assign(context: RequestContext) -> Response:
    """Sets which funding accounts a member may use. Raises NotFound."""
    member = await _member(context)
    here = f"/app/people/{member.id}"
    await assign_to(context, Holder.PERSON, member.id)
    said = context.say("The accounts that %(name)s can use have changed.", name=member.name)
    return context.see(here, said)


async def ask_removal(context: RequestContext) -> Response:
    """Asks whether to remove a member, and names their automations, API keys and webhooks. If there is no such member, goes back to the list."""
    try:
        member = await _member(context)
    except NotFound:
        return context.see("/app/people")
    automations = await list_in_both(context.database, context.person.customer_id)
    own = [one for one in automations if one.user_id == member.id]
    keys = await context.read(list_keys, customer_id=context.person.customer_id, made_by=member.id)
    webhooks = await list_of_user(context.database, context.person.customer_id, member.id)
    rules = await list_needing(context.database, context.person.customer_id, member.id)
    return context.page("remove_person.html", member=member, automations=own, keys=keys, webhooks=webhooks, rules=rules)


async def take_away(context: RequestContext) -> Response:
    """Removes a member, and ends their sessions. Raises NotFound."""
    try:
        member = await members.remove(context.actor, context.number("user"), take_all_accounts)
    except InvalidRequest:
        return context.see("/app/people", context.say(_LAST))
    said = context.say("%(name)s was removed, and is signed out everywhere.", name=member.name)
    return context.see("/app/people", said)


async def _member(context: RequestContext) -> Member:
    member = await context.read(members.read_member, context.person.customer_id, context.number("user"))
    if not member.is_active:
        raise NotFound("The customer has no such person.")
    return member


class ListedMembers(msgspec.Struct, frozen=True):
    """A page of a customer's members."""

    members: list[Member]
    tabs: list[
        tuple[str, str, int]
    ]  # the value of `state`, its name, and how many members there are; empty while nobody was removed
    state: str | None  # None for a search, which finds all
    previous: str | None
    next: str | None


async def list_page(connection: Connection, context: PageContext, customer_id: int) -> ListedMembers:
    """Returns the page of members that the address names. `state=removed` lists removed members and `q` searches all; otherwise lists active ones."""
    words, page = context.query("q").strip(), max(context.parameters.number("page") or 1, 1)
    state = None if words else "removed" if context.query("state") == "removed" else "active"
    is_active = None if state is None else state == "active"
    found = await members.search_members(
        connection, customer_id, words, is_active=is_active, offset=(page - 1) * _PAGE, limit=_PAGE + 1
    )
    active, removed = await members.count_members(connection, customer_id)
    tabs = [("active", context.say("Current people"), active), ("removed", context.say("Removed people"), removed)]
    return ListedMembers(
        found[:_PAGE],
        tabs if removed else [],
        state,
        context.here(page=page - 1) if page > 1 else None,
        context.here(page=page + 1) if len(found) > _PAGE else None,
    )


def _invited(context: RequestContext, made: Invitation) -> Response:
    """Shows the link to pass on, unless it was mailed."""
    if context.can_mail:
        return context.see("/app/people", context.say("%(email)s gets a mail with a link.", email=made.email))
    heading = context.say("%(email)s is invited", email=made.email)
    return hand_on(context, heading, f"/app/link/{made.secret}", "/app/people", title=context.say("Invited"))


def hand_on(
    context: PageContext, heading: str, link: str, back: str, *, is_reset: bool = False, **values: Any
) -> Response:
    """Shows a link once, for somebody to pass on: with `is_reset` for a new password, otherwise an invitation."""
    for_days = context.say("Send them this link. It works once, for 7 days, and is not shown again.")
    for_an_hour = context.say("Send them this link. It works once, for an hour, and is not shown again.")
    values |= {"heading": heading, "said": for_an_hour if is_reset else for_days, "back": back}
    return context.page("handed_link.html", address=context.link(link), **values)
