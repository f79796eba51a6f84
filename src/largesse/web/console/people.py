"""An administrator's page of who belongs to the customer: invite, give a role, take away."""

from __future__ import annotations

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
from largesse.ledger.access import Holder, list_assignable, take_all_accounts
from largesse.web.console.context import Visit
from largesse.web.console.service_accounts import assign_to

ROLE_NAMES = {
    "admin": text("Administrator"),
    "member": text("Member"),
    "finance": text("Finance"),
    "viewer": text("Viewer"),
}
_LAST = text("A company needs an administrator: make somebody else one first.")
_MOST_NAME = 100


async def show(visit: Visit) -> Response:
    """Everybody, with their role, and the form that invites."""
    return await _shown(visit)


async def download(visit: Visit) -> Response:
    """The same people as a file."""
    columns = ("name", "e-mail address", "role", "belongs", "second step", "last signed in at")
    rows = [
        (
            one.name,
            one.email,
            one.role,
            "yes" if one.is_active else "no",
            "yes" if one.has_second_step else "no",
            visit.instant(one.last_login_at),
        )
        for one in await _colleagues(visit)
    ]
    return await visit.csv("people.csv", columns, rows)


async def send_invitation(visit: Visit) -> Response:
    """Invites an address, and shows the link to hand on."""
    form, person = visit.form, visit.person
    email = form.email("email")
    name = form.text("name", _MOST_NAME, required=False)
    role = form.choice("role", ROLES)
    if form.errors:
        return await _shown(visit, status=422)
    try:
        async with visit.writing(changes_access=True) as connection:
            made = await invite(connection, person.customer_id, email, name=name or None, role=role)
            await _mail(visit, connection, made)
            await visit.record(connection, "person.invited", made.email, after={"role": role})
    except AlreadyThere:
        form.error("email", visit.say("%(email)s belongs to your company already.", email=email))
    except InvalidRequest:
        form.error("email", visit.say("Your company has as many people as it can. Remove somebody first."))
    if form.errors:
        return await _shown(visit, status=422)
    return _invited(visit, made)


async def send_again(visit: Visit) -> Response:
    """Makes a new link for who was invited. Raises NotFound."""
    person = visit.person
    try:
        async with visit.writing(changes_access=True) as connection:
            made = await invite_again(connection, person.customer_id, visit.number("user"))
            await _mail(visit, connection, made)
            await visit.record(connection, "person.invited", made.email)
    except AlreadyThere:
        return visit.see("/app/people", visit.say("They have signed in already: no new link is needed."))
    return _invited(visit, made)


async def ask_role(visit: Visit) -> Response:
    """Asks an administrator whether they mean to give up that role themselves."""
    role = visit.query("role")
    if visit.number("user") != visit.person.user_id or role not in ROLES or role == ADMIN:
        return visit.see("/app/people")
    return visit.page(
        "own_role.html", user_id=visit.person.user_id, role=role, role_name=visit.say(ROLE_NAMES[role])
    )


async def give_role(visit: Visit) -> Response:
    """Gives somebody a role; who gives up being an administrator is asked first. Raises NotFound."""
    person, role = visit.person, visit.form.choice("role", ROLES)
    if visit.form.errors:
        return visit.see("/app/people")
    is_own = visit.number("user") == person.user_id and role != ADMIN
    if is_own and visit.form["sure"] != "yes":
        return visit.see(f"/app/people/{person.user_id}/role?role={role}")
    try:
        async with visit.writing(changes_access=True) as connection:
            colleague = await set_role(connection, person.customer_id, visit.number("user"), role)
            before, after = {"role": colleague.role}, {"role": role}
            await visit.record(connection, "person.role_changed", colleague.email, before=before, after=after)
    except InvalidRequest:
        return visit.see("/app/people", visit.say(_LAST))
    said = visit.say("%(name)s is %(role)s now.", name=colleague.name, role=visit.say(ROLE_NAMES[role]))
    return visit.see("/app" if is_own else "/app/people", said)


async def one(visit: Visit) -> Response:
    """Somebody who belongs to the customer: what they may do, and the accounts they may use. Raises NotFound."""
    person = visit.person
    colleague = await _colleague(visit)
    async with visit.database.connection(person.scope) as connection:
        accounts = await list_assignable(
            connection, Holder.PERSON, person.customer_id, person.environment, colleague.id
        )
    return visit.page(
        "person.html", colleague=colleague, role=visit.say(ROLE_NAMES[colleague.role]), accounts=accounts
    )


async def assign(visit: Visit) -> Response:
    """Says which funding accounts somebody may use whose role has them use some alone. Raises NotFound."""
    colleague = await _colleague(visit)
    here = f"/app/people/{colleague.id}"
    await assign_to(visit, Holder.PERSON, colleague.id, colleague.email)
    said = visit.say("The accounts that %(name)s may use are changed, from now on.", name=colleague.name)
    return visit.see(here, said)


async def ask_removal(visit: Visit) -> Response:
    """Asks whether somebody is to be removed. Raises NotFound."""
    user_id = visit.number("user")
    colleague = next((one for one in await _colleagues(visit) if one.id == user_id), None)
    if colleague is None or not colleague.is_active:
        return visit.see("/app/people")
    return visit.page("remove_person.html", colleague=colleague)


async def take_away(visit: Visit) -> Response:
    """Removes somebody at once, with their sessions. Raises NotFound."""
    person = visit.person
    try:
        async with visit.writing(changes_access=True) as connection:
            colleague = await remove(connection, person.customer_id, visit.number("user"))
            await take_all_accounts(connection, person.customer_id, colleague.id)
            await visit.record(connection, "person.removed", colleague.email, before={"role": colleague.role})
    except InvalidRequest:
        return visit.see("/app/people", visit.say(_LAST))
    said = visit.say("%(name)s was removed, and is signed out everywhere.", name=colleague.name)
    return visit.see("/app/people", said)


async def _colleague(visit: Visit) -> Colleague:
    user_id = visit.number("user")
    found = next((one for one in await _colleagues(visit) if one.id == user_id and one.is_active), None)
    if found is None:
        raise NotFound("Nobody of that number belongs to the customer.")
    return found


async def _colleagues(visit: Visit) -> list[Colleague]:
    async with visit.database.connection(visit.person.scope) as connection:
        return await list_colleagues(connection, visit.person.customer_id)


async def _shown(visit: Visit, *, status: int = 200) -> Response:
    roles = [(role, visit.say(name)) for role, name in ROLE_NAMES.items()]
    return visit.page("people.html", status=status, colleagues=await _colleagues(visit), roles=roles)


async def _mail(visit: Visit, connection: Connection, made: Invitation) -> None:
    if visit.services.settings.smtp_url is not None:
        await mail_invitation(connection, made.user_id)


def _invited(visit: Visit, made: Invitation) -> Response:
    """The link to hand on; where it is mailed, nobody else needs it."""
    if visit.services.settings.smtp_url is not None:
        return visit.see("/app/people", visit.say("%(email)s gets a mail with a link.", email=made.email))
    return visit.page("invited.html", made=made, address=visit.link(f"/app/link/{made.secret}"))
