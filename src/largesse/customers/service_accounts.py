"""Operations on service accounts: creating them, switching them on and off, and limiting what they may order."""

from types import EllipsisType

import msgspec

from largesse.base.errors import InvalidRequest
from largesse.base.text import free_key
from largesse.customers import customer_store as store
from largesse.customers.actor import Actor
from largesse.customers.restrictions import Limit, read_limits
from largesse.customers.roles import Right
from largesse.customers.staff_roles import StaffRight

MOST_SERVICE_ACCOUNTS = 200


class TooManyServiceAccounts(InvalidRequest, rule=f"A customer has at most {MOST_SERVICE_ACCOUNTS} service accounts."):
    """The customer has as many service accounts as it may."""


class NameTaken(InvalidRequest, rule="Another service account has this name."):
    """Another service account of the customer has this name. Letter case is ignored."""


async def named_service_account(actor: Actor, customer: str, key: str) -> store.ServiceAccount:
    """Returns a service account by the key of its customer and its own key, for a command. Raises OperatorError if there is none."""
    async with actor.transaction() as transaction:
        return await store.find_service_account(transaction.connection, customer, key)


async def create_service_account(actor: Actor, name: str) -> tuple[int, str]:
    """Creates a service account, and returns its id and its key, which is made from the name. Raises TooManyServiceAccounts, NameTaken."""
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS) as transaction:
        # Locked, so that two simultaneous requests neither exceed the maximum nor take the same key.
        await store.lock_customer(transaction.connection, actor.customer_id)
        accounts = await store.list_service_accounts(transaction.connection, actor.customer_id)
        if len(accounts) >= MOST_SERVICE_ACCOUNTS:
            raise TooManyServiceAccounts
        if name.casefold() in {account.name.casefold() for account in accounts}:
            raise NameTaken
        key = free_key(name, {account.key for account in accounts}, "service-account")
        account_id: int = await transaction.connection.fetchval(store.ADD_SERVICE_ACCOUNT, actor.customer_id, key, name)
        after = {"name": name, "key": key}
        await transaction.record("service_account.created", f"service account {account_id}", after=after)
    return account_id, key


async def switch_service_account(actor: Actor, account_id: int, *, active: bool) -> str:
    """Switches a service account on or off, from its next request on. Returns its name. Raises NotFound."""
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS) as transaction:
        row = await store.lock_service_account(transaction.connection, actor.customer_id, account_id)
        name: str = row["name"]
        if row["active"] is not active:
            await transaction.connection.execute(store.SET_ACTIVE, actor.customer_id, account_id, active)
            after = {"name": name, "active": active}
            await transaction.record("service_account.switched", f"service account {account_id}", after=after)
    return name


async def limit_service_account(
    actor: Actor,
    account_id: int,
    currency: str,
    *,
    largest_order_minor: int | EllipsisType | None = ...,
    daily_minor: int | EllipsisType | None = ...,
) -> Limit:
    """Limits what a service account may order in a currency, from its next order on, and returns the limit.

    None removes a limit. A limit that is not given stays. Raises OperatorError for an unknown currency, and NotFound for an account of
    another customer.
    """
    async with actor.transaction(Right.SETTINGS, StaffRight.CUSTOMERS) as transaction:
        connection = transaction.connection
        await store.require_currency(connection, currency)
        row = await store.lock_service_account(connection, actor.customer_id, account_id)
        limits = read_limits(row["limits"])
        old = limits.get(currency, Limit())
        new = Limit(
            old.largest_order_minor if isinstance(largest_order_minor, EllipsisType) else largest_order_minor,
            old.daily_minor if isinstance(daily_minor, EllipsisType) else daily_minor,
        )
        if old != new:
            await store.set_limits(connection, actor.customer_id, account_id, {**limits, currency: new})
            before, after = ({"currency": currency, **msgspec.structs.asdict(limit)} for limit in (old, new))
            subject = f"service account {account_id}"
            await transaction.record("service_account.limited", subject, before=before, after=after)
    return new
