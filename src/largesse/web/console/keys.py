"""An administrator's pages of the API keys in the current environment.

A key is replaced in two steps: create a second key, and delete the first one when it is no longer used.
"""

import ipaddress
import re
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from largesse.base.i18n.languages import text
from largesse.base.settings import Network, parse_network
from largesse.customers import api_keys, restrictions
from largesse.customers.customer_store import ServiceAccount, list_service_accounts
from largesse.customers.key_store import ApiKey, NameTaken, list_keys, no_such_key
from largesse.web.console.context import RequestContext

# The labels of the scopes in the form.
NAMES = {
    "read": text("Read: the catalogue, accounts, orders and their states"),
    "send": text("Send: place, quote and cancel orders, and send mail again"),
    "codes": text("Codes: read the codes and PINs of orders"),
    "webhooks": text("Webhooks: subscriptions and their deliveries"),
    "contacts": text("Contacts: read and change the people you send to"),
}
MOST_TYPED = 5_000
_COLUMNS = (
    *(text("Name"), text("Service account"), text("Scopes"), text("Allowed networks"), text("Created at (UTC)")),
    *(text("Created by"), text("Last used at (UTC)"), text("Last used from")),
)
_SHOWN_WRONG = 5
_BETWEEN = re.compile(r"[\s,;]+")
_NO_NETWORK = text("Not a network: %(found)s. Type an address, such as 192.0.2.7, or a range, such as 198.51.100.0/24.")
_TOO_MANY = text("At most %(most)s networks are allowed.")


def read_scopes(context: RequestContext) -> list[str] | None:
    """Returns the scopes in the form; None for all. Adds errors to the form."""
    given = context.form.all("scope")
    if not given:
        context.form.error("scope", context.say("Choose at least one scope."))
    elif not set(given) <= set(restrictions.SCOPES):
        context.form.error("scope", context.say("Choose one of the options."))
    return restrictions.stored_scopes(given)


def read_networks(context: RequestContext) -> list[Network] | None:
    """Returns the networks in the form, from which the key may be used; None for any network. Adds errors to the form."""
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
    elif len(found) > restrictions.MOST_NETWORKS:
        context.form.error("networks", context.say(_TOO_MANY, most=restrictions.MOST_NETWORKS))
    return list(found) or None


def networks_typed(networks: Sequence[Network] | None) -> str:
    """Returns networks as people type them: one per line, a single address without a prefix length."""
    return "\n".join(str(one.network_address) if one.num_addresses == 1 else str(one) for one in networks or ())


def _meant(typed: str) -> str:
    """Returns the typed text with the range that it probably means."""
    try:
        return f"{typed[:50]} ({ipaddress.ip_network(typed, strict=False)}?)"
    except ValueError:
        return typed[:50]


async def show(context: RequestContext) -> Response:
    """Shows the API keys of the environment, and the form that creates one."""
    choices = [(str(one.id), one.name) for one in await _accounts(context) if one.active]
    return context.page("keys.html", keys=await _keys(context), accounts=choices, **_narrowing(context, None))


async def download(context: RequestContext) -> Response:
    """Sends the API keys of the environment as a CSV file."""
    rows = [
        (
            key.key,
            key.service_account_name,
            context.say("Everything") if key.scopes is None else restrictions.scopes_text(key.scopes),
            context.say("Every network") if key.networks is None else restrictions.networks_text(key.networks),
            context.instant(key.created_at),
            key.made_by or context.say("Created by the operator"),
            context.instant(key.last_seen_at),
            key.last_seen_address,
        )
        for key in await _keys(context)
    ]
    return await context.csv("api-keys.csv", [context.say(one) for one in _COLUMNS], rows)


