"""Transfers between two accounts: the form, a preview with both balances after the transfer, and the transfer itself."""

import msgspec
from starlette.responses import Response

from largesse.base.errors import InsufficientBalance, InvalidRequest, NotFound
from largesse.base.i18n.languages import text
from largesse.ledger.store import SeenAccount, list_seen_accounts
from largesse.ledger.transfers import transfer
from largesse.web.console.context import RequestContext, typed_amount
from largesse.web.console.form import Form

_OTHER_CURRENCY = text("This account is in %(currency)s, the other one is not.")
_CHANGED = text("The accounts have changed in the meantime. Check them and try again.")


class _Checked(msgspec.Struct, frozen=True):
    """A transfer that passes every check of the form."""

    source: SeenAccount
    target: SeenAccount
    amount_minor: int


async def ask(context: RequestContext) -> Response:
    """Shows the form. Once it is filled in, also shows both balances after the transfer and the button that makes it."""
    context.form = context.form_of_address
    accounts = await _accounts(context)
    checked = _read(context, accounts) if context.query("amount") or context.query("to") else None
    return _show(context, accounts, checked)


async def make(context: RequestContext) -> Response:
    """Makes the transfer, and goes back to the accounts."""
    accounts = await _accounts(context)
    checked = _read(context, accounts)
    if checked is None:
        return _show(context, accounts, None)
    try:
        made = await transfer(
            context.actor, from_id=checked.source.id, to_id=checked.target.id, amount_minor=checked.amount_minor
        )
    except (InsufficientBalance, InvalidRequest, NotFound):
        context.form.error("amount", context.say(_CHANGED))
        return _show(context, await _accounts(context), None)
    said = context.say(
        "%(amount)s was transferred from %(source)s to %(target)s.",
        amount=context.language.amount(made.amount_minor, made.currency),
        source=made.from_name,
        target=made.to_name,
    )
    return context.see("/app/funding", said)


async def _accounts(context: RequestContext) -> list[SeenAccount]:
    return await context.read(list_seen_accounts, context.customer, user_id=None)


def _read(context: RequestContext, accounts: list[SeenAccount]) -> _Checked | None:
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
        form.error("amount", context.say(_CHANGED))
    if form.errors or source is None or target is None:
        return None
    return _Checked(source, target, amount_minor)


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


def _show(context: RequestContext, accounts: list[SeenAccount], checked: _Checked | None) -> Response:
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
