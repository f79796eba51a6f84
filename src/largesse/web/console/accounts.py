"""Group accounts: administrators make them, give them other names, close and open them; they and finance say who is told when one holds little."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from largesse.base.errors import InvalidRequest
from largesse.base.i18n.templates import text
from largesse.customers.roles import Right
from largesse.ledger.accounts import SeenAccount, find_seen_account, list_seen_accounts
from largesse.ledger.group_accounts import (
    LONGEST_NAME,
    MOST_ACCOUNTS,
    AccountRefused,
    Why,
    add_account,
    close_account,
    open_account,
    rename_account,
)
from largesse.ledger.low_balance import MOST_TOLD, Watch, find_watch, list_readers, set_watch
from largesse.web.console.context import RequestContext, typed_amount

_SAID = {
    Why.TOO_MANY: text("Your company has as many accounts as it can."),
    Why.NAME_TAKEN: text("Another account has this name."),
    Why.NO_CURRENCY: text("Choose one of those offered."),
    Why.INVOICED: text("Your company is invoiced and pays from no account."),
    Why.MASTER: text("This is your company's first account, which stays open."),
    Why.HOLDS: text("The account still holds money. Move it to another one first."),
    Why.AWAITS: text("A top-up of the account waits for its transfer. Cancel it first."),
}
_WHO = text("Choose who is told, at most %(most)s people.")


async def ask_account(context: RequestContext) -> Response:
    """The form for a new one."""
    return await _asked(context)


async def create(context: RequestContext) -> Response:
    """Makes one, and goes to its page."""
    form, person = context.form, context.person
    name = form.text("name", LONGEST_NAME)
    currency = form.choice("currency", await _currencies(context))
    if form.errors:
        return await _asked(context)
    try:
        async with context.writing() as connection:
            await add_account(
                connection,
                context.acting,
                customer_id=person.customer_id,
                environment=person.environment,
                currency=currency,
                name=name,
            )
    except AccountRefused as refused:
        form.error("name", context.say(_SAID[refused.why], most=MOST_ACCOUNTS))
        return await _asked(context)
    return context.see("/app/funding", context.say("%(name)s was made. Top it up, or move money to it.", name=name))


async def show(context: RequestContext) -> Response:
    """What can be changed about one. Raises NotFound."""
    return await _shown(context, await _account(context))


async def rename(context: RequestContext) -> Response:
    """Gives it another name. Raises NotFound."""
    account = await _account(context)
    name = context.form.text("name", LONGEST_NAME)
    if not context.form.errors:
        try:
            async with context.writing() as connection:
                await rename_account(connection, context.acting, name=name, **_named(context))
        except AccountRefused as refused:
            context.form.error("name", context.say(_SAID[refused.why]))
    if context.form.errors:
        return await _shown(context, account)
    return context.see("/app/funding", context.say("It is called %(name)s now.", name=name))


async def close(context: RequestContext) -> Response:
    """Closes it, where it holds nothing. Raises NotFound."""
    account = await _account(context)
    try:
        async with context.writing() as connection:
            await close_account(connection, context.acting, **_named(context))
    except AccountRefused as refused:
        return context.see(f"/app/funding/{account.id}/account", context.say(_SAID[refused.why]))
    return context.see("/app/funding", context.say("%(name)s is closed.", name=account.name))


async def reopen(context: RequestContext) -> Response:
    """Opens a closed one again. Raises NotFound."""
    account = await _account(context)
    try:
        async with context.writing() as connection:
            await open_account(connection, context.acting, **_named(context))
    except AccountRefused as refused:
        return context.see(f"/app/funding/{account.id}/account", context.say(_SAID[refused.why]))
    return context.see("/app/funding", context.say("%(name)s is open again.", name=account.name))


async def watch(context: RequestContext) -> Response:
    """Says who is told when it holds less than an amount, or that nobody is. Raises NotFound."""
    account, form = await _account(context), context.form
    wanted = None
    if form["off"] != "yes":
        below_minor = typed_amount(context, "below", account.currency)
        wanted = Watch(below_minor, tuple(sorted(set(form.numbers("who")))))
    try:
        if not form.errors:
            async with context.writing() as connection:
                await set_watch(connection, context.acting, watch=wanted, **_named(context))
    except InvalidRequest:
        form.error("who", context.say(_WHO, most=MOST_TOLD))
    if form.errors:
        return await _shown(context, account)
    return context.see(f"/app/funding/{account.id}/account", context.say("Saved."))


async def _shown(context: RequestContext, account: SeenAccount) -> Response:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        watched = await find_watch(connection, person.customer_id, account.id)
        readers = await list_readers(connection, person.customer_id)
    below = "" if watched is None else context.language.typed(watched.below_minor, account.currency)
    return context.page(
        "account.html",
        status=422 if context.form.errors else 200,
        account=account,
        below=below,
        told=context.form.all("who") or [str(one) for one in (watched.user_ids if watched else ())],
        is_watched=watched is not None,
        readers=readers,
        may_manage=person.may(Right.SETTINGS),
    )


def _named(context: RequestContext) -> dict[str, Any]:
    """Which account the address names, as the rules ask for it."""
    person = context.person
    return {
        "customer_id": person.customer_id,
        "environment": person.environment,
        "account_id": context.number("account"),
    }


async def _account(context: RequestContext) -> SeenAccount:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        return await find_seen_account(
            connection, person.customer_id, person.environment, context.number("account"), user_id=None
        )


async def _currencies(context: RequestContext) -> list[str]:
    async with context.database.connection(context.person.scope) as connection:
        return [row["code"] for row in await connection.fetch("SELECT code FROM currencies ORDER BY code")]


async def _asked(context: RequestContext) -> Response:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        accounts = await list_seen_accounts(connection, person.customer_id, person.environment, user_id=None)
    names = context.language.locale.currencies
    choices = [(code, f"{code} {names.get(code, '')}".strip()) for code in await _currencies(context)]
    return context.page(
        "new_account.html",
        status=422 if context.form.errors else 200,
        choices=choices,
        usual=accounts[0].currency if accounts else "",
        is_invoiced=person.funding != "balance",
        most=LONGEST_NAME,
    )
