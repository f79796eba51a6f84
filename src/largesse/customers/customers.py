"""Operations on customers: creating them, changing their terms, and what an administrator decides for everybody."""

from __future__ import annotations

from dataclasses import replace

from largesse.base.errors import OperatorError
from largesse.base.money import label
from largesse.base.text import free_key
from largesse.customers import customer_store as store
from largesse.customers.actor import Actor
from largesse.customers.customer_store import Customer
from largesse.customers.roles import Right
from largesse.staff.model import StaffRight

PLANS = ("starter", "pro", "enterprise")
MOST_CUSTOMER_NAME = 200
MOST_CUSTOMER_KEY = 100


async def create_customer(actor: Actor, name: str, *, plan: str, funding: str, key: str | None) -> tuple[int, str]:
    """Creates a customer; returns its id and its key, which is derived from the name unless given. Raises OperatorError for a key in use."""
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        connection = transaction.connection
        if key is None:
            key = free_key(name, await store.numbered_keys(connection, free_key(name, (), "customer")), "customer")
        terms = {"key": key, "name": name, "plan": plan, "funding": funding}
        customer_id = await store.add_customer(connection, **terms)
        if customer_id is None:
            raise OperatorError(f"there is a customer {key!r} already: `customers set` changes it")
        await transaction.on_behalf_of(customer_id).record("customer.created", f"customer {customer_id}", after=terms)
    return customer_id, key


async def change_customer(
    actor: Actor, *, name: str | None = None, plan: str | None = None, funding: str | None = None
) -> Customer:
    """Changes what is given of the actor's customer, and returns the customer as it is now."""
    async with actor.transaction(StaffRight.CUSTOMERS) as transaction:
        connection = transaction.connection
        await store.lock_customer(connection, actor.customer_id)
        old = await store.read_customer(connection, actor.customer_id)
        new = replace(old, name=name or old.name, plan=plan or old.plan, funding=funding or old.funding)
        if old != new:
            await store.update_customer(connection, new)
            before, after = ({"name": one.name, "plan": one.plan, "funding": one.funding} for one in (old, new))
            await transaction.record("customer.changed", f"customer {new.id}", before=before, after=after)
    return new


async def require_second_step(actor: Actor, *, required: bool) -> None:
    """Sets whether everybody at the person's customer needs a second step."""
    assert actor.person is not None, "a person decides it"
    async with actor.transaction(Right.SETTINGS, changes_access=True) as transaction:
        await store.set_requires_second_step(transaction.connection, actor.customer_id, required=required)
        subject = actor.person.customer_name
        await transaction.record("people.second_step_required", subject, after={"required": required})


async def confirm_above(actor: Actor, currency: str, amount_minor: int | None) -> None:
    """Sets the amount in a currency above which people of the customer confirm who they are before they send. None: at no amount."""
    assert actor.person is not None, "a person decides it"
    async with actor.transaction(Right.SETTINGS, changes_access=True) as transaction:
        amounts = await store.confirmed_above(transaction.connection, actor.customer_id)
        old = amounts.pop(currency, None)
        if old == amount_minor:
            return
        if amount_minor is not None:
            amounts[currency] = amount_minor
        await store.set_confirmed_above(transaction.connection, actor.customer_id, amounts)
        before, after = (
            {"currency": currency, "above": "no amount" if one is None else label(one, currency)}
            for one in (old, amount_minor)
        )
        await transaction.record("sends.confirmed_above", actor.person.customer_name, before=before, after=after)
