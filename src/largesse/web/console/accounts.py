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
from largesse.web.console.context import Visit, typed_amount

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


async def ask_account(visit: Visit) -> Response:
    """The form for a new one."""
    return await _asked(visit)


async def create(visit: Visit) -> Response:
    """Makes one, and goes to its page."""
    form, person = visit.form, visit.person
    name = form.text("name", LONGEST_NAME)
    currency = form.choice("currency", await _currencies(visit))
    if form.errors:
        return await _asked(visit)
    try:
        async with visit.writing() as connection:
            await add_account(
                connection,
                visit.acting,
                customer_id=person.customer_id,
                environment=person.environment,
                currency=currency,
                name=name,
            )
    except AccountRefused as refused:
        form.error("name", visit.say(_SAID[refused.why], most=MOST_ACCOUNTS))
        return await _asked(visit)
    return visit.see(
        "/app/funding", visit.say("%(name)s was made. Top it up, or move money to it.", name=name)
    )


async def show(visit: Visit) -> Response:
    """What can be changed about one. Raises NotFound."""
    return await _shown(visit, await _account(visit))


async def rename(visit: Visit) -> Response:
    """Gives it another name. Raises NotFound."""
    account = await _account(visit)
    name = visit.form.text("name", LONGEST_NAME)
    if not visit.form.errors:
        try:
            async with visit.writing() as connection:
                await rename_account(connection, visit.acting, name=name, **_named(visit))
        except AccountRefused as refused:
            visit.form.error("name", visit.say(_SAID[refused.why]))
    if visit.form.errors:
        return await _shown(visit, account)
    return visit.see("/app/funding", visit.say("It is called %(name)s now.", name=name))


async def close(visit: Visit) -> Response:
    """Closes it, where it holds nothing. Raises NotFound."""
    account = await _account(visit)
    try:
        async with visit.writing() as connection:
            await close_account(connection, visit.acting, **_named(visit))
    except AccountRefused as refused:
        return visit.see(f"/app/funding/{account.id}/account", visit.say(_SAID[refused.why]))
    return visit.see("/app/funding", visit.say("%(name)s is closed.", name=account.name))


async def reopen(visit: Visit) -> Response:
    """Opens a closed one again. Raises NotFound."""
    account = await _account(visit)
    try:
        async with visit.writing() as connection:
            await open_account(connection, visit.acting, **_named(visit))
    except AccountRefused as refused:
        return visit.see(f"/app/funding/{account.id}/account", visit.say(_SAID[refused.why]))
    return visit.see("/app/funding", visit.say("%(name)s is open again.", name=account.name))


async def watch(visit: Visit) -> Response:
    """Says who is told when it holds less than an amount, or that nobody is. Raises NotFound."""
    account, form = await _account(visit), visit.form
    wanted = None
    if form["off"] != "yes":
        below_minor = typed_amount(visit, "below", account.currency)
        told = [int(one) for one in form.all("who") if one.isascii() and one.isdigit() and len(one) < 10]
        wanted = Watch(below_minor, tuple(sorted(set(told))))
    try:
        if not form.errors:
            async with visit.writing() as connection:
                await set_watch(connection, visit.acting, watch=wanted, **_named(visit))
    except InvalidRequest:
        form.error("who", visit.say(_WHO, most=MOST_TOLD))
    if form.errors:
        return await _shown(visit, account)
    return visit.see(f"/app/funding/{account.id}/account", visit.say("Saved."))


async def _shown(visit: Visit, account: SeenAccount) -> Response:
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        watched = await find_watch(connection, person.customer_id, account.id)
        readers = await list_readers(connection, person.customer_id)
    below = "" if watched is None else visit.language.typed(watched.below_minor, account.currency)
    return visit.page(
        "account.html",
        status=422 if visit.form.errors else 200,
        account=account,
        below=below,
        told=visit.form.all("who") or [str(one) for one in (watched.user_ids if watched else ())],
        is_watched=watched is not None,
        readers=readers,
        may_manage=person.may(Right.SETTINGS),
    )


def _named(visit: Visit) -> dict[str, Any]:
    """Which account the address names, as the rules ask for it."""
    person = visit.person
    return {
        "customer_id": person.customer_id,
        "environment": person.environment,
        "account_id": visit.number("account"),
    }


async def _account(visit: Visit) -> SeenAccount:
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        return await find_seen_account(
            connection, person.customer_id, person.environment, visit.number("account"), user_id=None
        )


async def _currencies(visit: Visit) -> list[str]:
    async with visit.database.connection(visit.person.scope) as connection:
        return [row["code"] for row in await connection.fetch("SELECT code FROM currencies ORDER BY code")]


async def _asked(visit: Visit) -> Response:
    person = visit.person
    async with visit.database.connection(person.scope) as connection:
        accounts = await list_seen_accounts(connection, person.customer_id, person.environment, user_id=None)
    names = visit.language.locale.currencies
    choices = [(code, f"{code} {names.get(code, '')}".strip()) for code in await _currencies(visit)]
    return visit.page(
        "new_account.html",
        status=422 if visit.form.errors else 200,
        choices=choices,
        usual=accounts[0].currency if accounts else "",
        is_invoiced=person.funding != "balance",
        most=LONGEST_NAME,
    )
