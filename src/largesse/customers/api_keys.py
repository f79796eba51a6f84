"""Operations on API keys: creating, replacing, restricting and deleting them.

A key is replaced in two steps: `replace_key` creates a second key beside it, and `delete_key` deletes the first when it is no longer used.
"""

import re
from collections.abc import Sequence
from types import EllipsisType
from typing import NamedTuple

from msgspec.structs import replace

from largesse.base.errors import InvalidRequest
from largesse.base.settings import Network
from largesse.customers import key_store as store
from largesse.customers.actor import Actor, require_same
from largesse.customers.customer_store import ServiceAccount
from largesse.customers.key_store import ApiKey, NameTaken
from largesse.customers.roles import Right
from largesse.db.pool import Connection

MOST_NAME = 100
_NUMBER = re.compile(r" [0-9]{1,3}$")
_MOST_NUMBER = 200


class NewKey(NamedTuple):
    """A key that was just created, with its secret, which cannot be read again."""

    id: int
    name: str
    secret: str


class AlreadyReplaced(InvalidRequest):
    """The key has a second key already."""


async def find_key(connection: Connection, actor: Actor, key_id: int) -> ApiKey:
    """Returns a key that the actor may change. A person may change keys of their customer and environment. Raises NotFound."""
    for key in await store.list_keys(connection, key_id=key_id):
        if actor.person is None or (key.customer_id, key.environment) == (actor.customer_id, actor.environment):
            return key
    raise store.no_such_key(key_id)


async def create_key(
    actor: Actor,
    account: ServiceAccount,
    name: str,
    *,
    scopes: Sequence[str] | None = None,
    networks: Sequence[Network] | None = None,
) -> NewKey:
    """Creates an API key for a service account in the actor's environment. Raises NameTaken."""
    assert actor.environment is not None, "a key belongs to an environment"
    async with actor.transaction(Right.SETTINGS) as transaction:
        key_id, secret = await store.add_key(
            transaction.connection,
            customer_id=actor.customer_id,
            service_account_id=account.id,
            environment=actor.environment,
            key=name,
            scopes=scopes,
            networks=networks,
            made_by=actor.user_id,
        )
        after = {"name": name, "service_account": account.key, **_restrictions(scopes, networks)}
        await transaction.record("key.created", f"API key {key_id}", after=after)
    return NewKey(key_id, name, secret)


async def replace_key(actor: Actor, key_id: int) -> NewKey:
    """Creates a second key beside a key, with the same service account, scopes and networks.

    Both work until the first is deleted. Raises NotFound, and AlreadyReplaced for a key that has a second one.
    """
    async with actor.transaction(Right.SETTINGS) as transaction:
        connection = transaction.connection
        await find_key(connection, actor, key_id)
        row = await store.lock_key(connection, key_id)
        # The key is locked above, so that two simultaneous requests do not both create a second key.
        second = await store.find_replacement(connection, row["customer_id"], key_id)
        if second is not None:
            raise AlreadyReplaced(f"API key {second} replaces it already")
        # Only a second key has a number that we added. In any other name, a number is part of the name.
        plain = row["key"] if row["replaces"] is None else _NUMBER.sub("", row["key"])
        for number in range(2, _MOST_NUMBER):
            name = numbered(plain, number)
            columns = {**row, "key": name, "replaces": key_id, "made_by": actor.user_id}
            try:
                new_id, secret = await store.add_key(connection, **columns)
            except NameTaken:
                continue
            own = transaction.on_behalf_of(row["customer_id"], row["environment"])
            await own.record("key.created", f"API key {new_id}", after={"name": name, "replaces": row["key"]})
            return NewKey(new_id, name, secret)
    raise AlreadyReplaced(f"API key {key_id} has been replaced too often: delete an old key of that name first")


async def narrow_key(
    actor: Actor,
    key_id: int,
    *,
    scopes: Sequence[str] | EllipsisType | None = ...,
    networks: Sequence[Network] | EllipsisType | None = ...,
    seen: ApiKey | None = None,
) -> ApiKey:
    """Sets what a key may be used for and from where, from its next request on. Returns the key as it is now. Raises NotFound.

    None lifts a restriction; one that is not given stays. Raises ReadAgain if the restrictions are not those of `seen` any more.
    """
    async with actor.transaction(Right.SETTINGS) as transaction:
        await find_key(transaction.connection, actor, key_id)
        # Locked before it is read, so that two simultaneous changes do not undo each other.
        await store.lock_key(transaction.connection, key_id)
        old = await find_key(transaction.connection, actor, key_id)
        require_same(seen and (seen.scopes, seen.networks), (old.scopes, old.networks))
        new = replace(
            old,
            scopes=old.scopes if isinstance(scopes, EllipsisType) else scopes,
            networks=old.networks if isinstance(networks, EllipsisType) else networks,
        )
        before, after = _restrictions(old.scopes, old.networks), _restrictions(new.scopes, new.networks)
        if before != after:
            await store.narrow_key(transaction.connection, key_id, scopes=new.scopes, networks=new.networks)
            own = transaction.on_behalf_of(old.customer_id, old.environment)
            await own.record("key.narrowed", f"API key {key_id}", before=before, after=after)
    return new


async def delete_key(actor: Actor, key_id: int) -> ApiKey:
    """Deletes a key, which stops working at once. Returns the key as it was. Raises NotFound."""
    async with actor.transaction(Right.SETTINGS) as transaction:
        key = await find_key(transaction.connection, actor, key_id)
        await store.delete_key(transaction.connection, key_id)
        own = transaction.on_behalf_of(key.customer_id, key.environment)
        await own.record("key.deleted", f"API key {key_id}", before={"name": key.key})
    return key


def _restrictions(scopes: Sequence[str] | None, networks: Sequence[Network] | None) -> dict[str, list[str] | None]:
    """Returns the scopes and networks of a key, for the audit log."""
    return {
        "scopes": None if scopes is None else list(scopes),
        "networks": None if networks is None else [str(network) for network in networks],
    }


def numbered(name: str, number: int) -> str:
    """Returns a name with a number at its end, cut to the longest name."""
    suffix = f" {number}"
    return name[: MOST_NAME - len(suffix)] + suffix
