"""`budgets`: list, create, change and end budgets."""

from collections.abc import Sequence
from typing import Any

import click

from largesse.base.errors import OperatorError
from largesse.budgets.model import PERIODS, ROLES, Budget
from largesse.budgets.service import MOST_NAME, NewBudget, change_budget, create_budget, end_budget
from largesse.budgets.store import list_budgets, subject_names
from largesse.cli.running import ID, Commands, acting_operator, operator_actor, read_limit, read_name, reading
from largesse.cli.tables import environment_option, format_options, major, show
from largesse.customers.customer_store import find_customer, find_service_account
from largesse.customers.members import find_member
from largesse.db.pool import Connection
from largesse.db.scope import OPERATOR, Place
from largesse.db.statements import read_now
from largesse.ledger.store import find_funding_account

_COLUMNS = ("id", "name", "kind", "of", "period", "currency", "limit", "spent", "left", "per_gift")
_environment = environment_option("The environment of the budget.")


@click.group(cls=Commands)
def budgets() -> None:
    """List, create, change and end budgets: what people, service accounts and funding accounts may spend."""


@budgets.command("list")
@click.argument("customer")
@_environment
@format_options
async def budgets_list(customer: str, environment: str, form: str | None) -> None:
    """List the budgets of CUSTOMER with what was spent in the current period."""
    async with reading() as connection:
        customer_id = await find_customer(connection, customer)
        found = await list_budgets(connection, (customer_id, environment), await read_now(connection))
        names = await subject_names(connection, found)
    show(form, _COLUMNS, (_row(one, names) for one in found), empty="There are no budgets.")


@budgets.command("create")
@click.argument("customer")
@click.argument("name")
@click.option("--currency", required=True, metavar="CODE", help="The currency, such as GBP.")
@click.option(
    "--person",
    "people",
    multiple=True,
    metavar="EMAIL",
    help="A person to limit. Repeat it for a limit that several people share.",
)
@click.option("--role", type=click.Choice(ROLES), help="A role whose people share the limit.")
@click.option("--service-account", metavar="KEY", help="A service account to limit, by its key.")
@click.option("--account", metavar="ACCOUNT", help="A funding account to limit: an id, a key, or CUSTOMER/KEY.")
@click.option(
    "--period", default="month", show_default=True, type=click.Choice(PERIODS), help="How often the limit starts again."
)
@click.option("--limit", metavar="AMOUNT", help="What may be spent in the period.")
@click.option("--per-gift", metavar="AMOUNT", help="What one gift may cost.")
@_environment
async def budgets_create(  # noqa: PLR0913 - what a budget is, each by its name
    *,
    customer: str,
    name: str,
    currency: str,
    people: Sequence[str],
    role: str | None,
    service_account: str | None,
    account: str | None,
    period: str,
    limit: str | None,
    per_gift: str | None,
    environment: str,
) -> None:
    """Create the budget NAME for CUSTOMER. It applies from the next order on.

    Orders of the current month or quarter (UTC) count. The period `total` counts from now.
    """
    name, code = read_name(name, MOST_NAME), currency.strip().upper()
    if sum(map(bool, (people, role, service_account, account))) != 1:
        raise OperatorError("give one of these: --person, --role, --service-account or --account")
    limit_minor = read_limit("--limit", limit, code, None)
    per_gift_minor = read_limit("--per-gift", per_gift, code, None)
    async with acting_operator() as (database, operator):
        async with database.connection(OPERATOR) as connection:
            customer_id = await find_customer(connection, customer)
            of = await _find_subject(connection, customer, people, service_account, account)
        new = NewBudget(
            name=name,
            currency=code,
            period=period,
            role=role,
            limit_minor=limit_minor,
            per_gift_minor=per_gift_minor,
            **(of or {"kind": "role"}),
        )
        actor = operator.on_behalf_of(customer_id, environment)
        budget_id = await create_budget(actor, new)
    click.echo(f"{name} is budget {budget_id} of {customer}.")


@budgets.command("change")
@click.argument("customer")
@click.argument("budget", type=ID)
@click.option("--name", help="Another name.")
@click.option("--limit", metavar="AMOUNT", help="What may be spent in the period, or `none`.")
@click.option("--per-gift", metavar="AMOUNT", help="What one gift may cost, or `none`.")
@_environment
async def budgets_change(
    customer: str, budget: int, name: str | None, limit: str | None, per_gift: str | None, environment: str
) -> None:
    """Change the budget BUDGET of CUSTOMER, by its id, from the next order on. Options that you leave out change nothing."""
    if name is None and limit is None and per_gift is None:
        raise OperatorError("say what to change: --name, --limit or --per-gift")
    async with acting_operator() as (database, operator):
        async with database.connection(OPERATOR) as connection:
            customer_id = await find_customer(connection, customer)
            found = await _find(connection, (customer_id, environment), budget)
        limit_minor = read_limit("--limit", limit, found.currency, found.limit_minor)
        per_gift_minor = read_limit("--per-gift", per_gift, found.currency, found.per_gift_minor)
        name = found.name if name is None else read_name(name, MOST_NAME, argument="--name")
        actor = operator.on_behalf_of(customer_id, environment)
        await change_budget(actor, budget, name=name, limit_minor=limit_minor, per_gift_minor=per_gift_minor)
    click.echo(f"{name} was changed.")


@budgets.command("end")
@click.argument("customer")
@click.argument("budget", type=ID)
@_environment
async def budgets_end(customer: str, budget: int, environment: str) -> None:
    """End the budget BUDGET of CUSTOMER, by its id. It no longer limits orders."""
    async with operator_actor(customer, environment) as actor:
        name = await end_budget(actor, budget)
    click.echo(f"{name} has ended.")


async def _find(connection: Connection, place: Place, budget_id: int) -> Budget:
    """Returns a budget. Raises OperatorError if there is none with that id."""
    for one in await list_budgets(connection, place, await read_now(connection)):
        if one.id == budget_id:
            return one
    raise OperatorError(f"there is no budget {budget_id} in {place[1]}")


async def _find_subject(
    connection: Connection, customer: str, people: Sequence[str], service_account: str | None, account: str | None
) -> dict[str, Any]:
    """Returns the kind and the subject of a budget; an empty dictionary if no subject is named. Raises OperatorError."""
    if service_account is not None:
        found = await find_service_account(connection, customer, service_account)
        return {"kind": "service_account", "subject_id": found.id}
    if account is not None:
        return {"kind": "account", "subject_id": (await find_funding_account(connection, account))["id"]}
    members = [await find_member(connection, customer, email) for email in people]
    if len(members) == 1:
        return {"kind": "person", "subject_id": members[0].id}
    return {"kind": "group", "user_ids": [one.id for one in members]} if members else {}


def _row(budget: Budget, names: dict[tuple[str, int], str]) -> dict[str, Any]:
    people = sorted(names.get(("person", one), "?") for one in budget.user_ids)
    of = budget.role or ", ".join(people) or names.get((budget.kind, budget.subject_id or 0), "?")
    return {
        **{name: getattr(budget, name) for name in ("id", "name", "kind", "period", "currency")},
        "of": of,
        "limit": major(budget.limit_minor, budget.currency),
        "spent": major(budget.spent_minor, budget.currency),
        "left": major(budget.left_minor, budget.currency),
        "per_gift": major(budget.per_gift_minor, budget.currency),
    }
