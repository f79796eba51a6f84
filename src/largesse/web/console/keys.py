"""The part of a form that says what an API key is for, and from where it may be used.

An administrator's pages of API keys, those of the environment that the pages are about.

A key is replaced in two steps: a second one is made beside it, and when the first is no longer used, that is deleted.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from largesse.base.errors import NotFound, OperatorError
from largesse.base.i18n.templates import text
from largesse.base.settings import Network
from largesse.customers.api_keys import (
    MOST_NAME,
    KeyRecord,
    NameTaken,
    add_key,
    add_second_key,
    delete_key,
    list_keys,
    narrow_key,
)
from largesse.customers.restrictions import (
    MOST_NETWORKS,
    SCOPES,
    networks_said,
    parse_network,
    scopes_kept,
    scopes_said,
)
from largesse.customers.service_accounts import ServiceAccount, list_service_accounts
from largesse.web.console.context import RequestContext

# What a key may be for, as the form says it.
NAMES = {
    "read": text("Look: the catalogue, accounts, orders and how they are doing"),
    "send": text("Send: orders and quotes, cancelling, mail once more"),
    "codes": text("Codes: codes and PINs in what it is told"),
    "webhooks": text("Webhooks: subscriptions and their deliveries"),
}
MOST_TYPED = 5_000
_SHOWN_WRONG = 5
_BETWEEN = re.compile(r"[\s,;]+")
_NO_SCOPE = text("Choose at least one thing that it is for.")
_UNKNOWN_SCOPE = text("Choose one of those offered.")
_NO_NETWORK = text("No network: %(found)s. Write one address, such as 192.0.2.7, or a range, such as 198.51.100.0/24.")
_TOO_MANY = text("At most %(most)s networks are allowed.")


def read_scopes(context: RequestContext) -> list[str] | None:
    """What the key is to be for; None: everything. What is wrong is noted in the form."""
    given = context.form.all("scope")
    if not given:
        context.form.error("scope", context.say(_NO_SCOPE))
    elif not set(given) <= set(SCOPES):
        context.form.error("scope", context.say(_UNKNOWN_SCOPE))
    return scopes_kept(given)


def read_networks(context: RequestContext) -> list[Network] | None:
    """The networks that the key may be used from, in any order; None: everywhere. All that are wrong are noted in the form."""
    found: dict[Network, None] = {}
    wrong = []
    for typed in _BETWEEN.split(context.form.text("networks", MOST_TYPED, required=False, lines=True)):
        try:
            if typed:
                found[parse_network(typed)] = None
        except ValueError:
            wrong.append(_meant(typed))
    if wrong:
        context.form.error("networks", context.say(_NO_NETWORK, found=", ".join(wrong[:_SHOWN_WRONG])))
    elif len(found) > MOST_NETWORKS:
        context.form.error("networks", context.say(_TOO_MANY, most=MOST_NETWORKS))
    return list(found) or None


def networks_typed(networks: Sequence[Network] | None) -> str:
    """Networks as they are typed: one a line, an address without what makes it a network."""
    return "\n".join(str(one.network_address) if one.num_addresses == 1 else str(one) for one in networks or ())


def _meant(typed: str) -> str:
    """What was typed, and the range it is in where it names an address within one."""
    try:
        return f"{typed[:50]} ({ipaddress.ip_network(typed, strict=False)}?)"
    except ValueError:
        return typed[:50]


_TAKEN = text("You have a key called %(name)s already. Give this one another name.")


async def show(context: RequestContext) -> Response:
    """The API keys of the environment, and the form that makes one."""
    return await _shown(context)


async def download(context: RequestContext) -> Response:
    """The same keys as a file."""
    columns = ("name", "service account", "for", "from", "made at", "made by", "last used at", "last used from")
    rows = [
        (
            key.key,
            key.service_account,
            scopes_said(key.scopes),
            networks_said(key.networks),
            context.instant(key.created_at),
            key.made_by,
            context.instant(key.last_seen_at),
            key.last_seen_address,
        )
        for key in await _keys(context)
    ]
    return await context.csv("api-keys.csv", columns, rows)


async def create(context: RequestContext) -> Response:
    """Makes an API key, and shows its secret this once, to who showed a moment ago that it is still them."""
    form, person = context.form, context.person
    accounts = [one for one in await _accounts(context) if one.active]
    name = form.text("name", MOST_NAME)
    account_id = form.choice("service_account", [str(one.id) for one in accounts])
    scopes, networks = read_scopes(context), read_networks(context)
    if form.errors:
        return await _shown(context, status=422)
    account = next(one for one in accounts if str(one.id) == account_id)
    try:
        async with context.writing() as connection:
            key_id, secret = await add_key(
                connection,
                customer_id=person.customer_id,
                service_account_id=account.id,
                environment=person.environment,
                key=name,
                scopes=scopes,
                networks=networks,
                made_by=person.user_id,
            )
            told = {"name": name, "service_account": account.key, **_told(scopes, networks)}
            await context.record(connection, "key.created", f"API key {key_id}", after=told)
    except NameTaken:
        form.error("name", context.say(_TAKEN, name=name))
        return await _shown(context, status=422)
    return _made(context, key_id, name, secret)


async def one(context: RequestContext) -> Response:
    """A key: what it is for, from where, and how it is replaced. Raises NotFound."""
    return await _one_shown(context)


async def narrow(context: RequestContext) -> Response:
    """Says what a key is for, and from where it may be used, which holds for its next request. Raises NotFound."""
    key = await _key(context)
    scopes, networks = read_scopes(context), read_networks(context)
    if context.form.errors:
        return await _one_shown(context, status=422)
    before, after = _told(key.scopes, key.networks), _told(scopes, networks)
    if before != after:
        async with context.writing() as connection:
            try:
                await narrow_key(connection, key.id, scopes=scopes, networks=networks)
            except OperatorError:  # it was deleted meanwhile
                raise _no_such_key() from None
            await context.record(connection, "key.narrowed", f"API key {key.id}", before=before, after=after)
    said = context.say("What %(name)s may do is changed, from its next request on.", name=key.key)
    return context.see(f"/app/keys/{key.id}", said)


async def replace(context: RequestContext) -> Response:
    """Makes a second key beside one, and shows its secret this once. Raises NotFound."""
    key, person = await _key(context), context.person
    try:
        async with context.writing() as connection:
            made = await add_second_key(connection, key.id, customer_id=person.customer_id, made_by=person.user_id)
            told = {"name": made.key, "replaces": key.key}
            await context.record(connection, "key.created", f"API key {made.id}", after=told)
    except OperatorError:  # somebody else was faster
        return context.see(f"/app/keys/{key.id}", context.say("There is a second key already."))
    return _made(context, made.id, made.key, made.secret)


async def ask_deletion(context: RequestContext) -> Response:
    """Asks whether a key is to be deleted. Raises NotFound."""
    return context.page("delete_key.html", key=await _key(context))


async def remove(context: RequestContext) -> Response:
    """Deletes a key, which holds for its next request. Raises NotFound."""
    key = await _key(context)
    async with context.writing() as connection:
        try:
            await delete_key(connection, key.id)
        except OperatorError:  # somebody else was faster
            raise _no_such_key() from None
        await context.record(connection, "key.deleted", f"API key {key.id}", before={"name": key.key})
    return context.see("/app/keys", context.say("The key %(name)s was deleted. It works no longer.", name=key.key))


def _made(context: RequestContext, key_id: int, name: str, secret: str) -> Response:
    command = f'curl {context.link("/me")} -H "Authorization: Bearer {secret}"'
    return context.page("key_made.html", key_id=key_id, name=name, secret=secret, command=command)


def _told(scopes: Sequence[str] | None, networks: Sequence[Network] | None) -> dict[str, str]:
    """How far a key is narrowed, as the audit log keeps it."""
    return {"for": scopes_said(scopes), "from": networks_said(networks)}


async def _key(context: RequestContext) -> KeyRecord:
    return _found(await _keys(context), context.number("key"))


def _found(keys: Sequence[KeyRecord], key_id: int) -> KeyRecord:
    key = next((one for one in keys if one.id == key_id), None)
    if key is None:
        raise _no_such_key()
    return key


def _no_such_key() -> NotFound:
    return NotFound("There is no such key.")


async def _keys(context: RequestContext) -> list[KeyRecord]:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        keys = await list_keys(connection, customer_id=person.customer_id)
    return [key for key in keys if key.environment == person.environment]


async def _accounts(context: RequestContext) -> list[ServiceAccount]:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        return await list_service_accounts(connection, person.customer_id, person.environment)


async def _one_shown(context: RequestContext, *, status: int = 200) -> Response:
    keys = await _keys(context)
    key = _found(keys, context.number("key"))
    first = next((one for one in keys if one.id == key.replaces), None)
    second = next((one for one in keys if one.replaces == key.id), None)
    return context.page(
        "key.html",
        status=status,
        key=key,
        pair=(first, key) if first else (key, second) if second else None,
        **_narrowing(context, key),
    )


async def _shown(context: RequestContext, *, status: int = 200) -> Response:
    choices = [(str(one.id), one.name) for one in await _accounts(context) if one.active]
    return context.page(
        "keys.html", status=status, keys=await _keys(context), accounts=choices, **_narrowing(context, None)
    )


def _narrowing(context: RequestContext, key: KeyRecord | None) -> dict[str, Any]:
    """What the part of the form shows that says what a key is for: what was typed, else what holds."""
    scopes = context.form.all("scope") if context.form["token"] else (key and key.scopes) or SCOPES
    return {
        "scope_names": NAMES,
        "scopes": scopes,
        "networks": networks_typed(key.networks if key else None),
        "most_networks": MOST_TYPED,
        "address": context.origin.address,
    }
