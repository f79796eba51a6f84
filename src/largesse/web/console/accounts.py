"""Funding accounts: the forms that create, rename, close and open them, set who is notified of a low balance, and transfer money between them."""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.responses import Response

from largesse.automations.store import list_automations
from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.customers.actor import Actor
from largesse.customers.customer_store import list_currencies
from largesse.customers.roles import Right
from largesse.ledger import accounts
from largesse.ledger.accounts import AccountRefused, Why, transfer
from largesse.ledger.low_balance_store import Watch, find_watch, list_watchers
from largesse.ledger.store import SeenAccount, find_seen_account, list_seen_accounts
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.form import Form

_SAID = {
    Why.TOO_MANY: text("Your company has reached its limit of %(most)s accounts."),
    Why.NAME_TAKEN: text("Another account has this name."),
    Why.NO_CURRENCY: text("Choose one of the options."),
    Why.INVOICED: text("Your company pays by invoice and has no accounts."),
    Why.MASTER: text("This is your company's first account. It cannot be closed."),
    Why.HOLDS: text("The account still has a balance. Transfer it to another account first."),
    Why.AWAITS: text("A top-up of this account is waiting for a transfer. Cancel it first."),
}
_WHO = text("Choose who gets the mail. At most %(most)s people.")


async def ask(context: RequestContext) -> Response:
    """Shows the form for a new account."""
    seen = await context.read(list_seen_accounts, context.customer, user_id=None)
    names = context.language.locale.currencies
    choices = [(code, f"{code} {names.get(code, '')}".strip()) for code in await _currencies(context)]
    return context.page(
        "new_account.html",
        choices=choices,
        usual=seen[0].currency if seen else "",
        is_invoiced=context.person.funding != "balance",
        most=accounts.LONGEST_NAME,
    )


async def create(context: RequestContext) -> Response:
    """Creates an account."""
    form = context.form
    name = form.text("name", accounts.LONGEST_NAME)
    currency = form.choice("currency", await _currencies(context))
    if not form.errors:
        try:
            await accounts.create_account(context.actor, currency=currency, name=name)
        except AccountRefused as refused:
            form.error("name", context.say(_SAID[refused.why], most=accounts.MOST_ACCOUNTS))
    if form.errors:
        return await ask(context)
    said = context.say("%(name)s was created. Top it up, or transfer money to it.", name=name)
    return context.see("/app/funding", said)


async def show(context: RequestContext) -> Response:
    """Shows the forms that change an account. Raises NotFound."""
    return await _show(context, await _account(context))


async def rename(context: RequestContext) -> Response:
    """Renames an account. Raises NotFound."""
    account = await _account(context)
    context.form.keep_others({"name": account.name})
    name = context.form.text("name", accounts.LONGEST_NAME)
    if not context.form.errors:
        try:
            await accounts.rename_account(context.actor, account.id, name)
        except AccountRefused as refused:
            context.form.error("name", context.say(_SAID[refused.why]))
    if context.form.errors:
        return await _show(context, account)
    return context.see("/app/funding", context.say("Renamed to %(name)s.", name=name))


async def close(context: RequestContext) -> Response:
    """Closes an account whose balance is zero. Raises NotFound."""
    return await _switch(context, accounts.close_account, text("%(name)s is closed."))


async def reopen(context: RequestContext) -> Response:
    """Opens a closed account. Raises NotFound."""
    return await _switch(context, accounts.open_account, text("%(name)s is open again."))


async def _switch(context: RequestContext, act: Callable[[Actor, int], Awaitable[object]], said: str) -> Response:
    account = await _account(context)
    try:
        await act(context.actor, account.id)
    except AccountRefused as refused:
        return context.see(f"/app/funding/{account.id}/account", context.say(_SAID[refused.why]))
    return context.see("/app/funding", context.say(said, name=account.name))


async def set_watch(context: RequestContext) -> Response:
    """Sets who is notified when the balance falls below an amount, or turns that off. Raises NotFound."""
    account, form = await _account(context), context.form
    seen = await context.read(find_watch, context.person.customer_id, account.id)
    watch = None
    if form["off"] != "yes":
        form.keep_others({"below": _below(context, account, seen)})
        form.keep_choices("who", [str(one) for one in seen.user_ids] if seen else [])
        below_minor = typed_amount(context, "below", account.currency)
        watch = Watch(below_minor, tuple(sorted(set(form.numbers("who")))))
    try:
        if not form.errors:
            await accounts.watch_balance(context.actor, account.id, watch, seen)
    except InvalidRequest:
        form.error("who", context.say(_WHO, most=accounts.MOST_WATCHERS))
    if form.errors:
        return await _show(context, account)
    return context.see(f"/app/funding/{account.id}/account", context.say("Saved."))


async def _show(context: RequestContext, account: SeenAccount) -> Response:
    person = context.person
    async with context.database.connection(person.scope) as connection:
        watched = await find_watch(connection, person.customer_id, account.id)
        watchers = await list_watchers(connection, person.customer_id)
        automations = await list_automations(connection, context.customer)
    return context.page(
        "account.html",
        account=account,
        automations=[one for one in automations if one.account_id == account.id],
        below=_below(context, account, watched),
        watched_by=[str(one) for one in (watched.user_ids if watched else ())],
        chosen=context.form.all("who")
        if "below" in context.form
        else [str(one) for one in (watched.user_ids if watched else ())],
        is_watched=watched is not None,
        watchers=[(one.id, one.name, one.email) for one in watchers],
        may_manage=person.may(Right.SETTINGS),
    )


