"""`users`: the people of customers, who sign in to the web application. `staff`: those who sign in to the back office."""

import json

import click
from msgspec.structs import asdict

from largesse.automations.service import start_over
from largesse.base.hosts import by_name
from largesse.base.settings import load_settings
from largesse.cli.running import Commands, operator_actor, read_email, read_name, reading
from largesse.cli.tables import customer_option, format_options, show
from largesse.customers.customer_store import find_customer
from largesse.customers.members import invite, list_members, named_member, remove, reset, set_role
from largesse.customers.roles import ROLES
from largesse.customers.staff_roles import STAFF_ROLES
from largesse.ledger.store import take_all_accounts
from largesse.staff import service as staff_service
from largesse.staff.service import MOST_NAME

_COLUMNS = ("id", "customer", "email", "name", "role", "is_active", "has_signed_in", "last_login_at")
_STAFF_COLUMNS = ("id", "email", "name", "role", "is_active", "has_signed_in", "has_second_step", "last_signed_in_at")
_of_customer = click.option("--customer", required=True, help="Key of the customer.")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=Commands)
def users() -> None:
    """Invite people to the web application, and list and manage them."""


@users.command("invite")
@click.argument("email")
@_of_customer
@click.option("--name", help="What to call them; by default what is before the @.")
@click.option("--role", type=click.Choice(ROLES), help="By default the one they have, and member for somebody new.")
@_as_json
async def users_invite(email: str, customer: str, name: str | None, role: str | None, as_json: bool) -> None:
    """Invite EMAIL, and print the invitation link once. It is also mailed if a mail server is set."""
    address = read_email(email)
    called = None if name is None else read_name(name, 100, argument="--name")
    mails = load_settings().smtp_url is not None
    async with operator_actor(customer) as actor:
        made = await invite(actor, address, name=called, role=role, mails=mails, start_over=start_over)
    _print_link(f"/app/link/{made.secret}", f"Invitation for {address}, for 7 days", as_json=as_json)


@users.command("list")
@customer_option("their people")
@format_options
async def users_list(customer: str | None, form: str | None) -> None:
    """List the people of customers: their role, and whether they have signed in."""
    async with reading() as connection:
        customer_id = None if customer is None else await find_customer(connection, customer)
        members = await list_members(connection, customer_id)
    show(form, _COLUMNS, map(asdict, members), empty="There are no people: invite somebody.")


@users.command("set-role")
@click.argument("email")
@click.argument("role", type=click.Choice(ROLES))
@_of_customer
async def users_set_role(email: str, role: str, customer: str) -> None:
    """Change the role of EMAIL, from their next request on."""
    async with operator_actor(customer) as actor:
        member = await named_member(actor, customer, email)
        await set_role(actor, member.id, role)
    click.echo(f"{member.email} has the role {role} at {customer}.")


@users.command("deactivate")
@click.argument("email")
@_of_customer
async def users_deactivate(email: str, customer: str) -> None:
    """Remove EMAIL from a customer, and end their sessions there at once."""
    async with operator_actor(customer) as actor:
        member = await named_member(actor, customer, email)
        await remove(actor, member.id, take_all_accounts)
    click.echo(f"{member.email} does not belong to {customer} any longer.")


@users.command("reset")
@click.argument("email")
@click.option(
    "--second-step", is_flag=True, help="Forget their password and their second step: app, passkeys and recovery codes."
)
@_as_json
async def users_reset(email: str, second_step: bool, as_json: bool) -> None:
    """Print a link once with which EMAIL chooses a new password. Ends their sessions."""
    address = read_email(email)
    mails = load_settings().smtp_url is not None
    async with operator_actor() as actor:
        secret = await reset(actor, address, second_step=second_step, mails=mails)
    _print_link(f"/app/link/{secret}", f"A new password for {address}, for an hour", as_json=as_json)


@click.group(cls=Commands)
def staff() -> None:
    """Invite people to the back office, and list and manage them."""


@staff.command("invite")
@click.argument("email")
@click.option("--role", type=click.Choice(STAFF_ROLES), required=True, help="What they may do.")
@click.option("--name", help="What to call them; by default what is before the @.")
@_as_json
async def staff_invite(email: str, role: str, name: str | None, as_json: bool) -> None:
    """Invite EMAIL, and print the invitation link once."""
    address = read_email(email)
    called = None if name is None else read_name(name, MOST_NAME, argument="--name")
    async with operator_actor() as actor:
        secret = await staff_service.invite(actor, address, name=called, role=role)
    _print_link(f"/office/link/{secret}", f"Invitation for {address}, for 7 days", as_json=as_json)


@staff.command("list")
@format_options
async def staff_list(form: str | None) -> None:
    """List the people of the back office: their role, and whether they have signed in."""
    async with reading() as connection:
        members = await staff_service.list_staff(connection)
    show(form, _STAFF_COLUMNS, map(asdict, members), empty="There is nobody: invite somebody.")


@staff.command("set-role")
@click.argument("email")
@click.argument("role", type=click.Choice(STAFF_ROLES))
async def staff_set_role(email: str, role: str) -> None:
    """Change the role of EMAIL, from their next request on."""
    async with operator_actor() as actor:
        member = await staff_service.find_staff(actor, email)
        await staff_service.set_role(actor, member.id, role)
    click.echo(f"{member.email} has the role {role}.")


@staff.command("deactivate")
@click.argument("email")
async def staff_deactivate(email: str) -> None:
    """Deactivate EMAIL, and end their sessions at once."""
    async with operator_actor() as actor:
        member = await staff_service.find_staff(actor, email)
        await staff_service.deactivate(actor, member.id)
    click.echo(f"{member.email} may not sign in to the back office any longer.")


@staff.command("reset")
@click.argument("email")
@_as_json
async def staff_reset(email: str, as_json: bool) -> None:
    """Print a link once with which EMAIL chooses a new password. Ends their sessions, and removes their second step."""
    async with operator_actor() as actor:
        member = await staff_service.find_staff(actor, email)
        secret = await staff_service.reset(actor, member.id)
    _print_link(f"/office/link/{secret}", f"A new password for {member.email}", as_json=as_json)


def _print_link(path: str, title: str, *, as_json: bool) -> None:
    link = f"{by_name(load_settings().public_url)}{path}"
    click.echo(json.dumps({"link": link}) if as_json else f"{title}: {link}\nKeep it to yourself: it lets in once.")
