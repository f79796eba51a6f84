"""An administrator's pages of API keys, those of the environment that the pages are about."""

from __future__ import annotations

from starlette.responses import Response

from largesse.base.errors import NotFound, StartError
from largesse.base.i18n import text
from largesse.identity import (
    KeyRecord,
    NameTaken,
    ServiceAccount,
    add_key,
    delete_key,
    list_keys,
    list_service_accounts,
)
from largesse.web.console.visit import Visit

_MOST_NAME = 100
_TAKEN = text("You have a key called %(name)s already. Give this one another name.")


async def show(visit: Visit) -> Response:
    """The API keys of the environment, and the form that makes one."""
    return await _shown(visit)


async def create(visit: Visit) -> Response:
    """Makes an API key, and shows its secret this once, to who showed a moment ago that it is still them."""
    visit.require_proof("/app/keys")
    form, person = visit.form, visit.person
    accounts = [one for one in await _accounts(visit) if one.active]
    name = form.text("name", _MOST_NAME)
    account_id = form.choice("service_account", [str(one.id) for one in accounts])
    if form.errors:
        return await _shown(visit, status=422)
    account = next(one for one in accounts if str(one.id) == account_id)
    try:
        async with visit.database.transaction(person.scope) as connection:
            key_id, secret = await add_key(
                connection,
                customer_id=person.customer_id,
                service_account_id=account.id,
                environment=person.environment,
                key=name,
            )
            await visit.record(
                connection,
                "key.created",
                f"API key {key_id}",
                after={"name": name, "service_account": account.key},
            )
    except NameTaken:
        form.error("name", visit.say(_TAKEN, name=name))
        return await _shown(visit, status=422)
    command = f'curl {visit.link("/me")} -H "Authorization: Bearer {secret}"'
    return visit.page("key_made.html", name=name, secret=secret, command=command)


async def ask_deletion(visit: Visit) -> Response:
    """Asks whether a key is to be deleted. Raises NotFound."""
    return visit.page("delete_key.html", key=await _key(visit))


async def remove(visit: Visit) -> Response:
    """Deletes a key, which holds for its next request. Raises NotFound."""
    key = await _key(visit)
    async with visit.database.transaction(visit.person.scope) as connection:
        try:
            await delete_key(connection, key.id)
        except StartError:  # somebody else was faster
            raise _no_such_key() from None
        await visit.record(connection, "key.deleted", f"API key {key.id}", before={"name": key.key})
    return visit.see(
        "/app/keys", visit.say("The key %(name)s was deleted. It works no longer.", name=key.key)
    )


async def _key(visit: Visit) -> KeyRecord:
    key_id = visit.number("key")
    key = next((one for one in await _keys(visit) if one.id == key_id), None)
    if key is None:
        raise _no_such_key()
    return key


def _no_such_key() -> NotFound:
    return NotFound("There is no such key.")


async def _keys(visit: Visit) -> list[KeyRecord]:
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        keys = await list_keys(connection, customer_id=person.customer_id)
    return [key for key in keys if key.environment == person.environment]


async def _accounts(visit: Visit) -> list[ServiceAccount]:
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        return await list_service_accounts(connection, person.customer_id, person.environment)


async def _shown(visit: Visit, *, status: int = 200) -> Response:
    choices = [(str(one.id), one.name) for one in await _accounts(visit) if one.active]
    return visit.page("keys.html", status=status, keys=await _keys(visit), accounts=choices)