def _below(context: RequestContext, account: SeenAccount, watch: Watch | None) -> str:
    """Returns what the field of the amount shows."""
    return "" if watch is None else context.language.typed(watch.below_minor, account.currency)


async def _account(context: RequestContext) -> SeenAccount:
    return await context.read(find_seen_account, context.customer, context.number("account"), user_id=None)


async def _currencies(context: RequestContext) -> list[str]:
    return sorted(await context.read(list_currencies, context.person.customer_id))


_OTHER_CURRENCY = text("This account is in %(currency)s, the other one is not.")
_ACCOUNTS_CHANGED = text("The accounts have changed in the meantime. Check them and try again.")


class _CheckedTransfer(msgspec.Struct, frozen=True):
    """A transfer that passes every check of the form."""

    source: SeenAccount
    target: SeenAccount
    amount_minor: int


async def ask_transfer(context: RequestContext) -> Response:
    """Shows the form. Once it is filled in, also shows both balances after the transfer and the button that makes it."""
    context.form = context.form_of_address
    accounts = await _accounts(context)
    checked = _read_transfer(context, accounts) if context.query("amount") or context.query("to") else None
    return _show_transfer(context, accounts, checked)


async def make_transfer(context: RequestContext) -> Response:
    """Makes the transfer, and goes back to the accounts."""
    accounts = await _accounts(context)
    checked = _read_transfer(context, accounts)
    if checked is None:
        return _show_transfer(context, accounts, None)
    try:
        made = await transfer(
            context.actor, from_id=checked.source.id, to_id=checked.target.id, amount_minor=checked.amount_minor
        )
    except (InsufficientBalance, InvalidRequest, NotFound):
        context.form.error("amount", context.say(_ACCOUNTS_CHANGED))
        return _show_transfer(context, await _accounts(context), None)
    said = context.say(
        "%(amount)s was transferred from %(source)s to %(target)s.",
        amount=context.language.amount(made.amount_minor, made.currency),
        source=made.from_name,
        target=made.to_name,
    )
    return context.see("/app/funding", said)


async def _accounts(context: RequestContext) -> list[SeenAccount]:
    return await context.read(list_seen_accounts, context.customer, user_id=None)


def _read_transfer(context: RequestContext, accounts: list[SeenAccount]) -> _CheckedTransfer | None:
    """Returns the transfer of the form; None, with errors in the form, if it cannot be made."""
    form = context.form
    source = _chosen(form, "from", _sources(accounts))
    target = _chosen(form, "to", _targets(accounts))
    if source is not None and target is not None:
        if source.id == target.id:
            form.error("to", context.say("Choose a different account from the one you transfer from."))
        elif source.currency != target.currency:
            form.error("to", context.say(_OTHER_CURRENCY, currency=target.currency))
    amount_minor = 0 if source is None else typed_amount(context, "amount", source.currency)
    if source is not None and amount_minor > source.balance_minor:
        held = context.language.amount(source.balance_minor, source.currency)
        form.error("amount", context.say("Balance of %(account)s: %(amount)s.", account=source.name, amount=held))
    # If the language has changed since the amount was shown, the typed text may mean another amount.
    if form["amount_minor"] and form["amount_minor"] != str(amount_minor):
        form.error("amount", context.say(_ACCOUNTS_CHANGED))
    if form.errors or source is None or target is None:
        return None
    return _CheckedTransfer(source, target, amount_minor)


def _chosen(form: Form, name: str, offered: list[SeenAccount]) -> SeenAccount | None:
    chosen = form.choice(name, [str(one.id) for one in offered])
    return next((one for one in offered if str(one.id) == chosen), None)


def _sources(accounts: list[SeenAccount]) -> list[SeenAccount]:
    """Returns the accounts with a balance. A closed account can have one, after a refund."""
    return [one for one in accounts if one.balance_minor]


def _targets(accounts: list[SeenAccount]) -> list[SeenAccount]:
    return [one for one in accounts if not one.is_closed]


def _likely_target(accounts: list[SeenAccount]) -> str:
    """Returns the id of the preselected target: an open account in the currency of the first source; empty if there is none."""
    sources = _sources(accounts)
    if not sources:
        return ""
    fitting = [one for one in _targets(accounts) if one.id != sources[0].id and one.currency == sources[0].currency]
    return str(fitting[0].id) if fitting else ""


def _show_transfer(context: RequestContext, accounts: list[SeenAccount], checked: _CheckedTransfer | None) -> Response:
    def choices(offered: list[SeenAccount]) -> list[tuple[str, str]]:
        return [
            (str(one.id), f"{one.name} ({context.language.amount(one.balance_minor, one.currency)})") for one in offered
        ]

    return context.page(
        "transfer.html",
        sources=choices(_sources(accounts)),
        targets=choices(_targets(accounts)),
        likely_target=_likely_target(accounts),
        checked=checked,
    )