async def create(context: RequestContext) -> Response:
    """Creates an API key, and shows its secret once."""
    form = context.form
    accounts = {str(one.id): one for one in await _accounts(context) if one.active}
    name = form.text("name", api_keys.MOST_NAME)
    account_id = form.choice("service_account", list(accounts))
    scopes, networks = read_scopes(context), read_networks(context)
    if not form.errors:
        try:
            made = await api_keys.create_key(
                context.actor, accounts[account_id], name, scopes=scopes, networks=networks
            )
            return _made(context, made)
        except NameTaken:
            said = context.say("You have a key called %(name)s already. Give this one another name.", name=name)
            form.error("name", said)
    return await show(context)


async def one(context: RequestContext) -> Response:
    """Shows a key: its scopes, its networks, and the steps to replace it. Raises NotFound."""
    keys = await _keys(context)
    key = _found(keys, context.number("key"))
    first = next((one for one in keys if one.id == key.replaces), None)
    second = next((one for one in keys if one.replaces == key.id), None)
    return context.page(
        "key.html",
        key=key,
        now={"scope": " ".join(key.scopes or restrictions.SCOPES), "networks": networks_typed(key.networks)},
        pair=(first, key) if first else (key, second) if second else None,
        **_narrowing(context, key),
    )


async def narrow(context: RequestContext) -> Response:
    """Sets the scopes and networks of a key, from its next request on. Keeps what others changed meanwhile. Raises NotFound."""
    key = _found(await _keys(context), context.number("key"))
    context.form.keep_others({"networks": networks_typed(key.networks)})
    context.form.keep_choices("scope", key.scopes or restrictions.SCOPES)
    scopes, networks = read_scopes(context), read_networks(context)
    if context.form.errors:
        return await one(context)
    key = await api_keys.narrow_key(context.actor, key.id, scopes=scopes, networks=networks, seen=key)
    done = context.say("The key %(name)s was changed. The change applies from its next request.", name=key.key)
    return context.see(f"/app/keys/{key.id}", done)


async def replace(context: RequestContext) -> Response:
    """Creates a second key to replace a key, and shows its secret once. Raises NotFound."""
    key_id = context.number("key")
    try:
        return _made(context, await api_keys.replace_key(context.actor, key_id))
    except api_keys.AlreadyReplaced:
        return context.see(f"/app/keys/{key_id}", context.say("There is a second key already."))


async def ask_deletion(context: RequestContext) -> Response:
    """Asks whether to delete a key. Raises NotFound."""
    return context.page("delete_key.html", key=_found(await _keys(context), context.number("key")))


async def remove(context: RequestContext) -> Response:
    """Deletes a key, which stops working at once. Raises NotFound."""
    key = await api_keys.delete_key(context.actor, context.number("key"))
    said = context.say("The key %(name)s was deleted. Requests that use it are refused.", name=key.key)
    return context.see("/app/keys", said)


def _made(context: RequestContext, made: api_keys.NewKey) -> Response:
    address = context.services.settings.public_url_of(context.person.environment)
    command = f'curl {address}/me -H "Authorization: Bearer {made.secret}"'
    return context.page("key_made.html", key_id=made.id, name=made.name, secret=made.secret, command=command)


def _found(keys: Sequence[ApiKey], key_id: int) -> ApiKey:
    for key in keys:
        if key.id == key_id:
            return key
    raise no_such_key(key_id)


async def _keys(context: RequestContext) -> list[ApiKey]:
    keys = await context.read(list_keys, customer_id=context.person.customer_id)
    return [key for key in keys if key.environment == context.person.environment]


async def _accounts(context: RequestContext) -> list[ServiceAccount]:
    return await context.read(list_service_accounts, *context.customer)


def _narrowing(context: RequestContext, key: ApiKey | None) -> dict[str, Any]:
    """Returns the scopes and networks that the form shows: the typed ones, otherwise those of the key."""
    scopes = context.form.all("scope") if context.form["token"] else (key and key.scopes) or restrictions.SCOPES
    return {
        "scope_names": NAMES,
        "scopes": scopes,
        "networks": networks_typed(key.networks if key else None),
        "address": context.origin.address,
    }
