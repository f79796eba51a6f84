"""Opening a customer: with its funding accounts and its first administrator, all in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from largesse.customers.actor import Actor
from largesse.customers.customers import create_customer
from largesse.customers.members import Invitation, invite
from largesse.customers.principal import ADMIN
from largesse.ledger.accounts import create_account
from largesse.staff.model import StaffRight

ACCOUNT_NAME = "Main"


async def open_customer(
    actor: Actor,
    name: str,
    *,
    plan: str,
    funding: str,
    currency: str,
    environments: Sequence[str],
    email: str,
    mails: bool,
) -> tuple[int, Invitation]:
    """Creates a customer with an account in each of the environments, and invites its first administrator; returns its id and the invitation.

    An invoiced customer has no account. With `mails` the invitation is also mailed. Raises as `create_customer`, `create_account` and `invite` do.
    """
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        joined = actor.within(transaction)
        customer_id, _ = await create_customer(joined, name, plan=plan, funding=funding, key=None)
        for environment in environments if funding == "balance" else ():
            await create_account(joined.on_behalf_of(customer_id, environment), currency=currency, name=ACCOUNT_NAME)
        invitation = await invite(joined.on_behalf_of(customer_id), email, name=None, role=ADMIN, mails=mails)
    return customer_id, invitation
