"""`staff`: the people who sign in to the back office."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from largesse.base.email import EmailError, normalise_email
from largesse.base.errors import OperatorError
from largesse.base.hosts import by_name
from largesse.base.settings import load_settings
from largesse.cli.running import Commands, command, current_database, operator_actor, read_name
from largesse.cli.tables import format_options, show
from largesse.db.scope import OPERATOR
from largesse.staff.model import MOST_NAME, STAFF_ROLES
from largesse.staff.service import deactivate, find_staff, invite, list_staff, reset, set_role

_COLUMNS = ("id", "email", "name", "role", "is_active", "has_signed_in", "has_second_step", "last_signed_in_at")

_role = click.Choice(STAFF_ROLES)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=Commands)
def staff() -> None:
    """Invite people to the back office, and list and manage them."""


@staff.command("invite")
@click.argument("email")
@click.option("--role", type=_role, required=True, help="What they may do.")
@click.option("--name", help="What to call them; by default what is before the @.")
@_as_json
@command
async def staff_invite(email: str, role: str, name: str | None, as_json: bool) -> None:
    """Invite EMAIL, and print the invitation link once."""
    try:
        address = normalise_email(email.strip())
    except EmailError as error:
        raise OperatorError(f"EMAIL is not an e-mail address: {error}") from None
    called = None if name is None else read_name(name, MOST_NAME, argument="--name")
    async with operator_actor() as actor:
        secret = await invite(actor, address, name=called, role=role)
    _print_link(secret, f"Invitation for {address}, for 7 days", as_json=as_json)


@staff.command("list")
@format_options
@command
async def staff_list(form: str | None) -> None:
    """List the people of the back office: their role, and whether they have signed in."""
    async with current_database() as database, database.connection(OPERATOR) as connection:
        members = await list_staff(connection)
    show(form, _COLUMNS, map(asdict, members), empty="There is nobody: invite somebody.")


@staff.command("set-role")
@click.argument("email")
@click.argument("role", type=_role)
@command
async def staff_set_role(email: str, role: str) -> None:
    """Change the role of EMAIL, from their next request on."""
    async with operator_actor() as actor:
        member = await find_staff(actor, email)
        await set_role(actor, member.id, role)
    click.echo(f"{member.email} has the role {role}.")


@staff.command("deactivate")
@click.argument("email")
@command
async def staff_deactivate(email: str) -> None:
    """Deactivate EMAIL, and end their sessions at once."""
    async with operator_actor() as actor:
        member = await find_staff(actor, email)
        await deactivate(actor, member.id)
    click.echo(f"{member.email} may not sign in to the back office any longer.")


@staff.command("reset")
@click.argument("email")
@_as_json
@command
async def staff_reset(email: str, as_json: bool) -> None:
    """Print a link once with which EMAIL chooses a new password. Ends their sessions, and removes their second step."""
    async with operator_actor() as actor:
        member = await find_staff(actor, email)
        secret = await reset(actor, member.id)
    _print_link(secret, f"A new password for {member.email}", as_json=as_json)


def _print_link(secret: str, title: str, *, as_json: bool) -> None:
    link = f"{by_name(load_settings().public_url)}/office/link/{secret}"
    click.echo(json.dumps({"link": link}) if as_json else f"{title}: {link}\nKeep it to yourself: it lets in once.")
